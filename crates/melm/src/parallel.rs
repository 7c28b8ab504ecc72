//! Runs a function on the items of a list, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of items that a thread takes at a time.
const N_TAKEN: usize = 8;

/// Returns the results of `f` for all items, in the order of the items. The number of threads does not change the
/// result. Short lists are not worth a thread, and are done by the caller.
pub(crate) fn map_in_order<T: Sync, R: Send>(
    n_threads: usize,
    items: &[T],
    f: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let n_threads = n_threads.min(items.len() / (2 * N_TAKEN));
    if n_threads < 2 {
        return items.iter().enumerate().map(|(at, item)| f(at, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(N_TAKEN, Ordering::Relaxed);
            let Some(own) = items.get(start..) else { return done };
            let own = own.iter().take(N_TAKEN).enumerate();
            done.push((start, own.map(|(at, item)| f(start + at, item)).collect::<Vec<_>>()));
        }
    };
    let mut parts: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..n_threads).map(|_| scope.spawn(work)).collect();
        let mut parts = work();
        for thread in threads {
            match thread.join() {
                Ok(more) => parts.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts
    });
    parts.sort_unstable_by_key(|(start, _)| *start);
    parts.into_iter().flat_map(|(_, part)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::map_in_order;

    #[test]
    fn results_are_in_the_order_of_the_items_with_any_number_of_threads() {
        for n in [0, 1, 15, 16, 33, 500] {
            let items: Vec<usize> = (0..n).map(|i| i * 3).collect();
            let wanted: Vec<usize> = (0..n).map(|i| i * 4).collect();
            for n_threads in [1, 2, 7] {
                assert_eq!(map_in_order(n_threads, &items, |at, item| at + item), wanted);
            }
        }
    }
}
