//! The same plan and seed give the same bytes on every CPU run, whatever surrounds the run.

use std::fs;
use std::path::Path;

use crate::augment::augment_into;
use crate::support::{assert_same, done, melm};
use crate::unlabelled::with_text;

/// Copies a folder with its content.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn threads_folder_locale_and_time_zone_do_not_change_a_byte() {
    let folder = with_text();
    let other = tempfile::tempdir().unwrap();
    let other = other.path().join("another folder/ğüşıö");
    copy(folder.path(), &other);
    let run = |n_threads: usize| {
        let more = format!("--unlabelled text.conll --rounds 2 --threads {n_threads}");
        augment_into("out", &more)
    };
    done(folder.path(), &run(1));
    // In Turkish, the capital of `i` is not `I`. The time zone is a day ahead of the first run's.
    let mut command = melm(&other, &run(3));
    command.env("LC_ALL", "tr_TR.UTF-8").env("LANG", "tr_TR.UTF-8");
    let output = command.env("TZ", "Pacific/Kiritimati").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_same(&folder.path().join("out"), &other.join("out"));
}
