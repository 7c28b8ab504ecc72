//! Provides random corpora in every scheme, and tokenizers.

use std::path::Path;

use melm::pieces::{Tokenizer, TokenizerFiles};
use melm_text::{
    Corpus, EntityTypes, Mention, ReadOptions, Scheme, Sentence, Source, Tag, Token, write_tags,
};
use proptest::prelude::*;

/// The two tiny tokenizers, one of each kind.
pub(crate) const TINY: [&str; 2] = ["unigram", "byte_level"];

pub(crate) fn tokenizer(name: &str) -> Tokenizer {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces");
    Tokenizer::open(&testdata.join(name)).unwrap()
}

pub(crate) fn mini() -> Tokenizer {
    let files = TokenizerFiles {
        tokenizer: melm_mini::TOKENIZER.to_owned(),
        tokenizer_config: Some(melm_mini::TOKENIZER_CONFIG.to_owned()),
        special_tokens_map: Some(melm_mini::SPECIAL_TOKENS_MAP.to_owned()),
    };
    Tokenizer::from_files(files).unwrap()
}

/// Reads a corpus from `token/tag` pairs; `|/O` ends a sentence.
pub(crate) fn read(text: &str) -> Corpus {
    let rows: String =
        text.split_ascii_whitespace().map(|row| row.replace('/', " ") + "\n").collect();
    let source = Source::from_text("test.conll", rows.replace("| O\n", "\n"));
    Corpus::read(&source, &ReadOptions::default()).unwrap()
}

/// Generates ordinary and unusual tokens.
fn token() -> impl Strategy<Value = Token> {
    let texts = prop_oneof![
        6 => "[A-Z]?[a-z]{1,9}",
        2 => "[A-ZÄÖa-zäöüñ.,<>/_0-9-]{1,8}",
        1 => any::<String>(),
        1 => "[\u{200b}-\u{200d}\u{feff}\u{301}\u{2581}中日本ﬁ① ]{1,3}",
        1 => prop::sample::select(vec!["<mask>", "</s>", "<unk>", "<B-PER>", "\u{fffd}", "🇪🇺é"])
            .prop_map(str::to_owned),
    ];
    texts.prop_filter_map("no token", |text| Token::new(&text).ok())
}

/// Generates a token and its role: outside mentions, beginning a mention of some type, or continuing the mention
/// before it.
fn step() -> impl Strategy<Value = (Token, Step)> {
    let step = prop_oneof![
        4 => Just(Step::Outside),
        3 => (0usize..3).prop_map(Step::Begin),
        3 => Just(Step::Continue),
    ];
    (token(), step)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Outside,
    Begin(usize),
    Continue,
}

/// Generates corpora of up to four sentences in any scheme, with named or unnamed types.
pub(crate) fn corpus() -> impl Strategy<Value = Corpus> {
    let sentences = prop::collection::vec(prop::collection::vec(step(), 1..14), 1..5);
    (prop::sample::select(Scheme::ALL.to_vec()), sentences, any::<bool>()).prop_map(
        |(scheme, sentences, is_unnamed)| {
            let mut types = EntityTypes::default();
            let names = if is_unnamed { [""; 3] } else { ["PER", "creative work", "ORG"] };
            let handles = names.map(|name| types.intern(name));
            let sentences = sentences.into_iter().map(|steps| {
                let mut mentions: Vec<Mention> = Vec::new();
                for (at, (_, step)) in steps.iter().enumerate() {
                    match (step, mentions.last_mut()) {
                        (Step::Begin(kind), _) => {
                            let entity_type = handles[*kind];
                            mentions.push(Mention { entity_type, tokens: at..at + 1 });
                        }
                        (Step::Continue, Some(last)) if last.tokens.end == at => {
                            last.tokens.end += 1;
                        }
                        _ => {}
                    }
                }
                let mut tags = vec![Tag::Outside; steps.len()];
                write_tags(mentions, scheme, &mut tags);
                Sentence::new(steps.into_iter().map(|(token, _)| token).collect(), tags).unwrap()
            });
            Corpus::new(types, scheme, sentences.collect()).unwrap()
        },
    )
}
