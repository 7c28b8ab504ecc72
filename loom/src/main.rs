//! Runs the thread pool of `melm-nn` in every order in which its threads can run, up to a number of forced switches.
//!
//! `cargo run --manifest-path loom/Cargo.toml` checks all models. It fails if a task runs twice or never, if the caller
//! reads a result that is not synchronised with its writer, if a task runs after its job is over, or if threads wait for
//! each other without end.

#[path = "../../crates/melm-nn/src/pool.rs"]
mod pool;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use pool::Pool;

/// The outputs of the tasks of one job. `loom` reports accesses that are not synchronised.
struct Outputs {
    cells: Vec<UnsafeCell<usize>>,
    /// Set when the job is over. Not an atomic of `loom`, so that it adds no synchronisation.
    is_over: std::sync::atomic::AtomicBool,
}

// SAFETY: `loom` reports every access to a cell that is not synchronised.
unsafe impl Sync for Outputs {}

impl Outputs {
    fn new(n_tasks: usize) -> Self {
        let cells = (0..n_tasks).map(|_| UnsafeCell::new(0)).collect();
        Self { cells, is_over: false.into() }
    }

    /// Runs a job whose tasks write into their own cell, and checks the result.
    fn check(&self, pool: &Pool) {
        pool.run(self.cells.len(), &|index, worker| {
            assert!(!self.is_over.load(Ordering::Relaxed), "a task runs after its job");
            assert!(worker < pool.n_threads().min(self.cells.len()), "a worker without a task");
            self.cells[index].with_mut(|cell| add(cell, index + 1));
        });
        self.is_over.store(true, Ordering::Relaxed);
        for (index, cell) in self.cells.iter().enumerate() {
            assert_eq!(cell.with(get), index + 1, "task {index} must run once");
        }
    }
}

fn add(cell: *mut usize, n: usize) {
    // SAFETY: `loom` has checked that no other thread accesses the cell.
    unsafe { *cell += n }
}

fn get(cell: *const usize) -> usize {
    // SAFETY: `loom` has checked that no other thread writes the cell.
    unsafe { *cell }
}

/// Starts a pool, runs jobs of these numbers of tasks one after the other, and ends the pool.
fn jobs(n_threads: usize, counts: &[usize]) {
    let pool = Pool::new(n_threads);
    for &n_tasks in counts {
        Outputs::new(n_tasks).check(&pool);
    }
}

/// Two threads use one pool.
fn two_callers() {
    let pool = Arc::new(Pool::new(2));
    let other = loom::thread::spawn({
        let pool = Arc::clone(&pool);
        move || Outputs::new(2).check(&pool)
    });
    Outputs::new(2).check(&pool);
    other.join().expect("the other caller does not panic");
}

/// A task panics in any thread. The panic reaches the caller after all workers are done, and the pool ends. The next job
/// is left to the tests of the pool: the locks of `loom` cannot be used after a panic.
fn a_panic() {
    let pool = Pool::new(2);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        pool.run(2, &|index, _| assert_ne!(index, 1, "expected"));
    }));
    assert!(outcome.is_err(), "the panic is passed on");
}

/// Checks one model, and prints in how many orders it ran.
///
/// `max_switches` is the largest number of forced switches between threads in one order. Almost all faults need two or
/// fewer (Musuvathi and Qadeer 2007, "Iterative context bounding").
fn check(name: &str, max_switches: usize, model: impl Fn() + Sync + Send + 'static) {
    let start = Instant::now();
    let n_orders = std::sync::Arc::new(AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&n_orders);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(max_switches);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let (n_orders, seconds) = (n_orders.load(Ordering::Relaxed), start.elapsed().as_secs_f64());
    println!("{name}: {n_orders} orders, {seconds:.1} s");
}

fn main() {
    // One switch more makes a model of three threads take minutes instead of seconds.
    check("start and end", 2, || jobs(3, &[]));
    check("one job, two threads", 3, || jobs(2, &[3]));
    check("two jobs, two threads", 3, || jobs(2, &[2, 2]));
    check("one job, three threads", 2, || jobs(3, &[3]));
    check("a small and a large job, three threads", 1, || jobs(3, &[2, 3]));
    check("two callers", 2, two_callers);
    // The message of each expected panic would be printed in every order.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or_default();
        if !text.contains("expected") && !text.contains("a task panicked in a worker") {
            hook(info);
        }
    }));
    check("a panic", 3, a_panic);
}
