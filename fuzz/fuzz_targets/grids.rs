//! Reads arbitrary text as the grid of an experiment, and lists the cells of an accepted grid.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_eval::{Grid, MAX_CELLS};

fuzz_target!(|text: &str| {
    let Ok(grid) = Grid::parse("fuzz.toml", text) else { return };
    let cells = grid.cells();
    assert!(!cells.is_empty() && cells.len() <= MAX_CELLS);
    for cell in &cells[..cells.len().min(100)] {
        assert!(grid.test_languages(cell).count() > 0);
    }
});
