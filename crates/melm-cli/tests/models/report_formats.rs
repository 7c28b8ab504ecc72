//! `melm report` on the folders of `melm augment` whose training file has another format than CoNLL.

use std::fs;
use std::path::Path;

use melm_report::{Report, Segment};

use crate::drafts::read;
use crate::support::{TRAIN, done, tiny_folder};

/// Replaces mentions by other ones of the file. This method needs no training.
const LABEL_WISE: &str =
    "--model model --method label-wise --set filter.mode=off --rounds 2 --set substitute.rate=1";

/// The mentions of `TRAIN` by type, counted by hand.
const GOLD: [(&str, usize); 2] = [("LOC", 4), ("PER", 3)];

/// Returns the text of segments without spaces, because formats differ in them.
fn joined(segments: &[Segment]) -> String {
    let text = |segment: &Segment| match segment {
        Segment::Plain(text)
        | Segment::Mention { text, .. }
        | Segment::Replaced { text, .. }
        | Segment::Swapped { text, .. } => text.replace(' ', ""),
    };
    segments.iter().map(text).collect()
}

/// Checks the report on the folder `out`, whose training file had the sentences of `TRAIN`.
fn check(folder: &Path, out: &str) {
    let report = Report::read(folder.join(out)).unwrap();
    assert_eq!(report.notes, [""; 0], "{out}");
    let gold: Vec<_> =
        report.mentions.iter().map(|one| (one.entity_type.as_str(), one.gold)).collect();
    assert_eq!(gold, GOLD, "{out}");
    let n_lines = read(&folder.join(out).join("drafts.jsonl")).len();
    assert!(n_lines > 0, "{out}");
    assert_eq!(report.candidates.len(), n_lines, "{out}");
    let rows = TRAIN.lines().map(|row| row.split(' ').next().unwrap_or_default());
    let text: String = rows.collect();
    for one in &report.candidates {
        // The source is a sentence of the file, and each replaced mention is one of it.
        let source = joined(one.source.as_ref().unwrap());
        assert!(text.contains(&source), "{out}: {source}");
        for segment in &one.segments {
            if let Segment::Replaced { old, .. } = segment {
                assert!(source.contains(&old.replace(' ', "")), "{out}: {old}");
            }
        }
    }
    let has_replaced = report
        .candidates
        .iter()
        .any(|one| one.segments.iter().any(|segment| matches!(segment, Segment::Replaced { .. })));
    assert!(has_replaced, "{out}");
    done(folder, &format!("report {out}"));
    assert!(fs::read_to_string(folder.join(out).join("report.html")).unwrap().contains("Lovelace"));
}

/// Converts `TRAIN` to `format`, augments it and checks the report.
fn check_format(format: &str, file: &str) {
    let folder = tiny_folder();
    let path = folder.path();
    done(path, &format!("convert train.conll --to {format} -o {file}"));
    done(path, &format!("augment {file} -o out {LABEL_WISE}"));
    check(path, "out");
}

#[test]
fn a_folder_of_spacy_has_a_report() {
    check_format("spacy", "train.spacy");
}

#[test]
fn a_folder_of_parquet_has_a_report() {
    check_format("parquet", "train.parquet");
}

#[test]
fn a_folder_of_brat_has_a_report() {
    check_format("brat", "train.ann");
}

#[test]
fn folders_of_json_formats_have_reports() {
    for (format, file) in [
        ("label-studio", "train.json"),
        ("doccano", "train.jsonl"),
        ("gliner", "train.json"),
        ("prodigy", "train.jsonl"),
        ("jsonl", "train.jsonl"),
    ] {
        check_format(format, file);
    }
}

#[test]
fn languages_in_different_formats_have_one_report() {
    let folder = tiny_folder();
    let path = folder.path();
    done(path, "convert train.conll -o en.spacy");
    done(path, "convert train.conll -o de.ann");
    done(path, &format!("augment en=en.spacy de=de.ann -o out {LABEL_WISE}"));
    let report = Report::read(path.join("out")).unwrap();
    assert_eq!(report.notes, [""; 0]);
    let gold: Vec<_> = report.mentions.iter().map(|one| one.gold).collect();
    assert_eq!(gold, GOLD.map(|(_, n)| 2 * n));
}

/// The names of tag ids are in another file. They must be found beside the augmented file too.
#[test]
fn tag_ids_keep_their_names() {
    let folder = tiny_folder();
    let path = folder.path();
    done(path, "convert train.conll --to jsonl --tag-ids -o train.jsonl");
    let names = fs::read_to_string(path.join("train.jsonl.names")).unwrap();
    done(path, &format!("augment train.jsonl -o out {LABEL_WISE}"));
    assert_eq!(fs::read_to_string(path.join("out/train.augmented.jsonl.names")).unwrap(), names);
    check(path, "out");
    done(path, "check out/train.augmented.jsonl");
    // An empty file of decisions leaves all verdicts as they are.
    fs::write(path.join("none.jsonl"), "").unwrap();
    done(
        path,
        "filter out/drafts.jsonl train.jsonl --decisions none.jsonl -o kept.jsonl --augmented again.jsonl",
    );
    assert_eq!(fs::read_to_string(path.join("again.jsonl.names")).unwrap(), names);
    let [one, other] =
        ["again.jsonl", "out/train.augmented.jsonl"].map(|name| fs::read(path.join(name)).unwrap());
    assert!(one == other);
}
