//! `melm augment --unlabelled`: the labelled sentences of a text, their order, their counts and their languages.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::augment::{FAST, augment_into, prepared};
use crate::drafts::{Sentence, content, kept, read, sentences, texts, to_text};
use crate::support::{TRAIN, assert_same, done, melm, run};

/// Sentences like those of the training set. The first one repeats it, and the last one repeats the second one.
pub(crate) const TEXT: &str = "\
Ada\nLovelace\nwrote\nin\nLondon\n.\n\n\
Konrad\nZuse\nwrote\nin\nBerlin\n.\n\n\
London\nis\nnot\nBonn\n.\n\n\
Grace\nHopper\nlived\nin\nBonn\n.\n\n\
Ada\nLovelace\nspoke\n.\n\n\
not\nis\nnot\n.\n\n\
Konrad\nZuse\nwrote\nin\nBerlin\n.\n\n";

/// Two small panels, whose taggers learn the training set within a second.
pub(crate) const PANEL: &str = "[self_training]\npasses = 2\npanel = 2\nbudget = '60 updates'\n";

/// Returns a folder with a text, and settings of a small panel.
pub(crate) fn with_text() -> tempfile::TempDir {
    let folder = prepared();
    fs::write(folder.path().join("text.conll"), TEXT).unwrap();
    fs::write(folder.path().join("fast.toml"), format!("{FAST}{PANEL}")).unwrap();
    folder
}

fn record(dir: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join("run.json")).unwrap()).unwrap()
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// Separates the lines of drafts from those of the text.
fn split(lines: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    lines.into_iter().partition(|line| line["origin"] == "draft")
}

/// Returns the mentions of IOB2 tags as `type`, first token and end.
fn mentions(tags: &[String]) -> Vec<(String, usize, usize)> {
    let mut found: Vec<(String, usize, usize)> = Vec::new();
    for (at, tag) in tags.iter().enumerate() {
        match tag.split_once('-') {
            Some(("B", name)) => found.push((name.to_owned(), at, at + 1)),
            Some(("I", _)) => found.last_mut().unwrap().2 = at + 1,
            _ => {}
        }
    }
    found
}

/// Asserts that the verdict of a line agrees with its votes and mentions.
fn assert_explained(line: &Value) {
    let (_, tags) = content(line);
    let (votes, panel) = (number(&line["votes"]), number(&line["panel"]));
    let own = mentions(&tags);
    assert_eq!(line["probabilities"].as_array().unwrap().len(), panel, "{line}");
    let proposed = line["mentions"].as_array().unwrap();
    for (name, start, end) in &own {
        let is_same = |one: &&Value| {
            one["entity_type"] == **name
                && number(&one["start"]) == *start
                && number(&one["end"]) == *end
        };
        let one = proposed.iter().find(is_same).unwrap();
        assert!(number(&one["votes"]) >= votes, "{line}");
    }
    match line["verdict"].as_str().unwrap() {
        "kept" | "over-cap" => assert!(votes == panel && !own.is_empty(), "{line}"),
        "no-mention" => assert!(votes == panel && own.is_empty(), "{line}"),
        "disagrees" => assert!(votes < panel, "{line}"),
        other => panic!("unexpected verdict: {other}"),
    }
}

