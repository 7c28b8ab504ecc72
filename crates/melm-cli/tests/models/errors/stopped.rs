//! Commands that are interrupted.

use std::io::Read;
use std::process::Command;

use super::tiny_folder;
use crate::support::melm;

/// Covers `melm-cli::failure::Discarded`.
#[cfg(unix)]
#[test]
fn a_command_that_cannot_resume_says_so() {
    let folder = tiny_folder();
    let mut child =
        melm(folder.path(), "trial train.conll --folds 2 --model model --updates 1000000")
            .spawn()
            .unwrap();
    // The first message comes after the handler of signals is in place.
    let mut stderr = child.stderr.take().unwrap();
    let mut messages = vec![0];
    stderr.read_exact(&mut messages).unwrap();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    stderr.read_to_end(&mut messages).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let messages = String::from_utf8(messages).unwrap();
    assert!(
        messages.contains("stopped; nothing was saved; pass `-o DIR` to save finished cells"),
        "{messages}"
    );
}
