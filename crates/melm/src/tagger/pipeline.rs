//! Reads, tags and writes at the same time, on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};

use super::read::{join, take};
use crate::Error;
use crate::stage::OnBatch;

/// A chunk that a thread is to tag.
struct ChunkToTag<C, R> {
    chunk: C,
    /// Receives the chunk and its tags.
    done: Sender<(C, Result<R, Error>)>,
}

/// Calls `tag` for each chunk that `read` returns, and `write` with the result, in the order of the chunks. One thread
/// reads, `n_taggers` threads tag, and the caller writes. At most `n_taggers + 2` chunks are in memory.
///
/// Returns the first error of a chunk. `tag` then stops soon, because its second argument fails.
pub(super) fn tag_chunks<C: Send, R: Send>(
    n_taggers: usize,
    mut read: impl FnMut() -> Option<C> + Send,
    tag: impl Fn(&C, OnBatch<'_>) -> Result<R, Error> + Sync,
    mut write: impl FnMut(&C, R) -> Result<(), Error>,
) -> Result<(), Error> {
    let is_stopped = AtomicBool::new(false);
    let (to_tag, queue) = channel::<ChunkToTag<C, R>>();
    // The reader waits here until the caller has written enough, so that few chunks are in memory.
    let (to_write, results) = sync_channel(n_taggers);
    let queue = Mutex::new(queue);
    let go_on = || {
        let is_stopped = is_stopped.load(Ordering::Relaxed);
        if is_stopped { Err(Error::Interrupted) } else { Ok(()) }
    };
    let tag_next = || {
        while let Some(ChunkToTag { chunk, done }) = take(&queue) {
            let tagged = go_on().and_then(|()| tag(&chunk, &mut || go_on()));
            // The receiver is gone if an earlier chunk failed.
            let _ = done.send((chunk, tagged));
        }
    };
    std::thread::scope(|scope| {
        let taggers: Vec<_> = (0..n_taggers).map(|_| scope.spawn(tag_next)).collect();
        scope.spawn(move || {
            while let Some(chunk) = read() {
                let (done, result) = channel();
                // Fails if the caller has stopped.
                if to_write.send(result).is_err() {
                    break;
                }
                // The queue lives as long as this function.
                let _ = to_tag.send(ChunkToTag { chunk, done });
            }
        });
        let outcome = results
            .iter()
            // There is no result if the thread has panicked.
            .map_while(|result| result.recv().ok())
            .try_for_each(|(chunk, tagged)| write(&chunk, tagged?));
        is_stopped.store(true, Ordering::Relaxed);
        drop(results);
        taggers.into_iter().for_each(join);
        outcome
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Runs with chunks that are numbers below `n`, and squares as their tags. The square of `wrong` fails. Returns what was
    /// written, and the largest number of chunks that were read but not written.
    fn square(n_taggers: usize, n: usize, wrong: usize) -> (Result<(), Error>, Vec<usize>, usize) {
        let (mut n_read, n_written, most) = (0, AtomicUsize::new(0), AtomicUsize::new(0));
        let mut written = Vec::new();
        let read = || {
            let n_left = n_read - n_written.load(Ordering::SeqCst).min(n_read);
            most.fetch_max(n_left, Ordering::SeqCst);
            n_read += 1;
            (n_read <= n).then_some(n_read - 1)
        };
        let tag = |at: &usize, on_batch: OnBatch<'_>| {
            // Later chunks are often finished first.
            std::thread::sleep(std::time::Duration::from_millis((at % 3) as u64));
            on_batch()?;
            if *at == wrong { Err(Error::Interrupted) } else { Ok(at * at) }
        };
        let outcome = tag_chunks(n_taggers, read, tag, |at, square| {
            assert_eq!(at * at, square);
            written.push(*at);
            n_written.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        (outcome, written, most.into_inner())
    }

    #[test]
    fn chunks_are_written_in_order_and_few_are_in_memory() {
        for n_taggers in [1, 2, 5] {
            for n in [0, 1, 40] {
                let (outcome, written, most) = square(n_taggers, n, n);
                outcome.unwrap();
                assert!(written.into_iter().eq(0..n));
                assert!(most <= n_taggers + 2, "{most}");
            }
        }
    }

    #[test]
    fn an_error_of_a_chunk_stops_after_the_chunks_before_it() {
        for n_taggers in [1, 3] {
            let (outcome, written, _) = square(n_taggers, 40, 7);
            assert!(matches!(outcome, Err(Error::Interrupted)));
            assert!(written.into_iter().eq(0..7));
        }
    }

    #[test]
    fn an_error_of_the_writer_stops_the_other_threads() {
        let mut n_read = 0;
        let read = || {
            n_read += 1;
            Some(())
        };
        let stop = |(): &(), ()| Err(Error::Interrupted);
        let outcome = tag_chunks(2, read, |(), _| Ok(()), stop);
        assert!(matches!(outcome, Err(Error::Interrupted)));
        assert!(n_read <= 6, "{n_read}");
    }

    #[test]
    #[should_panic(expected = "broken")]
    fn a_panic_is_passed_on() {
        let tag = |at: &usize, _: OnBatch<'_>| {
            assert!(*at < 3, "broken");
            Ok(())
        };
        let mut n_read = 0;
        let read = || {
            n_read += 1;
            Some(n_read)
        };
        let _ = tag_chunks(2, read, tag, |_, ()| Ok(()));
    }
}
