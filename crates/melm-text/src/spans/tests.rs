use std::ops::Range;

use proptest::prelude::*;

use super::builder::document_tokenizer;
use super::*;
use crate::format::ReadOptions;
use crate::formats::Format;
use crate::problem::Fault;
use crate::scheme::Scheme;
use crate::sentence::{Sentence, Splice};
use crate::source::Source;
use crate::tag::EntityTypes;
use crate::token::Token;
use crate::{Error, Structure};

/// Checks one record and returns its document and the counts, or the faults.
fn build(raw: RawDocument, options: &ReadOptions) -> Result<(Document, SpanCounts), Vec<Fault>> {
    let source = Source::from_text("a", "");
    let mut builder = DocumentsBuilder::new(&source, Format::JSONL, OffsetUnit::CodePoint, options);
    builder.add(raw);
    match builder.finish() {
        Ok(Structure::Documents(all)) => Ok((all.documents[0].clone(), all.counts.clone())),
        Err(Error::Data { problems, .. }) => {
            Err(problems.first().iter().map(|problem| problem.fault.clone()).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn raw(text: &str, spans: &[(Range<usize>, &str, Option<&str>)]) -> RawDocument {
    let spans = spans.iter().map(|(range, entity_type, surface)| RawSpan {
        start: range.start,
        end: range.end,
        entity_type: (*entity_type).to_owned(),
        surface: surface.map(str::to_owned),
        ..RawSpan::default()
    });
    RawDocument { text: text.to_owned(), spans: spans.collect(), ..RawDocument::default() }
}

fn tokens(document: &Document) -> Vec<&str> {
    document.tokens().iter().map(|token| &document.text()[token.clone()]).collect()
}

#[test]
fn a_span_that_cuts_a_token_splits_it_and_is_counted() {
    let raw = raw("The Paris-based firm.", &[(4..9, "LOC", Some("Paris"))]);
    let (document, counts) = build(raw, &ReadOptions::default()).unwrap();
    assert_eq!(tokens(&document), ["The", "Paris", "-based", "firm", "."]);
    assert_eq!((counts.n_cut_tokens, counts.n_spans), (1, 1));
    let mut types = EntityTypes::default();
    let tags = document.sentence_tags(&(0..5), Scheme::Iob2, &mut types);
    let tags: Vec<_> = tags.iter().map(|&t| types.spell(t, Scheme::Iob2).to_string()).collect();
    assert_eq!(tags, ["O", "B-LOC", "O", "O", "O"]);
}

#[test]
fn overlapping_spans_are_reduced_to_the_longest_or_refused() {
    let nested = || raw("Bank of England", &[(8..15, "LOC", None), (0..15, "ORG", None)]);
    let (document, counts) = build(nested(), &ReadOptions::default()).unwrap();
    assert_eq!((document.spans().len(), document.flat_spans().len()), (2, 1));
    assert_eq!(counts.n_overlapping, 1);
    let options = ReadOptions { overlaps: OverlapRule::Refuse, ..ReadOptions::default() };
    let fault = SpanFault::Overlap { text: "England".into(), other: "Bank of England".into() };
    assert_eq!(build(nested(), &options).unwrap_err(), [Fault::Span(fault)]);
}

#[test]
fn a_stated_text_that_differs_names_the_likely_cause() {
    let cause = |raw: RawDocument| match build(raw, &ReadOptions::default()).unwrap_err().remove(0)
    {
        Fault::Span(SpanFault::Surface { cause, .. }) => cause,
        other => panic!("{other}"),
    };
    let utf16 = raw("😀😀 in Bonn now", &[(8..12, "LOC", Some("Bonn"))]);
    assert_eq!(cause(utf16), MismatchCause::Unit(OffsetUnit::Utf16));
    // The offsets lie behind the end of the text, if they are counted in code points.
    let end = raw("😀😀 in Bonn", &[(8..12, "LOC", Some("Bonn"))]);
    assert_eq!(cause(end), MismatchCause::Unit(OffsetUnit::Utf16));
    let clusters = raw("e\u{301}te\u{301} in Bonn", &[(7..11, "LOC", Some("Bonn"))]);
    assert_eq!(cause(clusters), MismatchCause::Unit(OffsetUnit::Grapheme));
    let lines = raw("a\r\nb\r\nin Bonn now", &[(7..11, "LOC", Some("Bonn"))]);
    assert_eq!(cause(lines), MismatchCause::LineEnds);
    let later = raw("He lives in Bonn", &[(9..13, "LOC", Some("Bonn"))]);
    assert_eq!(cause(later), MismatchCause::Elsewhere { distance: 3 });
    let missing = raw("He lives in Bonn", &[(9..13, "LOC", Some("Oslo"))]);
    assert_eq!(cause(missing), MismatchCause::Missing);
}

#[test]
fn bad_spans_are_refused_and_white_space_is_trimmed() {
    let fault = |raw| build(raw, &ReadOptions::default()).unwrap_err().remove(0).to_string();
    assert_eq!(fault(raw("Bonn", &[(2..2, "LOC", None)])), "the span 2 to 2 has no characters");
    assert_eq!(
        fault(raw("Bonn", &[(0..5, "LOC", None)])),
        "offset 5 is after the end of the text, which has 4 code points"
    );
    assert_eq!(fault(raw("a  b", &[(1..3, "LOC", None)])), "the span contains only white space");
    assert_eq!(fault(raw("Bonn", &[(0..4, "", None)])), "the span has no entity type");
    assert!(fault(raw("Bonn", &[(0..4, "a\tb", None)])).contains("is not a tag"));
    let trimmed = raw("in Bonn .", &[(2..8, "LOC", Some(" Bonn "))]);
    let (document, counts) = build(trimmed, &ReadOptions::default()).unwrap();
    assert_eq!((document.spans()[0].range.clone(), counts.n_trimmed), (3..7, 1));
}

#[test]
fn sentences_are_split_and_a_span_joins_them() {
    let text = "It rained. Ada sang.";
    let sentences = |spans: &[(Range<usize>, &str, Option<&str>)]| {
        build(raw(text, spans), &ReadOptions::default()).unwrap().0.sentences().to_vec()
    };
    assert_eq!(sentences(&[]), [0..3, 3..6]);
    assert_eq!(sentences(&[(3..14, "X", None)]), std::iter::once(0..6).collect::<Vec<_>>());
    let (document, _) =
        build(raw(text, &[(11..14, "PER", None)]), &ReadOptions::default()).unwrap();
    let second = document.sentence(1);
    assert_eq!(second.text(), "Ada sang.");
    assert_eq!(second.spans()[0].range, 0..3);
}

#[test]
fn scripts_without_spaces_are_split_into_characters_and_counted() {
    let (document, counts) =
        build(raw("我在北京", &[(2..4, "LOC", Some("北京"))]), &ReadOptions::default()).unwrap();
    assert_eq!((tokens(&document).len(), counts.n_by_character), (4, 1));
}

#[test]
fn new_mentions_get_correct_offsets_and_old_spacing_stays() {
    let text = "(Bonn,  as 😀 said, is near Köln!)";
    let spans = [(1..5, "LOC"), (30..35, "LOC")];
    let spans = spans.map(|(range, name)| Span { range, entity_type: name.into() });
    let document = Document::new(text, spans.to_vec(), &document_tokenizer());
    let (mut sentences, mut types) = (Vec::new(), EntityTypes::default());
    for_each_sentence(std::slice::from_ref(&document), Scheme::Iob2, |record, own| {
        sentences.push(Sentence::from_record(record).unwrap());
        types = own.clone();
        Ok::<(), ()>(())
    })
    .unwrap();
    let gold = &sentences[0];
    let same = Document::from_sentence(gold, &types);
    assert_eq!((same.text(), same.spans()), (text, document.spans()));

    let donor = Sentence::new(
        ["St.", "Pölten"].map(|token| Token::new(token).unwrap()).to_vec(),
        vec![gold.tags()[1]; 2],
    )
    .unwrap();
    let mut mentions: Vec<_> = gold.mentions().collect();
    mentions[0].tokens = 1..3;
    mentions[1].tokens = mentions[1].tokens.start + 1..mentions[1].tokens.end + 1;
    let splice = Splice { replaced: 1..2, donor: &donor, tokens: 0..2 };
    let draft = gold.splice([splice], mentions, Scheme::Iob2);
    let new = Document::from_sentence(&draft, &types);
    assert_eq!(new.text(), "(St. Pölten,  as 😀 said, is near Köln!)");
    let found: Vec<_> = new.spans().iter().map(|span| &new.text()[span.range.clone()]).collect();
    assert_eq!(found, ["St. Pölten", "Köln"]);
}

/// Texts with the characters that shift offsets.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-zA-Z0-9äÉß]{1,4}",
        "[-./,:;'’\"()!?–]",
        "[ \u{a0}\u{200b}\u{200d}\u{ad}\u{feff}\u{200f}\u{301}]",
        "[אבגد👩🏽🇩🇪❤️北]",
        Just(" ".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("-DOCSTART-".to_owned()),
    ];
    proptest::collection::vec(piece, 1..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn spans_to_tags_to_spans_is_the_identity(
        text in texts(),
        places in proptest::collection::vec((0usize..40, 1usize..8, 0usize..2), 0..5),
    ) {
        let n = text.chars().count();
        let spans: Vec<_> = places
            .iter()
            .map(|&(start, length, kind)| (start.min(n)..(start + length).min(n), ["A", "B"][kind], None))
            .filter(|(range, _, _)| !range.is_empty())
            .collect();
        let Ok((document, _)) = build(raw(&text, &spans), &ReadOptions::default()) else {
            return Ok(());
        };
        // Tokens and gaps are the text.
        let mut again = String::new();
        let mut at = 0;
        for token in document.tokens() {
            again.push_str(&text[at..token.start]);
            again.push_str(&text[token.clone()]);
            at = token.end;
            prop_assert!(Token::new(&text[token.clone()]).is_ok());
        }
        again.push_str(&text[at..]);
        prop_assert_eq!(&again, &text);
        // Spans to tags and back.
        let mut types = EntityTypes::default();
        let tags: Vec<_> = document
            .sentences()
            .iter()
            .map(|sentence| document.sentence_tags(sentence, Scheme::Iob2, &mut types))
            .collect();
        let back = document.with_tags(&tags, &types);
        let wanted: Vec<_> = document.flat_spans().cloned().collect();
        prop_assert_eq!(back.spans(), &wanted[..]);
        prop_assert_eq!(back.text(), &*text);
    }
}
