//! A pool of threads that runs numbered tasks.
//!
//! Each task writes its own part of the output. The split into tasks may depend on the number of threads, but the order of
//! the terms of each sum never does. Therefore the results are identical for every number of threads. Unlike `rayon`, this
//! pool allocates no memory when it runs tasks.

use std::sync::PoisonError;

use crate::threads::{
    Arc, AtomicUsize, Condvar, JoinHandle, Mutex, MutexGuard, N_SPINS, Ordering, spawn, spin_loop,
};

type Task<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// The task closure and the number of tasks, as the workers receive them.
#[derive(Clone, Copy)]
struct Job {
    task: *const Task<'static>,
    n_tasks: usize,
    /// The number of workers that take part: those with the lowest numbers.
    n_workers: usize,
}

#[expect(unsafe_code, reason = "the pointer crosses to the workers")]
// SAFETY: `Pool::run` keeps the closure alive until no worker runs it any more, and the closure is `Sync`.
unsafe impl Send for Job {}

#[derive(Default)]
struct State {
    job: Option<Job>,
    has_panicked: bool,
    is_closing: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// For each worker, whether a job was posted that it takes part in.
    is_posted: Vec<Condvar>,
    is_done: Condvar,
    next: AtomicUsize,
    /// The number of jobs started so far. Workers compare it with the last job they joined, so that they join each job
    /// once. It is written while `state` is locked, and read without the lock.
    generation: AtomicUsize,
    n_working: AtomicUsize,
}

/// Spins until `is_ready` returns true, at most [`N_SPINS`] times.
fn spin_until(is_ready: impl Fn() -> bool) {
    for _ in 0..N_SPINS {
        if is_ready() {
            return;
        }
        spin_loop();
    }
}

/// A pool of threads. The caller of [`Pool::run`] is one of them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Locked while a job runs, so that callers run their jobs one at a time.
    turn: Mutex<()>,
}

impl Pool {
    /// Starts a pool of `n_threads` threads, including the caller.
    pub(crate) fn new(n_threads: usize) -> Self {
        let n_workers = n_threads.max(1) - 1;
        let is_posted = std::iter::repeat_with(Condvar::new).take(n_workers).collect();
        let shared = Arc::new(Shared { is_posted, ..Shared::default() });
        let workers = (1..=n_workers)
            .map(|worker| {
                let shared = Arc::clone(&shared);
                spawn(move || work(&shared, worker))
            })
            .collect();
        Self { shared, workers, turn: Mutex::new(()) }
    }

    /// Returns the number of threads, including the caller.
    pub(crate) fn n_threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task(index, worker)` for every index below `n_tasks`, and returns when all tasks are done.
    ///
    /// A job with fewer tasks than threads wakes only as many workers as there are tasks for them. A panic in a task is
    /// passed on to the caller. Tasks must not call the pool themselves.
    pub(crate) fn run(&self, n_tasks: usize, task: &Task<'_>) {
        if n_tasks <= 1 || self.workers.is_empty() {
            for index in 0..n_tasks {
                task(index, 0);
            }
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        shared.next.store(0, Ordering::Relaxed);
        let task_ptr = std::ptr::from_ref(task);
        #[expect(unsafe_code, reason = "workers outlive the borrow in the type, not in time")]
        #[expect(clippy::transmute_ptr_to_ptr, reason = "only the lifetime changes")]
        // SAFETY: only the lifetime changes. `WaitForWorkers` below waits until no worker uses the closure, even after
        // a panic.
        let task_ptr =
            unsafe { std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task_ptr) };
        {
            let n_workers = self.workers.len().min(n_tasks - 1);
            let mut state = lock(shared);
            state.job = Some(Job { task: task_ptr, n_tasks, n_workers });
            shared.n_working.store(n_workers, Ordering::Relaxed);
            shared.generation.fetch_add(1, Ordering::Release);
            state.has_panicked = false;
            shared.is_posted[..n_workers].iter().for_each(Condvar::notify_one);
        }
        let wait = WaitForWorkers(shared);
        take_tasks(shared, n_tasks, task, 0);
        drop(wait);
        assert!(!lock(shared).has_panicked, "a task panicked in a worker");
    }
}

/// Waits for the workers when it is dropped, even if a task panics in the calling thread.
struct WaitForWorkers<'a>(&'a Shared);

impl Drop for WaitForWorkers<'_> {
    fn drop(&mut self) {
        spin_until(|| self.0.n_working.load(Ordering::Acquire) == 0);
        let mut state = lock(self.0);
        while self.0.n_working.load(Ordering::Acquire) > 0 {
            state = self.0.is_done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared).is_closing = true;
        self.shared.is_posted.iter().for_each(Condvar::notify_one);
        for worker in self.workers.drain(..) {
            // A worker catches every panic of its tasks, so the result is always `Ok`.
            let _ = worker.join();
        }
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_tasks(shared: &Shared, n_tasks: usize, task: &Task<'_>, worker: usize) {
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= n_tasks {
            return;
        }
        task(index, worker);
    }
}

fn work(shared: &Shared, worker: usize) {
    let mut seen = 0;
    loop {
        spin_until(|| shared.generation.load(Ordering::Acquire) != seen);
        let job = {
            let mut state = lock(shared);
            loop {
                if state.is_closing {
                    return;
                }
                let generation = shared.generation.load(Ordering::Acquire);
                if generation != seen {
                    seen = generation;
                    break state.job.filter(|job| worker <= job.n_workers);
                }
                let posted = &shared.is_posted[worker - 1];
                state = posted.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        // A job that this worker takes no part in may already be over.
        let Some(job) = job else { continue };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            #[expect(unsafe_code, reason = "the closure lives on the caller's stack")]
            // SAFETY: the caller waits in `WaitForWorkers` until `n_working` is 0, so the closure is still alive here.
            let task = unsafe { &*job.task };
            take_tasks(shared, job.n_tasks, task, worker);
        }));
        let mut state = lock(shared);
        state.has_panicked |= outcome.is_err();
        if shared.n_working.fetch_sub(1, Ordering::AcqRel) == 1 {
            shared.is_done.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_task_runs_once_with_any_number_of_threads() {
        for n_threads in [1, 2, 5] {
            let pool = Pool::new(n_threads);
            for n_tasks in [0, 1, 2, 100] {
                let counts: Vec<_> = (0..n_tasks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(n_tasks, &|index, _| {
                    counts[index].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_job_of_few_tasks_between_large_ones_runs_on_the_first_workers() {
        let pool = Pool::new(6);
        for round in 0..200 {
            let n_tasks = [40, 2, 3, 1, 2][round % 5];
            let largest = AtomicUsize::new(0);
            let sum = AtomicUsize::new(0);
            pool.run(n_tasks, &|index, worker| {
                largest.fetch_max(worker, Ordering::Relaxed);
                sum.fetch_add(index + 1, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), n_tasks * (n_tasks + 1) / 2);
            assert!(largest.into_inner() < n_tasks, "a worker without a task was used");
        }
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller_and_the_pool_survives() {
        let pool = Pool::new(3);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(8, &|index, _| assert_ne!(index, 5));
        }));
        assert!(outcome.is_err());
        let sum = AtomicUsize::new(0);
        pool.run(10, &|index, _| {
            sum.fetch_add(index, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }
}
