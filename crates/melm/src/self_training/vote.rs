//! The vote of one tagger of a panel: the mentions that it predicts in every sentence.

use std::path::{Path, PathBuf};

use melm_nn::files::{read_bytes, read_text};
use melm_text::{EntityType, EntityTypes, Mention};

use crate::Error;
use crate::files::{MAX_RUN_FILE, create_folder, sha256, write_whole};
use crate::shard::Shard;

/// The folder of the votes, in the folder of a run's stages.
pub(crate) const VOTES: &str = "votes";

/// The prediction of one tagger for one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// The mentions that the tagger predicts, in order.
    pub mentions: Vec<Mention>,
    /// The natural logarithm of the probability of the predicted tags.
    pub log_probability: f64,
}

impl Vote {
    /// Returns true if the vote can belong to a sentence of `n_tokens` tokens: its mentions have tokens, are in order, do
    /// not overlap and lie inside the sentence, and it has a probability.
    pub fn fits(&self, n_tokens: usize) -> bool {
        let mut end = 0;
        let are_inside = self.mentions.iter().all(|Mention { tokens, .. }| {
            let is_after = end <= tokens.start && tokens.start < tokens.end;
            end = tokens.end;
            is_after && end <= n_tokens
        });
        // Rounding can make the logarithm of 1 a little larger than 0.
        are_inside && self.log_probability < 1.0
    }
}

/// The votes of one tagger for all sentences of a text.
pub type TaggerVotes = Vec<Vote>;

/// Stores votes, so that a tagger need not be trained again: for an interrupted run on disk, and for an experiment in
/// memory.
pub trait VoteStore {
    /// Returns the votes with this key, if they are stored.
    fn load(&mut self, key: &VoteKey) -> Option<TaggerVotes>;

    /// Stores votes.
    fn save(&mut self, key: &VoteKey, votes: &TaggerVotes) -> Result<(), Error>;

    /// Returns true if this process trains a tagger whose votes are not stored. Otherwise another process trains it.
    fn is_own(&self, _: &VoteKey) -> bool {
        true
    }
}

/// Identifies the votes of a tagger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VoteKey {
    /// The number of the pass, from 1.
    pub pass: u32,
    /// The number of the tagger in its panel, from 1.
    pub tagger: usize,
    /// A hash of the training set, the settings of the tagger and the text.
    pub content: String,
}

/// A store that stores nothing.
pub(super) struct NoVotes;

impl VoteStore for NoVotes {
    fn load(&mut self, _: &VoteKey) -> Option<TaggerVotes> {
        None
    }

    fn save(&mut self, _: &VoteKey, _: &TaggerVotes) -> Result<(), Error> {
        Ok(())
    }
}

/// Stores votes in the folder of a run. A file whose checksum or key does not fit is ignored.
pub(super) struct VoteFolder<'a> {
    pub(super) dir: PathBuf,
    pub(super) types: &'a EntityTypes,
    /// The share of the taggers that this process trains. Tagger `t` belongs to shard `(t - 1) % count + 1`.
    pub(super) shard: Option<Shard>,
}

impl VoteFolder<'_> {
    fn path(&self, key: &VoteKey) -> PathBuf {
        self.dir.join(format!("pass-{}-tagger-{}.votes", key.pass, key.tagger))
    }
}

impl VoteStore for VoteFolder<'_> {
    fn load(&mut self, key: &VoteKey) -> Option<TaggerVotes> {
        let text = read_text(&self.path(key), MAX_RUN_FILE).ok()?;
        parse_votes(&text, &key.content, self.types)
    }

    fn save(&mut self, key: &VoteKey, votes: &TaggerVotes) -> Result<(), Error> {
        create_folder(&self.dir)?;
        let lines: String = votes.iter().map(|vote| write_vote(vote) + "\n").collect();
        let header = format!("{} {}\n", key.content, sha256(lines.as_bytes()));
        write_whole(&self.path(key), (header + &lines).as_bytes())
    }

    fn is_own(&self, key: &VoteKey) -> bool {
        self.shard.is_none_or(|shard| (key.tagger - 1) % shard.count() == shard.number() - 1)
    }
}

