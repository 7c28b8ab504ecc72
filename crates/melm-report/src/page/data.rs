//! The data of the page, from which the script makes the list of sentences.
//!
//! A source is stored once. A draft that differs from its source only in mentions is stored as the new texts of these
//! mentions, so that ten thousand drafts fit into the page.

use std::collections::HashMap;

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::sentences::MAX_OBJECTIONS;
use crate::candidate::{Candidate, Objection, Origin};
use crate::numbers::{describe_verdict, verdict_name};
use crate::{Report, Segment};

/// Returns the element with the data.
pub(super) fn element(report: &Report) -> Markup {
    let json = data(report).to_string();
    html! { script #data type="application/json" { (PreEscaped(escape(&json))) } }
}

/// Escapes JSON inside of a script element: without `<`, nothing in it can end the element or start a comment.
fn escape(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The data of the page:
///
/// - `key`: the key under which the browser stores decisions
/// - `types`: the names of the entity types
/// - `origins`, `verdicts`: pairs of value and description
/// - `sources`: the place and the segments of each source
/// - `items`: the candidates; see [`pack`]
fn data(report: &Report) -> Value {
    let mut book = Book::default();
    let items: Vec<Value> = report.candidates.iter().map(|one| pack(one, &mut book)).collect();
    json!({
        "key": report.key,
        "types": report.types,
        "origins": Origin::ALL.map(|origin| [origin.name(), origin.description()]),
        "verdicts": book.verdicts,
        "sources": book.sources,
        "items": items,
    })
}

/// The values that items refer to by index.
#[derive(Default)]
struct Book {
    sources: Vec<Value>,
    by_content: HashMap<String, usize>,
    verdicts: Vec<[&'static str; 3]>,
}

impl Book {
    fn source(&mut self, place: &str, segments: &[Segment]) -> usize {
        let source = json!([place, pack_segments(segments)]);
        let next = self.sources.len();
        let sources = &mut self.sources;
        *self.by_content.entry(source.to_string()).or_insert_with(|| {
            sources.push(source);
            next
        })
    }

    fn verdict(&mut self, one: &Candidate) -> usize {
        let description = describe_verdict(one.verdict, one.origin == Origin::Text);
        let kept = if one.verdict.is_kept() { "kept" } else { "lost" };
        let entry = [verdict_name(one.verdict), description, kept];
        self.verdicts.iter().position(|known| *known == entry).unwrap_or_else(|| {
            self.verdicts.push(entry);
            self.verdicts.len() - 1
        })
    }
}

/// A candidate, as a list without keys to save space:
///
/// 0. id
/// 1. index of the verdict
/// 2. index of the origin
/// 3. round
/// 4. probability, or null
/// 5. number of new mentions
/// 6. number of mentions
/// 7. index of the source, or the place as text
/// 8. the new texts of the source's mentions, each after its index; after a place, all segments
/// 9. objections
/// 10. number of objections that are left out
///
/// The last two are missing if there are none.
fn pack(one: &Candidate, book: &mut Book) -> Value {
    let origin = Origin::ALL.iter().position(|origin| *origin == one.origin);
    let probability = one.probability.map(|p| (p * 1e4).round() / 1e4);
    let replaced =
        one.source.as_ref().and_then(|source| Some((source, replacements(one, source)?)));
    let (place, content): (Value, Value) = match replaced {
        Some((source, texts)) => (book.source(&one.place, source).into(), texts.into()),
        None => (one.place.clone().into(), pack_segments(&one.segments)),
    };
    let mut item = vec![
        one.id.clone().into(),
        book.verdict(one).into(),
        json!(origin),
        one.round.into(),
        json!(probability),
        one.n_new.into(),
        one.n_mentions.into(),
        place,
        content,
    ];
    if !one.objections.is_empty() {
        item.push(one.objections.iter().take(MAX_OBJECTIONS).map(pack_objection).collect());
        let n_more = one.objections.len().saturating_sub(MAX_OBJECTIONS);
        item.extend((n_more > 0).then(|| n_more.into()));
    }
    item.into()
}

/// Returns the new texts of the source's mentions, each after the index of its mention, if the candidate differs from
/// its source in nothing else.
fn replacements(one: &Candidate, source: &[Segment]) -> Option<Vec<Value>> {
    if one.segments.len() != source.len() {
        return None;
    }
    let (mut texts, mut n_mentions) = (Vec::new(), 0_usize);
    for (own, old) in one.segments.iter().zip(source) {
        match (own, old) {
            (
                Segment::Replaced { entity_type, text, .. },
                Segment::Mention { entity_type: t, .. },
            ) if entity_type == t => {
                texts.extend([n_mentions.into(), text.clone().into()]);
            }
            (own, old) if own == old => {}
            _ => return None,
        }
        n_mentions += usize::from(matches!(old, Segment::Mention { .. }));
    }
    Some(texts)
}

/// Segments: a string is plain text; a list has the type and the text of a mention and, if it was replaced, the old
/// text. The type of swapped text is -1.
fn pack_segments(all: &[Segment]) -> Value {
    let pack = |segment: &Segment| match segment {
        Segment::Plain(text) => json!(text),
        Segment::Mention { entity_type, text } => json!([entity_type, text]),
        Segment::Replaced { entity_type, text, old } => json!([entity_type, text, old]),
        Segment::Swapped { text, old } => json!([-1, text, old]),
    };
    all.iter().map(pack).collect()
}

/// An objection: four values of the judge, or four of the panel with a number third.
fn pack_objection(objection: &Objection) -> Value {
    match objection {
        Objection::Judge { token, wanted, found, probability } => {
            json!([token, wanted, found, (probability * 100.0).round() / 100.0])
        }
        Objection::Panel { text, entity_type, votes, panel } => {
            json!([text, entity_type, votes, panel])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_end_the_script_element() {
        let hostile = json!({ "a": "</script><!--<img src=x onerror=alert(1)>&amp;" }).to_string();
        let escaped = escape(&hostile);
        assert!(!escaped.contains(['<', '>', '&']));
        assert_eq!(
            serde_json::from_str::<Value>(&escaped).unwrap(),
            serde_json::from_str::<Value>(&hostile).unwrap()
        );
    }
}
