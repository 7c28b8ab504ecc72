//! The options of `melm report`.

use std::path::PathBuf;

use clap::Args as Group;

/// Make a page that shows what a run did: drafts, verdicts, mentions, curves and scores
///
/// DIR is the output folder of `melm augment`, `melm trial` or `melm reproduce`. The page is one
/// HTML file of at most 2 MB that works without a network. It shows each draft as a difference to
/// its source, with filters. You can accept or reject drafts with the keys `a` and `r`, save the
/// decisions, and apply them with `melm filter --decisions`.
#[derive(Debug, Group)]
#[command(
    after_help = "Examples:\n  melm report more --open\n  melm report trial -o trial.html\n  \
    melm report more --json"
)]
pub(crate) struct Report {
    /// Output folder of a run
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Page to write; `-` for standard output [default: DIR/report.html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Open the page in your browser
    #[arg(long, conflicts_with = "json")]
    pub(crate) open: bool,
    /// Print the numbers of the page as JSON to standard output, and write no page unless FILE is
    /// given
    #[arg(long)]
    pub(crate) json: bool,
}
