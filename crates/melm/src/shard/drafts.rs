//! Joins the drafts of shards.
//!
//! A run without shards writes the drafts round by round, and each round in the order of the sources. A draft that
//! repeats an earlier draft has a verdict that says so. A shard cannot know the drafts of other shards, so this verdict
//! is found again when shards are joined. All other verdicts depend only on gold, which every shard reads.

use std::collections::HashSet;

use serde::Deserialize;

use super::error::ShardError;
use super::set::ShardText;
use crate::draft::Verdict;

/// The keys of a draft that joining needs.
#[derive(Deserialize)]
struct DraftKeys {
    round: u32,
    verdict: Verdict,
    tokens: Vec<String>,
    tags: Vec<String>,
}

/// Joins the drafts of all shards, which are in the order of the input.
pub(super) fn join_drafts(shards: &[ShardText]) -> Result<String, ShardError> {
    let mut drafts = Vec::new();
    for shard in shards {
        for (at, line) in shard.text.lines().enumerate() {
            let keys: DraftKeys = serde_json::from_str(line)
                .map_err(|error| shard.wrong_line(at, error.to_string()))?;
            drafts.push((keys, line));
        }
    }
    // The sort is stable, so the sources stay in order.
    drafts.sort_by_key(|(keys, _)| keys.round);
    let mut seen = HashSet::new();
    let mut joined = String::new();
    for (keys, line) in drafts {
        let is_repeated = match keys.verdict {
            Verdict::New | Verdict::RepeatsDraft => !seen.insert((keys.tokens, keys.tags)),
            _ => false,
        };
        if is_repeated && keys.verdict == Verdict::New {
            joined += &mark_repeated(line);
        } else {
            joined += line;
        }
        joined.push('\n');
    }
    Ok(joined)
}

/// Changes the verdict of a line from `new` to `repeats-draft`. Everything else keeps its bytes, because reading and
/// writing a number as JSON can change its last digit. Quotes inside a JSON text are escaped, so the pattern cannot be
/// part of a text.
fn mark_repeated(line: &str) -> String {
    let [new, repeated] = [Verdict::New, Verdict::RepeatsDraft].map(|verdict| {
        let name = serde_json::to_string(&verdict).expect("a verdict is a JSON text");
        format!("\"verdict\":{name}")
    });
    line.replacen(&new, &repeated, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(round: u32, verdict: &str, token: &str) -> String {
        format!(
            "{{\"round\":{round},\"verdict\":\"{verdict}\",\"tokens\":[\"{token}\"],\"tags\":[\"B-X\"],\"p\":0.30000000000000004}}\n"
        )
    }

    #[test]
    fn drafts_are_ordered_by_round_and_repetitions_across_shards_are_marked() {
        let shard = |lines: &[String]| ShardText { name: "a".into(), text: lines.concat() };
        let first = shard(&[
            line(1, "new", "a"),
            line(1, "repeats-gold", "b"),
            line(2, "new", "c"),
            line(2, "repeats-draft", "a"),
        ]);
        // In this shard, `c` is new and then repeated. In the joined drafts, `c` of round 1 comes before `c` of the
        // first shard in round 2.
        let second = shard(&[line(1, "new", "c"), line(2, "new", "a"), line(2, "new", "d")]);
        let expected = [
            line(1, "new", "a"),
            line(1, "repeats-gold", "b"),
            line(1, "new", "c"),
            line(2, "repeats-draft", "c"),
            line(2, "repeats-draft", "a"),
            line(2, "repeats-draft", "a"),
            line(2, "new", "d"),
        ];
        assert_eq!(join_drafts(&[first, second]).unwrap(), expected.concat());
    }

    #[test]
    fn a_line_that_is_not_a_draft_is_named() {
        let shard = ShardText { name: "a".into(), text: line(1, "new", "a") + "{}\n" };
        let error = join_drafts(&[shard]).unwrap_err().to_string();
        assert!(error.starts_with("`a`, line 2 of the content: missing field"), "{error}");
    }
}
