//! Checks that the commands in the documentation exist: every `melm` command with its options, and every `--set`.
//! Commands are only parsed here; `transcripts.rs` runs those whose output is shown.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use melm::plan::{ModelClass, ModelClasses, PlanBuilder, Preset};
use melm::training::EvaluationInterval;

/// Returns the README and the pages below `docs`.
fn pages() -> Vec<PathBuf> {
    fn add(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    add(&root.join("docs"), &mut found);
    found.sort();
    found
}

/// Splits a command line as a shell does, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#' | '|' | '>' | '<' | '&') if word.is_none() => return words,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Returns the lines of code blocks, and the texts in back-ticks. Lines that end in a backslash are joined.
fn code(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_block = false;
    let page = page.replace("\\\n", " ");
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            found.push(line.trim_start_matches("$ ").to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(|code| code.replace("\\|", "|")));
        }
    }
    found
}

/// Returns the command lines of `melm`, without the lines of usage in the reference.
fn commands(page: &str) -> Vec<String> {
    let is_command = |line: &String| {
        line.starts_with("melm ") && !line.starts_with("melm = ") && !line.contains("[OPTIONS]")
    };
    code(page).into_iter().filter(is_command).collect()
}

/// Returns true for a word such as `DIR` that stands for a value.
fn is_placeholder(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// Returns true if the value of the last option is left out, as in `melm trial -o`.
fn ends_in_option(words: &[String]) -> bool {
    words.last().is_some_and(|word| word.starts_with('-'))
}

/// Returns what is wrong with a command line. Arguments that are left out or stand for others are not wrong.
fn find_fault(line: &str) -> Option<String> {
    let words = words(line);
    if line.contains('…') || words.iter().any(|word| word == "COMMAND" || word == "SHELL") {
        return None;
    }
    let error = melm_cli::command().try_get_matches_from(&words).err()?;
    match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
            if words.iter().any(|word| is_placeholder(word)) || ends_in_option(&words) =>
        {
            None
        }
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        _ => Some(error.to_string()),
    }
}

#[test]
fn every_command_in_the_documentation_exists() {
    let mut failures = Vec::new();
    let mut n_commands = 0;
    for page in pages() {
        for line in commands(&fs::read_to_string(&page).unwrap()) {
            n_commands += 1;
            if let Some(fault) = find_fault(&line) {
                failures.push(format!("{}: {line}\n{fault}", page.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n_commands > 100, "only {n_commands} commands found");
}

#[test]
fn every_setting_in_the_documentation_is_valid() {
    let classes = ModelClasses::both(ModelClass::MINI);
    let mut failures = Vec::new();
    let mut n_edits = 0;
    // The page of bad inputs has invalid settings.
    for page in pages().iter().filter(|page| !page.ends_with("bad-inputs.md")) {
        for line in code(&fs::read_to_string(page).unwrap()) {
            let mut builder = PlanBuilder::new(Preset::Best);
            for edit in
                words(&line).windows(2).filter(|pair| pair[0] == "--set").map(|pair| &pair[1])
            {
                if !edit.contains('…') && !edit.contains("KEY") {
                    n_edits += 1;
                    builder = builder.set(edit);
                }
            }
            if let Err(error) = builder.build(classes) {
                failures.push(format!("{}: {line}: {error}", page.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n_edits > 30, "only {n_edits} settings found");
}

#[test]
fn the_guides_say_how_often_the_presets_evaluate_a_tagger() {
    let interval = |preset: Preset, class| {
        let plan = preset.plan(ModelClasses::both(class));
        plan.tagger.training.evaluate_every
    };
    let epochs = |n| EvaluationInterval::Epochs(NonZeroU64::new(n).unwrap());
    assert_eq!(interval(Preset::Best, ModelClass::MINI), epochs(3));
    assert_eq!(interval(Preset::Best, ModelClass::XLM_R_BASE), epochs(1));
    assert_eq!(interval(Preset::Paper, ModelClass::MINI), epochs(1));
    for (page, text) in [
        (
            "tagging.md",
            "on dev after every third epoch and after the last one (larger models, and `--preset paper`: after every epoch)",
        ),
        ("experiments.md", "with `mini` after every third epoch"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(page);
        let found = fs::read_to_string(path).unwrap();
        let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(found.contains(text), "{page}: no `{text}`");
    }
}

#[test]
fn wrong_commands_are_found() {
    assert!(find_fault("melm augment a.conll -o more --methd gold").is_some());
    assert!(find_fault("melm augmen a.conll").is_some());
    assert!(find_fault("melm augment a.conll -o more --rounds none").is_some());
    assert!(find_fault("melm tag").is_none());
    assert_eq!(
        words("melm x --set 'a.b=\"3 c\"' -o y # note"),
        ["melm", "x", "--set", "a.b=\"3 c\"", "-o", "y"]
    );
    assert_eq!(
        commands("Use `melm a \\| b`.\n\n```sh\nmelm c \\\n  d\nls\n```\n"),
        ["melm a | b", "melm c    d"]
    );
}
