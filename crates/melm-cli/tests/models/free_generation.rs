//! Methods that write whole sentences, `daga` and `mulda`: their report and their output.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::augment::{augment_into, prepared};
use crate::drafts::{kept, read, to_text};
use crate::support::{TRAIN, assert_same, done};

const DAGA: &str = "--method daga --rounds 2 --set daga.hidden_size=16 --set daga.embedding_size=8 \
    --set daga.learning_rate=0.05 --set daga.dropout=0 --set daga.keep=last --set filter.mode=off";
const MULDA: &str = "--method mulda --rounds 2 --set mulda.width=16 --set mulda.heads=2 \
    --set mulda.layers=1 --set mulda.learning_rate=0.02 --set mulda.batch_size=2 \
    --set mulda.dropout=0 --set mulda.attention_dropout=0 --set mulda.tries=5 --set filter.mode=off";

fn record(dir: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join("run.json")).unwrap()).unwrap()
}

#[test]
fn all_written_sentences_are_counted_and_drafts_have_no_source() {
    let folder = prepared();
    for (method, edits) in [("daga", DAGA), ("mulda", MULDA)] {
        let messages = done(folder.path(), &augment_into(method, edits));
        let dir = folder.path().join(method);
        let drafts = read(&dir.join("drafts.jsonl"));
        assert!(!drafts.is_empty(), "{messages}");
        assert!(drafts.iter().all(|draft| draft["source"].is_null()));
        let expected = format!("{TRAIN}{}", to_text(&kept(&drafts)));
        assert_eq!(fs::read_to_string(dir.join("train.augmented.conll")).unwrap(), expected);
        let record = record(&dir);
        let dropped = record["drafts"]["dropped"].as_object().unwrap();
        let n_dropped: u64 = dropped.values().map(|n| n.as_u64().unwrap()).sum();
        let n_written = n_dropped + drafts.len() as u64;
        assert!(messages.contains(&format!("written {n_written:>23}")), "{messages}");
        let metrics = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
        assert!(metrics.contains(&format!("\"stage\":\"{method}\"")), "{metrics}");
    }
    let record = record(&folder.path().join("mulda"));
    assert_eq!(record["seq2seq"], "MulDA architecture, no pretraining");
}

#[test]
fn rounds_added_later_equal_the_rounds_of_one_run() {
    let folder = prepared();
    let [one, two] = ["--rounds 1", "--rounds 2"].map(|n| DAGA.replace("--rounds 2", n));
    done(folder.path(), &augment_into("step", &one));
    done(folder.path(), &augment_into("step", &two));
    done(folder.path(), &augment_into("whole", &two));
    let dirs = ["step", "whole"].map(|name| folder.path().join(name));
    assert_same(&dirs[0], &dirs[1]);
    assert_eq!(record(&dirs[0])["drafts"], record(&dirs[1])["drafts"]);
}
