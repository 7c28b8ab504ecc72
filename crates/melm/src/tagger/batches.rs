//! Cuts the windows of a call into the batches that the tagger reads.

use std::cmp::Reverse;
use std::ops::Range;

use melm_nn::device::Device;
use melm_nn::isa::IsaKind;

use super::encode::WindowInput;

/// The largest number of pieces that a thread of the CPU reads at a time. Their rows stay in its second-level cache.
const MAX_THREAD_PIECES: usize = 384;
/// The largest number of pieces that a GPU reads at a time. It is then busy for longer than a thread needs to prepare the
/// next batch.
const MAX_GPU_PIECES: usize = 8_192;
/// The number of batches for each thread, so that threads finish at about the same time.
const BATCHES_PER_THREAD: usize = 4;

/// Sorts windows for [`cut_batches`]: of each group of `n_together` sentences, the longest windows come first.
///
/// Windows of similar length then share a batch, so that threads and blocks of a GPU have similar work. Short batches
/// fill the gaps at the end better.
pub(super) fn sort_windows(windows: &mut [WindowInput], n_together: usize) {
    windows.sort_by_key(|window| {
        let length = window.pieces.len();
        (window.sentence / n_together, Reverse((length, window.sentence, window.own.start)))
    });
}

/// Cuts sorted windows into batches. No batch has windows of two groups of `n_together` sentences.
pub(super) fn cut_batches(
    windows: &[WindowInput],
    device: &Device,
    n_threads: usize,
    n_together: usize,
) -> Vec<Range<usize>> {
    let limit = match device {
        Device::Cpu(cpu) => {
            let total = windows.iter().map(|window| window.pieces.len()).sum();
            cpu_limit(cpu.isa().kind(), total, n_threads)
        }
        Device::Cuda(_) => MAX_GPU_PIECES,
    };
    cut_at(windows, limit, n_together)
}

/// Returns the largest number of pieces that a thread reads at a time, of `total` pieces.
///
/// With `gemm` the last bits of a row can depend on the other rows of its batch. The batches then do not depend on the number of
/// threads.
fn cpu_limit(kind: IsaKind, total: usize, n_threads: usize) -> usize {
    match kind {
        IsaKind::Gemm => MAX_THREAD_PIECES,
        IsaKind::Avx512 | IsaKind::Avx2 | IsaKind::Scalar => (total
            / (n_threads * BATCHES_PER_THREAD))
            .clamp(MAX_THREAD_PIECES / 4, MAX_THREAD_PIECES),
    }
}

/// Cuts windows into batches of at most `limit` pieces, or of one window. The batches of a group, except its last, have about
/// as many pieces, so that a GPU sees few shapes.
fn cut_at(windows: &[WindowInput], limit: usize, n_together: usize) -> Vec<Range<usize>> {
    let group = |window: &WindowInput| window.sentence / n_together;
    let mut batches = Vec::new();
    let mut start = 0;
    while start < windows.len() {
        let own = group(&windows[start]);
        let mut n_pieces = 0;
        let fits = |window: &&WindowInput| {
            n_pieces += window.pieces.len();
            group(window) == own && n_pieces <= limit
        };
        let n = windows[start..].iter().take_while(fits).count().max(1);
        batches.push(start..start + n);
        start += n;
    }
    batches
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use melm_nn::isa::IsaKind;

    use super::{WindowInput, cpu_limit, cut_at, sort_windows};

    fn window(sentence: usize, n_pieces: usize) -> WindowInput {
        WindowInput { sentence, own: 0..1, pieces: vec![0; n_pieces], first_pieces: vec![0] }
    }

    #[test]
    fn batches_have_few_pieces_and_sentences_of_one_group() {
        let windows =
            [window(1, 9), window(0, 5), window(2, 3), window(5, 4), window(3, 2), window(4, 2)];
        assert_eq!(cut_at(&windows, 8, 3), [0..1, 1..3, 3..6]);
        assert_eq!(cut_at(&windows, 100, 3), [0..3, 3..6]);
        assert_eq!(cut_at(&windows, 100, 100), std::slice::from_ref(&(0..6)));
        assert!(cut_at(&[], 8, 3).is_empty());
    }

    #[test]
    fn batches_of_gemm_do_not_depend_on_the_number_of_threads() {
        let limits = |kind| [1, 2, 64].map(|n_threads| cpu_limit(kind, 4_000, n_threads));
        assert_eq!(limits(IsaKind::Gemm), [384; 3]);
        assert_eq!(limits(IsaKind::Avx2), [384, 384, 96]);
    }

    /// The batches of sentences, each as the numbers of its sentences, if sentence 0 has the number `first`.
    fn batches(lengths: &[usize], n_together: usize, first: usize) -> Vec<Vec<usize>> {
        let all = lengths.iter().enumerate();
        let mut windows: Vec<_> = all.map(|(sentence, n)| window(sentence, *n)).collect();
        sort_windows(&mut windows, n_together);
        let number = |window: &WindowInput| first + window.sentence;
        let numbers = |batch: Range<usize>| windows[batch].iter().map(number).collect();
        cut_at(&windows, 100, n_together).into_iter().map(numbers).collect()
    }

    /// Shards begin at a multiple of the size of a group. With bf16 a tag may depend on its batch, so a shard needs the
    /// batches of the whole file.
    #[test]
    fn the_batches_of_a_group_do_not_depend_on_other_sentences() {
        let lengths: Vec<usize> = (0..70).map(|sentence| 1 + sentence * 37 % 29).collect();
        let whole = batches(&lengths, 32, 0);
        let parts = [0..32, 32..64, 64..70].map(|part: Range<usize>| {
            let first = part.start;
            batches(&lengths[part], 32, first)
        });
        assert_eq!(whole, parts.concat());
        assert!(whole.len() > 6, "a group has several batches");
    }
}
