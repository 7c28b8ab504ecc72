//! Tests of `MulDA`: it completes beginnings of gold sentences, with an mBART folder and with a model without
//! pretraining.

use std::path::Path;

use melm::Error;
use melm::augment::{Backbones, Drafts};
use melm::draft::{Draft, read_lines};
use melm::methods::Method;
use melm::methods::PretrainedSeq2Seq;
use melm::methods::RejectReason;
use melm::models::Pretrained;
use melm::pieces::Tokenizer;
use melm::plan::Plan;
use melm::stage::{Control, Event};
use melm_nn::config::Config;
use melm_nn::mlm::MaskedLm;
use melm_nn::seq2seq::{Seq2Seq, Seq2SeqConfig, StackConfig};
use melm_text::Corpus;

use crate::support::{NONE, corpus, plan, run, text};

const SMALL: [&str; 10] = [
    "mulda.width=32",
    "mulda.heads=2",
    "mulda.layers=1",
    "mulda.dropout=0.0",
    "mulda.attention_dropout=0.0",
    "mulda.learning_rate=0.01",
    "mulda.budget=60 epochs",
    "mulda.batch_size=4",
    "mulda.longest=40",
    "generate.rounds=2",
];

fn small_plan(more: &[&str]) -> Plan {
    plan(Method::Mulda, &[&SMALL[..], more].concat())
}

fn tokenizer() -> Tokenizer {
    let pieces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/unigram");
    Tokenizer::open(&pieces).unwrap()
}

/// A tiny XLM-R, of which only the tokenizer is used.
fn pieces(dir: &Path) -> Pretrained {
    let tokenizer = tokenizer();
    tokenizer.save(dir).unwrap();
    let config = Config {
        vocab_size: tokenizer.n_pieces(),
        hidden_size: 8,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 8,
        ..Config::default()
    };
    MaskedLm::random(&config, 1).unwrap().save(dir).unwrap();
    Pretrained::open(dir).unwrap()
}

/// Writes the folder of a tiny random mBART with these languages, and opens it.
fn mbart(dir: &Path, languages: &[&str]) -> PretrainedSeq2Seq {
    let mut tokenizer = tokenizer();
    tokenizer.add_markers(languages).unwrap();
    tokenizer.save(dir).unwrap();
    let stack = StackConfig { n_layers: 1, n_heads: 2, inner: 64 };
    let config = Seq2SeqConfig {
        vocab_size: tokenizer.n_pieces(),
        width: 32,
        encoder: stack,
        decoder: stack,
        max_pieces: 64,
        dropout: 0.1,
        attention_dropout: 0.0,
        scales_embedding: true,
        init_std: 0.05,
        pad_id: tokenizer.specials().pad,
        eos_id: tokenizer.specials().eos,
    };
    Seq2Seq::random(&config, 3).unwrap().save(dir).unwrap();
    PretrainedSeq2Seq::open(dir).unwrap()
}

fn augment_with(dir: &Path, corpus: &Corpus, plan: &Plan, backbones: Backbones<'_>) -> Drafts {
    run(dir, corpus, plan, backbones, 2, &mut |_, _| Control::Continue).unwrap()
}

fn assert_valid(corpus: &Corpus, augmented: &Drafts) {
    assert!(augmented.kept().count() >= 8, "{:?} {:?}", augmented.dropped, augmented.drafts);
    for sentence in augmented.kept() {
        assert!(sentence.mentions().next().is_some());
        assert!(corpus.scheme().violations(sentence.tags()).next().is_none());
        assert!(corpus.sentences().iter().all(|s| s.tokens() != sentence.tokens()));
        assert!(sentence.tokens().iter().all(|token| !token.as_str().contains(['<', '▁'])));
    }
    assert!(augmented.drafts.iter().all(|record| record.source.is_none()));
}

#[test]
fn a_model_without_pretraining_writes_new_sentences_in_the_pattern_of_gold() {
    let (corpus, dir) = (corpus(&text()), tempfile::tempdir().unwrap());
    let own = pieces(&dir.path().join("xlm-r"));
    let backbones = Backbones { masked_lm: Some(&own), ..NONE };
    let augmented = augment_with(dir.path(), &corpus, &small_plan(&[]), backbones);
    assert_valid(&corpus, &augmented);
    let tags = ["B-PER", "I-PER", "O", "B-LOC", "O"];
    let spelled = |draft: &Draft| -> Vec<String> {
        let spell = |tag: &_| corpus.types().spell(*tag, corpus.scheme()).to_string();
        draft.sentence.tags().iter().map(spell).collect()
    };
    let in_pattern = augmented.drafts.iter().filter(|draft| spelled(draft) == tags).count();
    assert!(2 * in_pattern > augmented.drafts.len(), "{:#?}", augmented.drafts);
}

