//! Writes the generated pages of the documentation: `docs/reference/settings.md`, and the options of all commands in
//! `docs/reference/commands.md`. A test fails if the pages are out of date.
//!
//! ```text
//! cargo run -p melm-cli --example reference
//! ```

mod pages;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for page in pages::pages()? {
        std::fs::write(&page.path, &page.text)?;
    }
    Ok(())
}
