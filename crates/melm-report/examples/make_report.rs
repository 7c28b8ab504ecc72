//! Makes the page of a run: `cargo run -p melm-report --example make_report -- DIR report.html [report.json]`.

use std::error::Error;

use melm_report::Report;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (folder, page) = (words.next().ok_or("no folder")?, words.next().ok_or("no page")?);
    let report = Report::read(folder)?;
    std::fs::write(page, report.html())?;
    if let Some(numbers) = words.next() {
        std::fs::write(numbers, format!("{:#}", report.json()))?;
    }
    Ok(())
}
