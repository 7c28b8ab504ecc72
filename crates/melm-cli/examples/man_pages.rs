//! Writes the man pages of `melm` and of every subcommand to a folder.
//!
//! ```text
//! cargo run -p melm-cli --example man_pages -- man
//! man -l man/melm-augment.1
//! ```

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: man_pages FOLDER")?;
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    clap_mangen::generate_to(melm_cli::command(), &folder)?;
    Ok(())
}
