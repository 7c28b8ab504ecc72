//! Makes the generated pages in memory. The example writes them, and a test compares them with the files.

mod commands;
mod settings;

use std::io;
use std::path::{Path, PathBuf};

/// The command that writes the pages.
pub(crate) const COMMAND: &str = "cargo run -p melm-cli --example reference";

/// A page of the documentation.
pub(crate) struct Page {
    /// The file of the page.
    pub(crate) path: PathBuf,
    /// The text that the file should have.
    pub(crate) text: String,
}

/// Returns the generated pages. Fails if the page with the commands, which is generated in part, cannot be read.
pub(crate) fn pages() -> io::Result<Vec<Page>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let commands = folder.join("commands.md");
    let written = std::fs::read_to_string(&commands)?;
    Ok(vec![
        Page { text: commands::page(&written), path: commands },
        Page { text: settings::page(), path: folder.join("settings.md") },
    ])
}

/// Makes text safe for Markdown outside of back-ticks, where `<B-PER>` would be read as HTML.
fn escape(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let escaped = parts.map(|(at, part)| match at % 2 {
        0 => part.replace('<', "&lt;").replace('*', "\\*"),
        _ => part.to_owned(),
    });
    escaped.collect::<Vec<_>>().join("`")
}
