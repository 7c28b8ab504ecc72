//! Several languages: `LANG=FILE`, code-mixing, and the output for each language.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::augment::prepared;
use crate::drafts::{content, read, texts};
use crate::support::{assert_same, done, run};
use crate::warnings::numbers;

/// Three columns, IOB2.
const EN: &str = "Ada x B-PER\nLovelace x I-PER\nwrote y O\nin y O\nLondon z B-LOC\n. y O\n\n\
    Grace x B-PER\nspoke y O\n. y O\n\nNobody y O\nspoke y O\n\n";
/// Two columns, IOB1: the second of two adjacent mentions begins with `B`.
const DE: &str = "Konrad I-PER\nZuse I-PER\nging O\nnach O\nBerlin I-LOC\nBonn B-LOC\n. O\n\n\
    Ems I-LOC\nliegt O\n. O\n\n";

const EN_VECTORS: &str = "5 2\nada 1 0\nlovelace 0.9 0.1\nlondon 0 1\ngrace -1 0\nthe 1 1\n";
const DE_VECTORS: &str = "4 2\nkonrad 1 0.2\nberlin 0.1 1\nbonn -1 -1\nder 1 1\n";

fn folder() -> tempfile::TempDir {
    let folder = prepared();
    let files =
        [("en.conll", EN), ("de.conll", DE), ("en.vec", EN_VECTORS), ("de.vec", DE_VECTORS)];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn augment(out: &str, more: &str) -> String {
    format!(
        "augment en=en.conll de=de.conll --dev en=en.conll -o {out} --model model --config fast.toml {more}"
    )
}

const VECTORS: &str = "--vectors en=en.vec --vectors de=de.vec";

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

#[test]
fn each_language_gets_a_file_in_its_format_with_mentions_of_the_other() {
    let folder = folder();
    let all = format!("--method codemix-ess {VECTORS} --set filter.mode=off --rounds 2");
    let messages = done(folder.path(), &augment("out", &all));
    assert!(
        messages.contains("`out/train.augmented.en.conll`, `out/train.augmented.de.conll`"),
        "{messages}"
    );
    assert!(
        messages.contains("2 of 5 words in the mentions of de have no vector; 1 of 4 mentions"),
        "{messages}"
    );
    let drafts = read(&folder.path().join("out/drafts.jsonl"));
    let donors = || {
        let replaced = drafts.iter().flat_map(|draft| draft["replaced"].as_array().unwrap());
        replaced.filter(|one| !one["donor"].is_null())
    };
    let n_without = donors().filter(|one| one["similarity"].is_null()).count();
    let what = "mentions without a vector: replaced by any mention of the type";
    assert_eq!(numbers(&messages, what), (n_without, donors().count()));
    let first: Vec<_> = drafts.iter().take(4).collect();
    let languages: Vec<_> = first.iter().map(|draft| draft["language"].as_str().unwrap()).collect();
    assert_eq!(languages, ["en", "en", "de", "de"]);
    // The nearest mentions by the vectors above. Ems has no vector and gets the only location of the other language.
    let expected = [
        "Konrad Zuse wrote in Berlin .",
        "Konrad Zuse spoke .",
        "Ada Lovelace ging nach London London .",
        "London liegt .",
    ];
    let found: Vec<_> = first.iter().map(|draft| texts(&draft["tokens"]).join(" ")).collect();
    assert_eq!(found, expected);
    for replaced in first.iter().flat_map(|draft| draft["replaced"].as_array().unwrap()) {
        assert_eq!(replaced["similarity"].is_null(), replaced["old"][0] == "Ems", "{replaced}");
    }
    assert_eq!(first[0]["replaced"][0]["language"], "de");
    // There is only one other language, so the drafts of the second round repeat those of the first.
    assert!(drafts[4..].iter().all(|draft| draft["verdict"] == "repeats-draft"));

    let en = text(folder.path(), "out/train.augmented.en.conll");
    let new = "Konrad x B-PER\nZuse x I-PER\nwrote y O\nin y O\nBerlin z B-LOC\n. y O\n\n\
        Konrad x B-PER\nZuse x I-PER\nspoke y O\n. y O\n\n";
    assert_eq!(en, format!("{EN}{new}"));
    let de = text(folder.path(), "out/train.augmented.de.conll");
    // A draft with `London London` is not kept.
    assert_eq!(first[2]["verdict"], "repeats-token");
    assert_eq!(de, format!("{DE}London I-LOC\nliegt O\n. O\n\n"));
    let record: Value = serde_json::from_str(&text(folder.path(), "out/run.json")).unwrap();
    assert_eq!(record["train"][1]["language"], "de");
    assert_eq!(record["codemix"]["languages"][1]["words_without_vector"], 2);
    assert_eq!(record["drafts"]["without_vector"], 2);

    // A change of the vectors counts as a change of the data.
    fs::write(folder.path().join("de.vec"), DE_VECTORS.replace("0.1 1", "0.2 1")).unwrap();
    let other = run(folder.path(), &augment("out", &all));
    assert!(String::from_utf8(other.stderr).unwrap().contains("pass `--force`"));
}

#[test]
fn multilingual_melm_makes_drafts_of_gold_and_of_code_mixed_sentences() {
    let folder = folder();
    let method = format!("--method melm-codemix {VECTORS}");
    done(folder.path(), &augment("whole", &format!("{method} --rounds 2")));
    let drafts = read(&folder.path().join("whole/drafts.jsonl"));
    let round = |n: usize| drafts.iter().filter(move |draft| number(&draft["round"]) == n);
    // Four sentences have mentions. Each is code-mixed once. In every round, the original and the code-mixed sentence get
    // a draft.
    assert_eq!((round(1).count(), round(2).count()), (3 * 4, 2 * 4));
    let gold = [EN, DE].map(|text| {
        let rows = |block: &str| {
            block.lines().map(|row| row.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        text.split("\n\n").filter(|block| !block.is_empty()).map(rows).collect::<Vec<_>>()
    });
    let (mut n_mixed, mut mixed) = (0, std::collections::BTreeMap::new());
    for draft in &drafts {
        let language = usize::from(draft["language"] == "de");
        let source = &gold[language][number(&draft["source"]) - 1];
        let (tokens, tags) = content(draft);
        let outside = |tokens: &[String], is_o: &dyn Fn(usize) -> bool| {
            let tokens = tokens.iter().enumerate().filter(|(at, _)| is_o(*at));
            tokens.map(|(_, token)| token.clone()).collect::<Vec<_>>()
        };
        let own = outside(&tokens, &|at| tags[at] == "O");
        assert!(own.iter().all(|token| source.contains(token)), "{draft}");
        let key = (language, number(&draft["source"]));
        if draft["replaced"].as_array().unwrap().iter().any(|one| !one["donor"].is_null()) {
            mixed.insert(key, tokens.len());
        } else if !draft["mixed"].is_null() {
            // A draft of a code-mixed sentence has as many tokens as that sentence.
            n_mixed += 1;
            assert_eq!(mixed[&key], tokens.len(), "{draft}");
            assert_ne!(draft["mixed"][0]["language"], draft["language"], "{draft}");
        } else {
            assert_eq!(source.len(), tokens.len(), "{draft}");
        }
    }
    assert_eq!(n_mixed, 2 * 4);

    // More rounds reuse the first one, which is read from disk.
    done(folder.path(), &augment("grown", &format!("{method} --rounds 1")));
    done(folder.path(), &augment("grown", &format!("{method} --rounds 2 --keep-model")));
    fs::rename(folder.path().join("grown/model"), folder.path().join("lm")).unwrap();
    assert_same(&folder.path().join("whole"), &folder.path().join("grown"));
    let tokenizer = text(folder.path(), "lm/tokenizer.json");
    assert!(tokenizer.contains("\"<en>\"") && tokenizer.contains("\"<de>\""));

    // A tagger that is trained separately gives the same verdicts as the judge of the run.
    let files = "en=en.conll de=de.conll";
    done(
        folder.path(),
        &format!("train {files} --dev en=en.conll -o tagger --model model --config fast.toml"),
    );
    done(
        folder.path(),
        &format!("filter whole/drafts.jsonl {files} --tagger tagger -o judged.jsonl"),
    );
    assert_eq!(text(folder.path(), "judged.jsonl"), text(folder.path(), "whole/drafts.jsonl"));
    let judged = text(folder.path(), "judged.jsonl");
    for (old, new, why) in [
        ("\"language\":\"en\"", "\"language\":\"fr\"", "there is no sentence 1 in `fr`"),
        ("\"language\":\"en\",", "", "there is no sentence 1;"),
        (
            "\"language\":\"de\"",
            "\"language\":\"en\"",
            "the tokens and tags are not those of the source",
        ),
    ] {
        fs::write(folder.path().join("changed.jsonl"), judged.replacen(old, new, 1)).unwrap();
        let changed = format!("filter changed.jsonl {files} --tagger tagger -o no.jsonl");
        let output = run(folder.path(), &changed);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && messages.contains(why), "{messages}");
    }
}

#[test]
fn melm_reads_the_languages_as_one_corpus_with_their_markers() {
    let folder = folder();
    done(folder.path(), &augment("out", "--rounds 1 --keep-model"));
    let drafts = read(&folder.path().join("out/drafts.jsonl"));
    // Two drafts of each sentence: by the model and by `label-wise`.
    assert_eq!(drafts.len(), 2 * 4);
    assert!(text(folder.path(), "out/model/tokenizer.json").contains("\"<de>\""));
    // The stages, run separately, give the same result.
    let files = "en=en.conll de=de.conll";
    done(
        folder.path(),
        &format!("finetune {files} --dev en=en.conll -o lm --model model --config fast.toml"),
    );
    done(folder.path(), &format!("generate lm {files} -o drafts.jsonl --rounds 1"));
    let alone = read(&folder.path().join("drafts.jsonl"));
    let contents = |drafts: &[Value]| drafts.iter().map(content).collect::<Vec<_>>();
    assert_eq!(contents(&alone), contents(&drafts));
}

#[test]
fn label_wise_methods_stay_within_a_language() {
    let folder = folder();
    for method in ["label-wise", "lwtr"] {
        let more =
            format!("--method {method} --set substitute.rate=1 --set filter.mode=off --rounds 3");
        done(folder.path(), &augment(method, &more));
        // The first rounds are read from disk, and one more is made.
        done(folder.path(), &augment(method, &more.replace("rounds 3", "rounds 4")));
        for draft in read(&folder.path().join(method).join("drafts.jsonl")) {
            let own = if draft["language"] == "en" { EN } else { DE };
            let words: Vec<_> = own.split_whitespace().collect();
            assert!(
                texts(&draft["tokens"]).iter().all(|token| words.contains(&token.as_str())),
                "{draft}"
            );
        }
    }
}

#[test]
fn codemix_writes_sentences_and_the_origin_of_their_mentions() {
    let folder = folder();
    let files = "codemix en=en.conll de=de.conll";
    let messages = done(folder.path(), &format!("{files} {VECTORS} -o mixed.conll"));
    assert!(messages.contains("new, not judged               4"), "{messages}");
    let mixed = text(folder.path(), "mixed.conll");
    let first =
        "# language = en\nKonrad\tB-PER\nZuse\tI-PER\nwrote\tO\nin\tO\nBerlin\tB-LOC\n.\tO\n\n";
    assert!(mixed.starts_with(first), "{mixed}");
    assert_eq!(mixed.matches("# language = de").count(), 2);
    assert_eq!(read(&folder.path().join("mixed.conll.jsonl")).len(), 4);
    done(folder.path(), "check mixed.conll");

    let by_pieces = format!("{files} --vectors pieces --model model --drafts - -o pieces.conll");
    let output = run(folder.path(), &by_pieces);
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.matches("\"similarity\":").count(), 7, "{lines}");
    done(folder.path(), &format!("{files} --random --rounds 3 -o random.conll"));
    assert!(!text(folder.path(), "random.conll.jsonl").contains("similarity"));
    let again = run(folder.path(), &format!("{files} --random -o random.conll"));
    assert_eq!(again.status.code(), Some(1));
}
