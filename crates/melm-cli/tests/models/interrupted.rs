//! Interrupted and resumed runs of `melm augment`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::augment::{FAST, augment_into, prepared};
use crate::support::{assert_same, done, melm};
use crate::unlabelled::with_text;

/// A moment of a run: the file exists and has this many lines. The number is 0 for a folder, and for a file that is not
/// text.
type Moment = (&'static str, usize);

/// The moments of a run, from its start to its last file.
const MOMENTS: [Moment; 10] = [
    (".unfinished/key", 0),
    (".stages/finetune/state.safetensors", 0),
    (".stages/finetune/metrics.jsonl", 2),
    (".stages/finetune/done.safetensors", 0),
    (".stages/judge/state.safetensors", 0),
    (".stages/judge/metrics.jsonl", 25),
    (".stages/judge/done.safetensors", 0),
    (".stages/rounds/round-1.jsonl", 1),
    (".stages/rounds/round-2.jsonl", 1),
    ("train.augmented.conll", 0),
];

fn has_reached(dir: &Path, (file, n_lines): Moment) -> bool {
    let path = dir.join(file);
    if path.is_dir() {
        return true;
    }
    fs::read(path)
        .is_ok_and(|bytes| n_lines == 0 || bytes.split(|byte| *byte == b'\n').count() > n_lines)
}

#[test]
fn a_run_killed_at_ten_moments_ends_with_the_same_bytes() {
    let folder = prepared();
    let more = "--save-every 0 --threads 1";
    done(folder.path(), &augment_into("whole", more));
    let dir = folder.path().join("killed");
    let mut n_killed = 0;
    for moment in MOMENTS {
        let mut child = melm(folder.path(), &augment_into("killed", more)).spawn().unwrap();
        while !has_reached(&dir, moment) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        n_killed += usize::from(child.wait().unwrap().code().is_none());
    }
    // A run may end before the test has noticed one of the last moments.
    assert!(n_killed >= 8, "only {n_killed} of the runs were killed");
    done(folder.path(), &augment_into("killed", more));
    assert_same(&folder.path().join("whole"), &dir);
}

/// The moments of a run with text, from the first panel to the last.
const PANEL_MOMENTS: [Moment; 5] = [
    (".stages/panel", 0),
    (".stages/votes/pass-1-tagger-1.metrics.jsonl", 1),
    (".stages/votes/pass-1-tagger-1.votes", 1),
    (".stages/votes/pass-1-tagger-2.votes", 1),
    (".stages/votes/pass-2-tagger-1.votes", 1),
];

#[test]
fn a_run_killed_in_its_panels_ends_with_the_same_bytes() {
    let folder = with_text();
    let more = "--unlabelled text.conll --method label-wise --save-every 0 --threads 1";
    done(folder.path(), &augment_into("whole", more));
    let dir = folder.path().join("killed");
    let mut n_killed = 0;
    for moment in PANEL_MOMENTS {
        let mut child = melm(folder.path(), &augment_into("killed", more)).spawn().unwrap();
        while !has_reached(&dir, moment) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        n_killed += usize::from(child.wait().unwrap().code().is_none());
    }
    assert!(n_killed >= 4, "only {n_killed} of the runs were killed");
    done(folder.path(), &augment_into("killed", more));
    assert_same(&folder.path().join("whole"), &dir);
}

#[cfg(unix)]
#[test]
fn ctrl_c_exits_with_130_and_the_same_command_resumes() {
    let folder = prepared();
    let long = FAST.replace("'4 epochs'", "'400 epochs'");
    fs::write(folder.path().join("fast.toml"), long).unwrap();
    done(folder.path(), &augment_into("whole", ""));
    let child = melm(folder.path(), &augment_into("stopped", "")).spawn().unwrap();
    let dir = folder.path().join("stopped");
    while !has_reached(&dir, (".stages/finetune/metrics.jsonl", 2)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let stopped = child.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(130));
    let messages = String::from_utf8(stopped.stderr).unwrap();
    assert!(messages.contains("stopped; run the same command again to continue"), "{messages}");
    let messages = done(folder.path(), &augment_into("stopped", ""));
    assert!(
        messages.contains("fine-tuning the masked language model: resuming after"),
        "{messages}"
    );
    assert_same(&folder.path().join("whole"), &dir);
}