#[test]
fn the_output_is_gold_then_drafts_then_text_and_the_counts_add_up() {
    let folder = with_text();
    let more = "--unlabelled text.conll --rounds 2";
    let messages = done(folder.path(), &augment_into("out", more));
    let dir = folder.path().join("out");
    let (drafts, text) = split(read(&dir.join("drafts.jsonl")));
    assert!(
        !drafts.is_empty() && drafts.len() + text.len() == read(&dir.join("drafts.jsonl")).len()
    );
    text.iter().for_each(assert_explained);
    assert!(text.iter().all(|line| line["file"] == "text.conll" && line["pass"] == 2));
    let own: Vec<_> = text.iter().map(|line| texts(&line["tokens"])).collect();
    let expected: Vec<Vec<String>> = TEXT
        .split("\n\n")
        .filter(|block| !block.is_empty())
        .map(|block| block.lines().map(str::to_owned).collect())
        .collect();
    assert_eq!(own, expected[1..6]);
    assert_eq!(text[0]["line"], 8);

    let (kept_drafts, kept_text) = (kept(&drafts), kept(&text));
    assert!(!kept_text.is_empty(), "{text:?}");
    let all = [sentences(TRAIN), kept_drafts.clone(), kept_text.clone()].concat();
    let written = fs::read_to_string(dir.join("train.augmented.conll")).unwrap();
    assert_eq!(written, to_text(&all));

    let counts = &record(&dir)["text"];
    let left_out = serde_json::json!({ "gold": 1, "dev": 0, "held_out": 0, "repeated": 1 });
    assert_eq!((&counts["left_out"], number(&counts["sentences"])), (&left_out, text.len() + 2));
    assert_eq!(counts["files"][0]["format"], "conll");
    for line in ["sentences of the text         7", "  in the training set         1"] {
        assert!(messages.contains(line), "{messages}");
    }
    let last = &counts["passes"][1];
    let n = |key: &str| number(&last[key]);
    let reasons = ["too_long", "disagrees", "unlikely", "no_mention", "over_cap", "kept"];
    assert_eq!(reasons.map(n).iter().sum::<usize>(), n("sentences"));
    assert_eq!((n("sentences"), n("kept")), (text.len(), kept_text.len()));
    let mut by_type: BTreeMap<String, usize> = BTreeMap::new();
    for (name, ..) in kept_text.iter().flat_map(|(_, tags)| mentions(tags)) {
        *by_type.entry(name).or_default() += 1;
    }
    assert_eq!(last["mentions"], serde_json::json!(by_type));
    let wrote = format!(
        "4 gold sentences, {} and {} of the text in",
        plural(kept_drafts.len(), "draft"),
        plural(kept_text.len(), "sentence"),
    );
    assert!(messages.contains(&wrote), "{messages}");
    assert!(messages.contains("with a panel of 2 taggers: 2 passes, 60 updates for each"));
    let metrics = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
    for (pass, tagger) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let is_own = |line: &Value| line["pass"] == pass && line["tagger"] == tagger;
        let lines = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert!(lines.filter(is_own).all(|line| line["stage"] == "panel"), "{metrics}");
        assert!(metrics.contains(&format!("\"pass\":{pass}")), "{metrics}");
    }
}

