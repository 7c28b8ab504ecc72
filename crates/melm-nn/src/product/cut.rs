//! Cuts a product into tasks.
//!
//! The cut never changes a sum: every output is summed in the order of `k` by one task. It may therefore depend on the
//! number of threads.

use super::{Extent, Shape};

/// The number of output columns of a task that reads the left matrix in place. Tasks are small, so that all threads
/// finish at about the same time.
const COLUMNS: usize = 96;
/// The number of output rows of a task that packs the left matrix.
const PACKED_ROWS: usize = 384;
/// The number of output rows of a task that reads the left matrix in place.
const ROWS: usize = 1024;

/// If a dimension is split into several blocks, their number is a multiple of this where possible.
const EVEN: usize = 4;

/// Up to this number of threads, the blocks above give every thread enough tasks.
const FEW_THREADS: usize = 4;
/// The number of tasks for each thread, if there are more threads.
const TASKS_PER_THREAD: usize = 3;
/// The smallest number of rows of a task that packs the right matrix once more, and of columns of a task that packs the
/// left matrix once more. In smaller tasks, packing would take more than a tenth of the time.
const LEAST_ROWS: usize = 64;
const LEAST_COLUMNS: usize = 192;

/// The number of blocks into which the rows and the columns of the output are cut. Each block is a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) n_down: usize,
    pub(super) n_across: usize,
}

impl Cut {
    /// Cuts a product for `n_threads` threads. `packs_left` is true if the left matrix is packed.
    pub(super) fn new(shape: Shape, packs_left: bool, tile: Extent, n_threads: usize) -> Self {
        let Shape { m, n, .. } = shape;
        let (rows, columns) = if packs_left { (PACKED_ROWS, n) } else { (ROWS, COLUMNS) };
        let n_down = n_blocks(m, rows, tile.rows);
        let n_across = n_blocks(n, columns, tile.columns);
        let n_wanted = n_threads * TASKS_PER_THREAD;
        if n_threads <= FEW_THREADS || n_down * n_across >= n_wanted {
            Self { n_down, n_across }
        } else if packs_left {
            let most = (n / LEAST_COLUMNS).max(n_across);
            Self { n_down, n_across: n_wanted.div_ceil(n_down).clamp(n_across, most) }
        } else {
            let most = (m / LEAST_ROWS).max(n_down);
            Self { n_down: n_wanted.div_ceil(n_across).clamp(n_down, most), n_across }
        }
    }
}

/// Returns the number of blocks of about `limit` elements that `total` is split into. More than one block is rounded up
/// to a multiple of [`EVEN`], so that no thread is idle at the end. There are never more blocks than tiles.
fn n_blocks(total: usize, limit: usize, tile: usize) -> usize {
    let n = total.div_ceil(limit);
    let n = if n == 1 { 1 } else { n.next_multiple_of(EVEN) };
    n.min(total.div_ceil(tile))
}

#[cfg(test)]
mod tests {
    use super::{Cut, Extent, Shape};
    use crate::product::part_of_tiles;

    const TILE: Extent = Extent { rows: 8, columns: 48 };
    /// The cost of packing a number of a matrix, in multiply-adds. The kernels do about 30 of them in a cycle.
    const PACKING: f64 = 12.0;

    /// The times of the tasks of a product, in multiply-adds.
    fn tasks(shape: Shape, packs_left: bool, cut: Cut) -> Vec<f64> {
        let Shape { m, k, n } = shape;
        let mut times = Vec::new();
        for task in 0..cut.n_down * cut.n_across {
            let rows = part_of_tiles(m, TILE.rows, cut.n_down, task / cut.n_across).len();
            let columns = part_of_tiles(n, TILE.columns, cut.n_across, task % cut.n_across).len();
            let packed = columns + if packs_left { rows } else { 0 };
            times.push(k as f64 * ((rows * columns) as f64 + PACKING * packed as f64));
        }
        times
    }

    /// The share of the time of `n_threads` threads that is used if each thread takes the next task when it is free. The
    /// work is that of a cut for one thread.
    fn efficiency(shape: Shape, packs_left: bool, n_threads: usize) -> f64 {
        let cut = Cut::new(shape, packs_left, TILE, n_threads);
        let mut ends = vec![0.0_f64; n_threads];
        for time in tasks(shape, packs_left, cut) {
            let first = ends.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            *first += time;
        }
        let alone: f64 =
            tasks(shape, packs_left, Cut::new(shape, packs_left, TILE, 1)).iter().sum();
        alone / (n_threads as f64 * ends.into_iter().fold(0.0, f64::max))
    }

    /// The products of one layer of XLM-R-base and their gradients, for 16 sentences with 672 pieces.
    fn products() -> Vec<(Shape, bool)> {
        let maps = [(768, 2304), (768, 768), (768, 3072), (3072, 768)];
        maps.iter()
            .flat_map(|(inputs, outputs)| {
                [
                    (Shape { m: 672, k: *inputs, n: *outputs }, false),
                    (Shape { m: 672, k: *outputs, n: *inputs }, false),
                    (Shape { m: *outputs, k: 672, n: *inputs }, true),
                ]
            })
            .collect()
    }

    /// Prints the table of `docs/performance.md`: `cargo test -p melm-nn --lib cut -- --nocapture`.
    #[test]
    #[expect(clippy::print_stdout, reason = "the table of the documentation")]
    fn a_simulated_layer_of_base_keeps_many_threads_busy() {
        for (n_threads, least) in [(2, 0.97), (8, 0.88), (16, 0.80), (32, 0.70), (64, 0.50)] {
            // The share of the whole layer: products with more work count more.
            let (mut work, mut time) = (0.0, 0.0);
            for (shape, packs_left) in products() {
                let own = (shape.m * shape.k * shape.n) as f64;
                work += own;
                time += own / efficiency(shape, packs_left, n_threads);
            }
            let found = work / time;
            println!("{n_threads} threads: {:.0} % of their time used", 100.0 * found);
            assert!(found > least, "{n_threads} threads: {found}");
        }
    }

    #[test]
    fn few_threads_get_the_cut_of_one_thread() {
        for (shape, packs_left) in products() {
            let one = Cut::new(shape, packs_left, TILE, 1);
            for n_threads in [2, 3, 4] {
                assert_eq!(Cut::new(shape, packs_left, TILE, n_threads), one);
            }
        }
    }

    #[test]
    fn every_row_and_column_belongs_to_one_task() {
        for n_threads in [1, 5, 16, 64] {
            for (shape, packs_left) in products() {
                let cut = Cut::new(shape, packs_left, TILE, n_threads);
                let rows = (0..cut.n_down).map(|at| part_of_tiles(shape.m, 8, cut.n_down, at));
                assert_eq!(rows.map(|rows| rows.len()).sum::<usize>(), shape.m);
                let columns =
                    (0..cut.n_across).map(|at| part_of_tiles(shape.n, 48, cut.n_across, at));
                assert_eq!(columns.map(|columns| columns.len()).sum::<usize>(), shape.n);
            }
        }
    }
}