#[test]
fn mbart_and_mbart_50_are_fine_tuned_and_write_by_sampling_and_beam_search() {
    let corpus = corpus(&text());
    for languages in [&["en_XX", "de_DE"][..], &["en_XX", "af_ZA"]] {
        for edit in ["mulda.beams=0", "mulda.beams=3"] {
            let dir = tempfile::tempdir().unwrap();
            let mbart = mbart(&dir.path().join("mbart"), languages);
            let backbones = Backbones { seq2seq: Some(&mbart), ..NONE };
            let plan = small_plan(&[edit, "mulda.tries=6", "mulda.budget=40 epochs"]);
            let augmented = augment_with(dir.path(), &corpus, &plan, backbones);
            // The model has memorised gold, so that a beam search often repeats gold sentences.
            let is_repeat =
                |reason| matches!(reason, RejectReason::RepeatsGold | RejectReason::RepeatsDraft);
            let repeats = augmented.dropped.iter().filter(|(reason, _)| is_repeat(*reason));
            let n_sound = augmented.drafts.len() + repeats.map(|(_, n)| n).sum::<usize>();
            assert!(n_sound >= 2 * 8, "{languages:?} {edit}: {:?}", augmented.dropped);
        }
    }
}

#[test]
fn one_model_learns_several_languages_and_drafts_name_their_language() {
    let (one, dir) = (corpus(&text()), tempfile::tempdir().unwrap());
    let both = Corpus::from_languages([("en", &one), ("de", &one)]);
    let own = pieces(&dir.path().join("xlm-r"));
    let mbart = mbart(&dir.path().join("mbart"), &["en_XX", "af_ZA", "de_DE"]);
    for (name, backbones) in [
        ("new", Backbones { masked_lm: Some(&own), ..NONE }),
        ("mbart", Backbones { seq2seq: Some(&mbart), ..NONE }),
    ] {
        let plan = small_plan(&["generate.rounds=1", "mulda.budget=30 epochs"]);
        let augmented = augment_with(&dir.path().join(name), &both, &plan, backbones);
        for code in ["en", "de"] {
            let own = |draft: &&Draft| draft.language(&both) == Some(code);
            assert!(augmented.drafts.iter().filter(own).count() > 2, "{name} {code}");
        }
        let again = read_lines("drafts.jsonl".as_ref(), &augmented.lines, &both).unwrap().drafts;
        let kept = again.iter().filter(|draft| draft.verdict.is_kept());
        assert!(kept.map(|draft| &draft.sentence).eq(augmented.kept()));
    }
}

#[test]
fn threads_and_interruptions_do_not_change_a_byte() {
    let (corpus, plan) =
        (corpus(&text()), small_plan(&["mulda.budget=12 epochs", "mulda.tries=4"]));
    let dir = tempfile::tempdir().unwrap();
    let own = pieces(&dir.path().join("xlm-r"));
    let backbones = Backbones { masked_lm: Some(&own), ..NONE };
    let expected = augment_with(&dir.path().join("whole"), &corpus, &plan, backbones);
    let other = dir.path().join("other");
    for (stage, at) in [("mulda", 5), ("mulda", 21), ("generate", 0)] {
        let stopped = run(&other, &corpus, &plan, backbones, 1, &mut |found, event| match event {
            Event::Progress { done, .. } if (found, done >= at) == (stage, true) => Control::Stop,
            _ => Control::Continue,
        });
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stage} {at}");
    }
    let resumed = run(&other, &corpus, &plan, backbones, 1, &mut |_, _| Control::Continue).unwrap();
    assert_eq!((resumed.lines, resumed.dropped), (expected.lines, expected.dropped));
}

#[test]
fn the_error_names_a_language_that_the_model_does_not_have() {
    let (corpus, dir) = (corpus(&text()), tempfile::tempdir().unwrap());
    let mbart = mbart(&dir.path().join("mbart"), &["de_DE"]);
    let backbones = Backbones { seq2seq: Some(&mbart), ..NONE };
    let refused =
        run(dir.path(), &corpus, &small_plan(&[]), backbones, 1, &mut |_, _| Control::Continue);
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("does not know the language `en_XX`"), "{error}");
}
