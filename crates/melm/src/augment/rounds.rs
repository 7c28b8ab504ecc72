//! The rounds of a run: collected in memory and, if the run has a folder, saved so that an interrupted run can resume.

use std::path::{Path, PathBuf};

use melm_text::Corpus;

use super::algorithm::Drafts;
use crate::Error;
use crate::draft::{Draft, Novelty, read_lines, to_lines};
use crate::files::{sha256, write_whole};
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

    /// Reads the lines of a saved round. Returns `None` if the round is missing or its checksum is wrong.
    fn load(&self, round: u32) -> Option<String> {
        let folder = self.folder.as_deref()?;
        let text = std::fs::read(lines_path(folder, round)).ok()?;
        let checksum = std::fs::read_to_string(checksum_path(folder, round)).ok()?;
        (checksum == sha256(&text)).then(|| String::from_utf8_lossy(&text).into_owned())
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

/// The file with the checksum of a round's lines. This file is written last: a round without it is not complete.
fn checksum_path(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("round-{round}.sha256"))
}

fn save(folder: &Path, round: u32, lines: &str, dropped: &RejectedCounts) -> Result<(), Error> {
    std::fs::create_dir_all(folder)
        .map_err(|source| Error::Write { path: folder.to_path_buf(), source })?;
    write_whole(&lines_path(folder, round), lines.as_bytes())?;
    if !dropped.is_empty() {
        let counts = toml::to_string(dropped).expect("counts are a TOML table");
        write_whole(&dropped_path(folder, round), counts.as_bytes())?;
    }
    write_whole(&checksum_path(folder, round), sha256(lines.as_bytes()).as_bytes())
}

fn load_dropped(path: &Path) -> Result<RejectedCounts, Error> {
    let path = path.to_path_buf();
    match std::fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text).map_err(|_| melm_nn::Error::State { path }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RejectedCounts::default()),
        Err(source) => Err(Error::Read { path, source }),
    }
}
