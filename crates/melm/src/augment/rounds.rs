//! The rounds of a run: collected in memory and, if the run has a folder, saved so that an interrupted run can resume.

use std::path::{Path, PathBuf};

use melm_nn::files::{MAX_CONFIG_BYTES, read_text};
use melm_text::Corpus;

use super::algorithm::Drafts;
use crate::Error;
use crate::draft::{Draft, Novelty, read_lines, to_lines};
use crate::files::{MAX_RUN_FILE, create_folder, sha256, write_whole};
use crate::methods::RejectedCounts;

/// The rounds made so far.
pub(super) struct Rounds<'a> {
    gold: &'a Corpus,
    folder: Option<PathBuf>,
    n_done: u32,
    novelty: Novelty<'a>,
    /// The drafts of these rounds.
    pub(super) result: Drafts,
}

impl<'a> Rounds<'a> {
    /// Loads the rounds that an earlier run saved in `run_folder`. Stops at the first incomplete round, or after
    /// `n_rounds`.
    pub(super) fn resume(
        gold: &'a Corpus,
        n_rounds: u32,
        run_folder: Option<&Path>,
    ) -> Result<Self, Error> {
        let folder = run_folder.map(|folder| folder.join("rounds"));
        let (novelty, result) = (Novelty::new(gold), Drafts::default());
        let mut rounds = Self { gold, folder, n_done: 0, novelty, result };
        while rounds.n_done < n_rounds
            && let Some(lines) = rounds.load(rounds.n_done + 1)
        {
            rounds.restore(&lines)?;
        }
        Ok(rounds)
    }

    /// The number of rounds made so far.
    pub(super) fn n_done(&self) -> u32 {
        self.n_done
    }

    /// Marks drafts of the next round that repeat gold or an earlier draft.
    pub(super) fn mark_repeats(&mut self, drafts: &mut [Draft]) {
        self.novelty.mark(drafts);
    }

    /// Adds the drafts of the next round and saves them. `dropped` counts the sentences of this round that did not
    /// become drafts.
    pub(super) fn add(
        &mut self,
        drafts: Vec<Draft>,
        dropped: &RejectedCounts,
    ) -> Result<(), Error> {
        let lines = to_lines(&drafts, self.gold);
        self.n_done += 1;
        if let Some(folder) = &self.folder {
            save(folder, self.n_done, &lines, dropped)?;
        }
        self.extend(drafts, &lines, dropped);
        Ok(())
    }

    fn extend(&mut self, drafts: Vec<Draft>, lines: &str, dropped: &RejectedCounts) {
        self.result.lines.push_str(lines);
        self.result.dropped.add(dropped);
        self.result.drafts.extend(drafts);
    }

    /// Reads the lines of a saved round. Returns `None` if the round is missing or its checksum is wrong: it is then
    /// made again.
    fn load(&self, round: u32) -> Option<String> {
        let folder = self.folder.as_deref()?;
        let lines = read_text(&lines_path(folder, round), MAX_RUN_FILE).ok()?;
        let read_small = |path: PathBuf| read_text(&path, MAX_CONFIG_BYTES);
        let dropped = read_small(dropped_path(folder, round)).unwrap_or_default();
        let wanted = read_small(checksum_path(folder, round)).ok()?;
        (wanted == checksum(&lines, &dropped)).then_some(lines)
    }

    /// Adds a saved round. The text of its lines is not changed: formatting the parsed numbers again could change
    /// their last digit.
    fn restore(&mut self, lines: &str) -> Result<(), Error> {
        let folder = self.folder.as_deref().expect("lines were loaded from this folder");
        let round = self.n_done + 1;
        let drafts = read_lines(&lines_path(folder, round), lines, self.gold)?.drafts;
        let dropped = load_dropped(&dropped_path(folder, round))?;
        for draft in &drafts {
            self.novelty.record(draft);
        }
        self.n_done = round;
        self.extend(drafts, lines, &dropped);
        Ok(())
    }
}

fn lines_path(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("round-{round}.jsonl"))
}

/// The file with the counts of a round's sentences that did not become drafts. It exists only if there are any.
fn dropped_path(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("round-{round}.dropped.toml"))
}

/// The file with the checksum of a round. This file is written last: a round without it is not complete.
fn checksum_path(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("round-{round}.sha256"))
}

/// Returns the checksum of a round's lines and of its counts, which may be empty.
fn checksum(lines: &str, dropped: &str) -> String {
    sha256([lines, dropped].concat().as_bytes())
}

fn save(folder: &Path, round: u32, lines: &str, dropped: &RejectedCounts) -> Result<(), Error> {
    create_folder(folder)?;
    write_whole(&lines_path(folder, round), lines.as_bytes())?;
    let mut counts = String::new();
    if !dropped.is_empty() {
        counts = toml::to_string(dropped).expect("counts are a TOML table");
        write_whole(&dropped_path(folder, round), counts.as_bytes())?;
    }
    write_whole(&checksum_path(folder, round), checksum(lines, &counts).as_bytes())
}

fn load_dropped(path: &Path) -> Result<RejectedCounts, Error> {
    let path = path.to_path_buf();
    match read_text(&path, MAX_CONFIG_BYTES) {
        Ok(text) => toml::from_str(&text).map_err(|_| melm_nn::Error::State { path }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RejectedCounts::default()),
        Err(source) => Err(Error::Read { path, source }),
    }
}