/// Copies the votes and metrics of other folders of the same run into `dir`, unless it has them. Returns the number of
/// copied votes.
pub(crate) fn copy_votes(from: &[PathBuf], dir: &Path) -> Result<usize, Error> {
    let mut n = 0;
    for other in from {
        let failed = |source| Error::Read { path: other.clone(), source };
        let entries = match std::fs::read_dir(other) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        create_folder(dir)?;
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let is_votes = path.extension().is_some_and(|ending| ending == "votes");
            let is_metrics = path.extension().is_some_and(|ending| ending == "jsonl");
            let to = dir.join(path.file_name().unwrap_or_default());
            if (is_votes || is_metrics) && !to.exists() {
                let content = read_bytes(&path, MAX_RUN_FILE).map_err(failed)?;
                write_whole(&to, &content)?;
                n += usize::from(is_votes);
            }
        }
    }
    Ok(n)
}

/// Writes a vote as its log-probability, followed by `start:end:type` for each mention. The text of a number gives
/// exactly the same number when it is read.
fn write_vote(vote: &Vote) -> String {
    let mut line = vote.log_probability.to_string();
    for Mention { entity_type, tokens } in &vote.mentions {
        line += &format!(" {}:{}:{}", tokens.start, tokens.end, entity_type.index());
    }
    line
}

/// Parses the votes of a file. `content` is the hash of its [`VoteKey`], and `types` are those of the training set.
///
/// Returns `None` if the votes have another key or another checksum, or if a line is not valid. Whether the votes fit the
/// sentences of a text is checked by [`Vote::fits`].
pub fn parse_votes(text: &str, content: &str, types: &EntityTypes) -> Option<TaggerVotes> {
    let (header, lines) = text.split_once('\n')?;
    let is_whole = header == format!("{content} {}", sha256(lines.as_bytes()));
    is_whole.then(|| lines.lines().map(|line| read_vote(line, types)).collect())?
}

/// Reads a vote. Returns `None` if the line is not valid.
fn read_vote(line: &str, types: &EntityTypes) -> Option<Vote> {
    let known: Vec<EntityType> = types.iter().collect();
    let mut parts = line.split(' ');
    let log_probability = parts.next()?.parse().ok()?;
    let mention = |part: &str| {
        let numbers: Vec<usize> = part.split(':').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let [start, end, index] = numbers[..] else { return None };
        let entity_type = *known.get(index)?;
        Some(Mention { entity_type, tokens: start..end })
    };
    let mentions = parts.map(mention).collect::<Option<_>>()?;
    Some(Vote { mentions, log_probability })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_votes_are_read_back_exactly_and_only_for_their_key() {
        let mut types = EntityTypes::default();
        let [person, place] = ["PER", "LOC"].map(|name| types.intern(name));
        let votes = vec![
            Vote { mentions: Vec::new(), log_probability: -1.0 / 3.0 },
            Vote {
                mentions: vec![
                    Mention { entity_type: place, tokens: 0..1 },
                    Mention { entity_type: person, tokens: 4..7 },
                ],
                log_probability: -f64::MIN_POSITIVE,
            },
        ];
        let parent = tempfile::tempdir().unwrap();
        let mut store = VoteFolder { dir: parent.path().join("votes"), types: &types, shard: None };
        let key = VoteKey { pass: 1, tagger: 2, content: "a".to_owned() };
        assert_eq!(store.load(&key), None);
        store.save(&key, &votes).unwrap();
        assert_eq!(store.load(&key), Some(votes));
        assert_eq!(store.load(&VoteKey { content: "b".to_owned(), ..key.clone() }), None);
        let path = store.path(&key);
        let changed = std::fs::read_to_string(&path).unwrap().replace("4:7", "4:8");
        std::fs::write(&path, changed).unwrap();
        assert_eq!(store.load(&key), None);
    }

    #[test]
    fn votes_for_other_sentences_do_not_fit() {
        let mut types = EntityTypes::default();
        types.intern("PER");
        let fits = |line: &str| {
            let line = format!("{line}\n");
            let text = format!("a {}\n{line}", sha256(line.as_bytes()));
            parse_votes(&text, "a", &types).unwrap()[0].fits(5)
        };
        assert!(fits("-0.5") && fits("0 0:5:0") && fits("-inf 0:1:0 1:2:0 4:5:0"));
        // Outside of the sentence, empty, backwards, out of order, overlapping, and impossible probabilities.
        for line in ["0 4:6:0", "0 2:2:0", "0 3:2:0", "0 2:3:0 0:1:0", "0 0:3:0 2:4:0", "NaN", "1"]
        {
            assert!(!fits(line), "{line}");
        }
    }
}
