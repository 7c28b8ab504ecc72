//! Reads, tags and writes at the same time, on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::Duration;

use super::read::{join, take};
use crate::Error;
use crate::stage::OnBatch;

/// The time between two calls of `on_wait` while a chunk is tagged.
const WAIT_INTERVAL: Duration = Duration::from_millis(50);

/// A chunk that a thread is to tag.
struct ChunkToTag<C, R> {
    chunk: C,
    result_sender: Sender<TaggedChunk<C, R>>,
}

/// A chunk, and its tags or the error of tagging it.
struct TaggedChunk<C, R> {
    chunk: C,
    tagged: Result<R, Error>,
}

/// Calls `tag` for each chunk that `read` returns, and `write` with the result, in the order of the chunks. One thread
/// reads, `n_taggers` threads tag, and the caller writes. At most `n_taggers + 2` chunks are in memory. While the caller
/// waits for a chunk, it calls `on_wait`.
///
/// Returns the first error of a chunk, of `write` or of `on_wait`. `tag` then stops soon, because its second argument fails.
pub(super) fn tag_chunks<C: Send, R: Send>(
    n_taggers: usize,
    mut read: impl FnMut() -> Option<C> + Send,
    tag: impl Fn(&C, OnBatch<'_>) -> Result<R, Error> + Sync,
    mut write: impl FnMut(&C, R) -> Result<(), Error>,
    mut on_wait: impl FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let is_stopped = AtomicBool::new(false);
    let (to_tag, queue) = channel::<ChunkToTag<C, R>>();
    // The reader waits here until the caller has written enough, so that few chunks are in memory.
    let (to_write, results) = sync_channel(n_taggers);
    let queue = Mutex::new(queue);
    let check_stopped = || {
        let is_stopped = is_stopped.load(Ordering::Relaxed);
        if is_stopped { Err(Error::Interrupted) } else { Ok(()) }
    };
    let tag_next = || {
        while let Some(ChunkToTag { chunk, result_sender }) = take(&queue) {
            let tagged = check_stopped().and_then(|()| tag(&chunk, &mut || check_stopped()));
            // The receiver is gone if an earlier chunk failed.
            let _ = result_sender.send(TaggedChunk { chunk, tagged });
        }
    };
    std::thread::scope(|scope| {
        let taggers: Vec<_> = (0..n_taggers).map(|_| scope.spawn(tag_next)).collect();
        let reader = scope.spawn(move || {
            while let Some(chunk) = read() {
                let (result_sender, result) = channel();
                // Fails if the caller has stopped.
                if to_write.send(result).is_err() {
                    break;
                }
                // The queue lives as long as this function.
                let _ = to_tag.send(ChunkToTag { chunk, result_sender });
            }
        });
        let mut write_next = |result: Receiver<TaggedChunk<C, R>>| {
            let TaggedChunk { chunk, tagged } = receive(&result, &mut on_wait)?;
            write(&chunk, tagged?)
        };
        let outcome = results.iter().try_for_each(&mut write_next);
        is_stopped.store(true, Ordering::Relaxed);
        drop(results);
        // If a thread has panicked, the panic goes on here.
        taggers.into_iter().for_each(join);
        join(reader);
        outcome
    })
}

/// Waits for a message and calls `on_wait` from time to time. Fails if `on_wait` fails or if the sender is gone, which
/// happens only if its thread has panicked.
fn receive<T>(
    from: &Receiver<T>,
    on_wait: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<T, Error> {
    loop {
        match from.recv_timeout(WAIT_INTERVAL) {
            Ok(message) => return Ok(message),
            Err(RecvTimeoutError::Timeout) => on_wait()?,
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Runs with chunks that are numbers below `n`, and squares as their tags. The square of `wrong` fails. Returns what was
    /// written, and the largest number of chunks that were read but not written when the next one was read.
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
        let write = |at: &usize, square: usize| {
            assert_eq!(at * at, square);
            written.push(*at);
            n_written.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let outcome = tag_chunks(n_taggers, read, tag, write, || Ok(()));
        (outcome, written, most.into_inner())
    }

    #[test]
    fn chunks_are_written_in_order_and_few_are_in_memory() {
        for n_taggers in [1, 2, 5] {
            for n in [0, 1, 40] {
                let (outcome, written, most) = square(n_taggers, n, n);
                outcome.unwrap();
                assert!(written.into_iter().eq(0..n));
                // The next one makes `n_taggers + 2`.
                assert!(most <= n_taggers + 1, "{most}");
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

    /// Tags chunks forever: a chunk ends only when its second argument fails.
    fn tag_forever((): &(), on_batch: OnBatch<'_>) -> Result<(), Error> {
        loop {
            on_batch()?;
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_error_of_the_writer_stops_the_other_threads() {
        let mut n_read = 0;
        let read = || {
            n_read += 1;
            Some(n_read)
        };
        let tag = |at: &usize, on_batch: OnBatch<'_>| {
            if *at == 1 { Ok(()) } else { tag_forever(&(), on_batch) }
        };
        let fail = |_: &usize, ()| Err(Error::Interrupted);
        let outcome = tag_chunks(2, read, tag, fail, || Ok(()));
        assert!(matches!(outcome, Err(Error::Interrupted)));
        // One was taken from the channel of two, and one waits for a place in it.
        assert!(n_read <= 4, "{n_read}");
    }

    #[test]
    fn an_error_while_waiting_stops_all_threads() {
        let mut n_waits = 0;
        let on_wait = || {
            n_waits += 1;
            if n_waits == 2 { Err(Error::Interrupted) } else { Ok(()) }
        };
        let write = |(): &(), ()| unreachable!("no chunk ends before the stop");
        let outcome = tag_chunks(2, || Some(()), tag_forever, write, on_wait);
        assert!(matches!(outcome, Err(Error::Interrupted)));
        assert_eq!(n_waits, 2);
    }

    #[test]
    #[should_panic(expected = "broken")]
    fn a_panic_of_a_tagger_is_passed_on() {
        let tag = |at: &usize, _: OnBatch<'_>| {
            assert!(*at < 3, "broken");
            Ok(())
        };
        let mut n_read = 0;
        let read = || {
            n_read += 1;
            Some(n_read)
        };
        let _ = tag_chunks(2, read, tag, |_, ()| Ok(()), || Ok(()));
    }

    #[test]
    #[should_panic(expected = "unreadable")]
    fn a_panic_of_the_reader_is_passed_on() {
        let mut n_read = 0;
        let read = || {
            n_read += 1;
            assert!(n_read < 3, "unreadable");
            Some(n_read)
        };
        let _ = tag_chunks(2, read, |_, _| Ok(()), |_, ()| Ok(()), || Ok(()));
    }
}