fn plural(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[test]
fn without_union_the_output_has_no_gold_and_without_drafts_it_has_only_text() {
    let folder = with_text();
    let more = "--unlabelled text.conll --method gold --set union=false";
    done(folder.path(), &augment_into("out", more));
    let dir = folder.path().join("out");
    let text = read(&dir.join("drafts.jsonl"));
    assert!(text.iter().all(|line| line["origin"] == "text"));
    let written = fs::read_to_string(dir.join("train.augmented.conll")).unwrap();
    assert_eq!(sentences(&written), kept(&text));
}

#[test]
fn languages_without_gold_get_their_own_files() {
    let folder = with_text();
    let path = folder.path();
    let nl = "Konrad\nZuse\nspoke\nin\nLondon\n.\n\n";
    fs::write(path.join("nl.conll"), nl).unwrap();
    let args = "augment en=train.conll --dev en=train.conll --model model --config fast.toml \
                --unlabelled de=text.conll --unlabelled nl=nl.conll --rounds 1 -o out";
    let messages = done(path, args);
    assert!(messages.contains("`out/train.augmented.nl.conll`"), "{messages}");
    let (drafts, text) = split(read(&path.join("out/drafts.jsonl")));
    assert!(drafts.iter().all(|draft| draft["language"] == "en"));
    let languages: Vec<_> = text.iter().map(|line| line["language"].as_str().unwrap()).collect();
    assert_eq!(languages, ["de", "de", "de", "de", "de", "nl"]);
    let of = |code: &str, lines: &[Value]| -> Vec<Sentence> {
        let own: Vec<Value> =
            lines.iter().filter(|line| line["language"] == code).cloned().collect();
        kept(&own)
    };
    let written = |code: &str| {
        fs::read_to_string(path.join(format!("out/train.augmented.{code}.conll"))).unwrap()
    };
    let [de, nl] = ["de", "nl"].map(|code| of(code, &text).len());
    let by_language = serde_json::json!({ "de": de, "nl": nl });
    assert_eq!(record(&path.join("out"))["text"]["kept_by_language"], by_language);
    assert!(messages.contains(&format!("kept by language: de {de}, nl {nl}\n")), "{messages}");
    let en = [sentences(TRAIN), of("en", &drafts)].concat();
    assert_eq!(written("en"), to_text(&en));
    assert_eq!(written("de"), to_text(&of("de", &text)));
    assert_eq!(written("nl"), to_text(&of("nl", &text)));
    assert!(!of("de", &text).is_empty());
    // The languages of the text do not change the drafts, and a tagger can be trained on the files.
    let alone = "augment en=train.conll --dev en=train.conll --model model --config fast.toml \
                 --rounds 1 -o alone";
    done(path, alone);
    assert_eq!(drafts, read(&path.join("alone/drafts.jsonl")));
    let train = "train en=out/train.augmented.en.conll de=out/train.augmented.de.conll \
                 --model model --config fast.toml -o tagger";
    done(path, train);
}

#[test]
fn a_filter_judges_the_drafts_and_keeps_the_lines_of_the_text() {
    let folder = with_text();
    let path = folder.path();
    done(path, &augment_into("out", "--unlabelled text.conll --rounds 1"));
    done(path, "train train.conll --dev train.conll --model model --config fast.toml -o tagger");
    let args = "filter out/drafts.jsonl train.conll --tagger tagger -o judged.jsonl \
                --augmented more.conll";
    let messages = done(path, args);
    assert!(messages.contains("5 of 5 sentences of unlabelled text not judged"), "{messages}");
    let text = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    assert_eq!(text("judged.jsonl"), text("out/drafts.jsonl"));
    assert_eq!(text("more.conll"), text("out/train.augmented.conll"));
    let broken = text("out/drafts.jsonl").replace("B-LOC", "B-GPE");
    let line = broken.lines().find(|line| line.contains("\"text\"") && line.contains("GPE"));
    fs::write(path.join("broken.jsonl"), line.unwrap()).unwrap();
    let output = run(path, "filter broken.jsonl train.conll --tagger tagger -o no.jsonl");
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(messages.contains("`broken.jsonl`:1: the corpus has no tag `B-GPE`"), "{messages}");
}

#[test]
fn more_rounds_train_the_panel_again_and_text_settings_matter_only_with_text() {
    let folder = with_text();
    let path = folder.path();
    done(path, &augment_into("whole", "--unlabelled text.conll --rounds 2"));
    done(path, &augment_into("grown", "--unlabelled text.conll --rounds 1"));
    done(path, &augment_into("grown", "--unlabelled text.conll --rounds 2"));
    assert_same(&path.join("whole"), &path.join("grown"));
    // Another text counts as other data.
    fs::write(path.join("other.conll"), TEXT.replace("spoke", "sang")).unwrap();
    let other = run(path, &augment_into("grown", "--unlabelled other.conll --rounds 2"));
    assert!(String::from_utf8(other.stderr).unwrap().contains("pass `--force`"));
    let panel = "--set self_training.panel=3 --rounds 2";
    let other = run(path, &augment_into("grown", &format!("--unlabelled text.conll {panel}")));
    assert!(String::from_utf8(other.stderr).unwrap().contains("pass `--force`"));
    done(path, &augment_into("plain", "--method label-wise --rounds 2"));
    let messages = done(path, &augment_into("plain", &format!("--method label-wise {panel}")));
    assert!(messages.contains("already finished"), "{messages}");
}

#[test]
fn plain_text_json_and_gzip_give_the_same_sentences_and_held_out_ones_are_left_out() {
    let folder = with_text();
    let path = folder.path();
    let plain = "Konrad Zuse wrote in Berlin. London is not Bonn.\nGrace Hopper lived in Bonn.\n";
    let json = "{\"text\": \"Konrad Zuse wrote in Berlin. London is not Bonn.\"}\n\
                {\"tokens\": [\"Grace\", \"Hopper\", \"lived\", \"in\", \"Bonn\", \".\"]}\n";
    fs::write(path.join("text.txt"), plain).unwrap();
    fs::write(path.join("text.jsonl"), json).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    fs::write(path.join("text.txt.gz"), gzip.finish().unwrap()).unwrap();
    let contents = |out: &str| -> Vec<Value> {
        let mut lines = read(&path.join(out).join("drafts.jsonl"));
        for line in &mut lines {
            line.as_object_mut().unwrap().remove("file");
        }
        lines
    };
    let more = "--method gold --set self_training.passes=1";
    let of =
        |name: &str| augment_into(&name.replace('.', "-"), &format!("{more} --unlabelled {name}"));
    let messages = done(path, &format!("{} -v", of("text.txt")));
    assert!(messages.contains("`text.txt`: 3 sentences, read as text\n"), "{messages}");
    assert!(messages.contains("`text.txt`: tokens as in TRAIN: keeps "), "{messages}");
    let files = &record(&path.join("text-txt"))["text"]["files"];
    assert!(files[0]["tokenizer"].as_str().unwrap().starts_with("keeps "), "{files}");
    assert_eq!(contents("text-txt").len(), 3);
    for name in ["text.jsonl", "text.txt.gz"] {
        done(path, &of(name));
        let out = name.replace('.', "-");
        assert_eq!(contents(&out), contents("text-txt"), "{name}");
    }
    assert_eq!(record(&path.join("text-txt-gz"))["text"]["files"][0]["gzip"], true);

    fs::write(path.join("test.conll"), "London B-LOC\nis O\nnot O\nBonn B-LOC\n. O\n\n").unwrap();
    let held_out = format!("{more} --unlabelled text.txt --held-out test.conll");
    let messages = done(path, &augment_into("held", &held_out));
    assert!(messages.contains("  in a held-out file          1"), "{messages}");
    assert_eq!(contents("held").len(), 2);
    assert!(contents("held").iter().all(|line| line["tokens"][0] != "London"));

    let mut child = melm(path, &augment_into("stdin", &format!("{more} --unlabelled -")));
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(plain.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(contents("stdin"), contents("text-txt"));
    assert_eq!(read(&path.join("stdin/drafts.jsonl"))[0]["file"], "standard input");
}

#[test]
fn contradicting_texts_are_refused_with_a_hint() {
    let folder = with_text();
    let path = folder.path();
    fs::write(path.join("empty.txt"), "\n").unwrap();
    fs::write(path.join("known.txt"), "Ada Lovelace wrote in London.\n").unwrap();
    let spaces = "{\"tokens\": [\"in\", \"Bonn\"]}\n{\"tokens\": [\"in\", \"New York\"]}\n";
    fs::write(path.join("spaces.jsonl"), spaces).unwrap();
    let en = "augment en=train.conll -o out --model model --config fast.toml";
    for (args, code, expected) in [
        (
            augment_into("out", "--unlabelled de=text.conll"),
            2,
            "name TRAIN's language too: `en=FILE`",
        ),
        (format!("{en} --unlabelled text.conll"), 2, "name its language too"),
        (
            augment_into("out", "--unlabelled spaces.jsonl"),
            1,
            "`spaces.jsonl`:2: the token `New York` has a space, but spaces separate the columns of `train.conll`; use \
             a TRAIN with tabs: `melm convert train.conll --separator tab -o FILE`",
        ),
        (
            "trial train.conll --model model --unlabelled de=text.conll".to_owned(),
            2,
            "pass the text without `LANG=`",
        ),
        (augment_into("out", "--unlabelled empty.txt"), 1, "the file contains no text"),
        (augment_into("out", "--unlabelled known.txt"), 1, "every sentence of the unlabelled text"),
        (augment_into("out", "--unlabelled nowhere.txt"), 1, "cannot read `nowhere.txt`"),
        (augment_into("out", "--unlabelled - --held-out -"), 2, "only one of the files"),
        (augment_into("out", "--held-out text.conll"), 2, "`--unlabelled FILE` or `--silver FILE`"),
    ] {
        let output = run(path, &args);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args}: {messages}");
        assert!(messages.contains(expected), "{args}: {messages}");
        assert!(!path.join("out").exists());
    }
}

#[test]
fn tokens_with_spaces_are_written_if_tabs_separate_the_columns() {
    let folder = with_text();
    let path = folder.path();
    fs::write(path.join("train.conll"), TRAIN.replace(' ', "\t")).unwrap();
    let text = "{\"tokens\": [\"Konrad\", \"Zuse\", \"wrote\", \"in\", \"Bad Bonn\", \".\"]}\n";
    fs::write(path.join("text.jsonl"), text).unwrap();
    let more = "--method gold --unlabelled text.jsonl --set self_training.agreement=probability \
                --set self_training.threshold=0";
    done(path, &augment_into("out", more));
    let written = fs::read_to_string(path.join("out/train.augmented.conll")).unwrap();
    assert!(written.contains("\nBad Bonn\t"), "{written}");
    done(path, "check out/train.augmented.conll");
}

#[test]
fn held_out_files_are_reported_and_recorded() {
    let folder = with_text();
    let path = folder.path();
    // One of eleven lines has a script without spaces between words.
    let lines: String = (0..9).map(|n| format!("{{\"body\": \"Line {n} here.\"}}\n")).collect();
    let more = "{\"body\": \"London is not Bonn.\"}\n{\"body\": \"\u{4f60}\u{597d}\"}\n";
    fs::write(path.join("test.jsonl"), lines + more).unwrap();
    let options = "--method gold --set self_training.passes=1 --unlabelled text.conll \
                   --held-out test.jsonl --text-key body -v";
    let messages = done(path, &augment_into("out", options));
    for line in [
        "`test.jsonl`: 10 sentences, read as jsonl\n",
        "warning: 1 line of the held-out file `test.jsonl` ignored",
        "  in a held-out file          1",
    ] {
        assert!(messages.contains(line), "{messages}");
    }
    let file = &record(&path.join("out"))["text"]["held_out"][0];
    assert_eq!((&file["file"], &file["format"]), (&"test.jsonl".into(), &"jsonl".into()));
    assert_eq!((number(&file["sentences"]), number(&file["unspaced_lines"])), (10, 1));
}

#[test]
fn a_text_of_which_nothing_is_kept_is_explained_and_a_dry_run_lists_the_panel() {
    let folder = with_text();
    let path = folder.path();
    fs::write(path.join("long.txt"), "in London ".repeat(40)).unwrap();
    let more = "--method gold --unlabelled long.txt";
    let messages = done(path, &augment_into("long", more));
    assert!(messages.contains("too long for the model      1"), "{messages}");
    assert!(messages.contains("Write one sentence on each line"), "{messages}");
    let messages = done(path, &augment_into("dry", "--unlabelled text.conll --dry-run"));
    for title in ["training the judge", "training the panel", "labelling the text"] {
        assert!(messages.contains(title), "{messages}");
    }
    assert!(!path.join("dry").exists());
}
