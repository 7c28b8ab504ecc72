//! Cuts the attention of a batch into tasks for many threads.

use std::cmp::Reverse;
use std::ops::Range;

/// Up to this number of threads, a task computes all heads of a sentence, whose rows then stay in its cache.
pub(super) const FEW_THREADS: usize = 4;
/// The number of tasks for each thread.
const TASKS_PER_THREAD: usize = 6;

/// Some heads of one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeadTask {
    pub(super) sentence: usize,
    pub(super) heads: Range<usize>,
}

/// The attention of a batch, cut by sentence and head. The cut never changes a sum, so it may depend on the number of
/// threads.
pub(super) struct HeadCut {
    /// The tasks, those with most work first: the small ones fill the gaps at the end.
    pub(super) tasks: Vec<HeadTask>,
}

impl HeadCut {
    /// Cuts the attention of sentences with these lengths. Returns `None` if a task for each sentence keeps all threads
    /// busy.
    pub(super) fn new(lengths: &[usize], n_heads: usize, n_threads: usize) -> Option<Self> {
        let n_wanted = n_threads * TASKS_PER_THREAD;
        if n_threads <= FEW_THREADS || lengths.is_empty() {
            return None;
        }
        // The work of a sentence is about the square of its length. A task has at most the work that one of `n_wanted`
        // equal tasks would have, or one head.
        let work = |length: usize| length * length * n_heads;
        let total: usize = lengths.iter().map(|length| work(*length)).sum();
        let limit = (total / n_wanted).max(1);
        let mut tasks = Vec::new();
        for (sentence, length) in lengths.iter().enumerate() {
            let n_parts = work(*length).div_ceil(limit).clamp(1, n_heads);
            tasks.extend((0..n_parts).map(|part| HeadTask {
                sentence,
                heads: part * n_heads / n_parts..(part + 1) * n_heads / n_parts,
            }));
        }
        tasks.sort_by_key(|task| Reverse(lengths[task.sentence].pow(2) * task.heads.len()));
        (tasks.len() > lengths.len()).then_some(Self { tasks })
    }
}

#[cfg(test)]
mod tests {
    use super::HeadCut;

    /// The lengths of the sentences of `bench_step`: 672 pieces.
    const LENGTHS: [usize; 16] = [64, 60, 56, 52, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 22];
    /// The number of heads and their size in XLM-R-base.
    const HEADS: usize = 12;
    const SIZE: usize = 64;
    /// The time of a softmax for a pair of positions, and of copying a number, in multiply-adds.
    const SOFTMAX: f64 = 60.0;
    const COPYING: f64 = 4.0;

    /// The time of one head of a sentence in multiply-adds. The forward pass has two products, and `copies` is the number of
    /// matrices that a task copies to their places.
    fn head_time(length: usize, copies: usize) -> f64 {
        let pairs = (length * length) as f64;
        pairs * (2.0 * SIZE as f64 + SOFTMAX) + COPYING * (copies * length * SIZE) as f64
    }

    /// The share of the time of `n_threads` threads that is used if each thread takes the next task when it is free. The
    /// work is that of one task for each sentence.
    fn efficiency(n_threads: usize, cut: Option<&HeadCut>) -> f64 {
        let of_sentence = |length: &usize| HEADS as f64 * head_time(*length, 0);
        let times: Vec<f64> = match cut {
            None => LENGTHS.iter().map(of_sentence).collect(),
            Some(cut) => {
                let time = |task: &super::HeadTask| {
                    task.heads.len() as f64 * head_time(LENGTHS[task.sentence], 1)
                };
                cut.tasks.iter().map(time).collect()
            }
        };
        let mut ends = vec![0.0_f64; n_threads];
        for time in times {
            *ends.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap() += time;
        }
        let work: f64 = LENGTHS.iter().map(of_sentence).sum();
        work / (n_threads as f64 * ends.into_iter().fold(0.0, f64::max))
    }

    /// Prints the table of `docs/performance.md`: `cargo test -p melm-nn --lib cut -- --nocapture`.
    #[test]
    #[expect(clippy::print_stdout, reason = "the table of the documentation")]
    fn simulated_attention_of_base_keeps_many_threads_busy() {
        for (n_threads, least) in [(8, 0.94), (16, 0.90), (32, 0.90), (64, 0.86)] {
            let cut = HeadCut::new(&LENGTHS, HEADS, n_threads);
            let (found, before) =
                (efficiency(n_threads, cut.as_ref()), efficiency(n_threads, None));
            println!(
                "attention, {n_threads} threads: {:.0} % of their time used, {:.0} % with a task for each sentence",
                100.0 * found,
                100.0 * before
            );
            assert!(found > least && found > before, "{n_threads} threads: {found}");
        }
    }

    #[test]
    fn every_head_of_every_sentence_belongs_to_one_task() {
        for n_threads in [5, 16, 64] {
            for lengths in [&LENGTHS[..], &[7], &[1, 200, 1]] {
                let cut = HeadCut::new(lengths, HEADS, n_threads).unwrap();
                let mut seen = vec![[0; HEADS]; lengths.len()];
                for task in &cut.tasks {
                    task.heads.clone().for_each(|head| seen[task.sentence][head] += 1);
                }
                assert!(seen.iter().all(|heads| heads.iter().all(|n| *n == 1)));
            }
        }
    }

    #[test]
    fn few_threads_and_many_sentences_need_no_cut() {
        assert!(HeadCut::new(&LENGTHS, HEADS, 4).is_none());
        assert!(HeadCut::new(&[30; 200], HEADS, 16).is_none());
        assert!(HeadCut::new(&[30; 90], HEADS, 16).is_some());
        assert!(HeadCut::new(&[], HEADS, 16).is_none());
    }
}
