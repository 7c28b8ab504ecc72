//! How the data commands treat files, pipes, signals and `--help`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const TEXT: &str = "Ada B-PER\nLovelace I-PER\nsang O\n\nOslo B-LOC\n\n";

fn melm(args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_melm"));
    command.args(args).current_dir(folder);
    command
}

fn run(args: &[&str], folder: &Path, input: &str) -> Output {
    let mut child = melm(args, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that fails at once may end before it reads its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn standard_output_contains_only_data() {
    let folder = tempfile::tempdir().unwrap();
    let json = run(&["convert", "-", "--to", "jsonl"], folder.path(), TEXT);
    assert!(json.status.success());
    assert!(text(&json.stdout).lines().all(|line| line.starts_with('{')));
    let back = run(&["convert", "-", "--to", "conll"], folder.path(), text(&json.stdout));
    assert_eq!(text(&back.stdout), TEXT.replace(' ', "\t"));
    assert!(!text(&back.stderr).contains('\u{1b}'), "colours only on a terminal");
}

#[test]
fn quiet_prints_only_errors() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(&["-q", "convert", "-"], folder.path(), TEXT);
    assert_eq!((text(&done.stdout), text(&done.stderr)), (TEXT, ""));
    let wrong = run(&["-q", "convert", "-"], folder.path(), "Ada PER\n");
    assert!(text(&wrong.stderr).starts_with("error: "));
}

#[test]
fn a_bad_input_leaves_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let mut input = TEXT.repeat(20_000);
    input += "Oslo LOC\n";
    let done = run(&["convert", "-", "-o", "out.conll"], folder.path(), &input);
    assert_eq!(done.status.code(), Some(1));
    assert!(names_in(folder.path()).is_empty(), "{:?}", names_in(folder.path()));
    let done = run(&["convert", "-"], folder.path(), &input);
    assert_eq!((done.status.code(), done.stdout.len()), (Some(1), 0));
}

#[test]
fn files_are_overwritten_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.conll");
    fs::write(&out, "mine").unwrap();
    let refused = run(&["convert", "-", "-o", "out.conll"], folder.path(), "");
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    let forced = run(&["convert", "-", "-o", "out.conll", "--force"], folder.path(), TEXT);
    assert!(forced.status.success());
    assert_eq!(fs::read_to_string(&out).unwrap(), TEXT);
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("big.conll"), TEXT.repeat(50_000)).unwrap();
    let mut child = melm(&["convert", "big.conll"], folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut few = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), ""));
}

#[cfg(unix)]
#[test]
fn an_interrupted_command_exits_with_130_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("big.conll"), TEXT.repeat(2_000_000)).unwrap();
    let mut child = melm(&["-q", "convert", "big.conll", "-o", "out.conll"], folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !names_in(folder.path()).iter().any(|name| name.ends_with(".unfinished")) {
        assert!(started.elapsed() < Duration::from_secs(20), "no file was written");
        assert!(child.try_wait().unwrap().is_none(), "the command ended before the signal");
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names_in(folder.path()), ["big.conll"]);
}

#[cfg(unix)]
#[test]
fn output_keeps_links_pipes_and_other_files() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("target"), "old").unwrap();
    fs::set_permissions(at("target"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("target", at("link")).unwrap();
    assert_eq!(run(&["convert", "-", "-o", "link"], folder.path(), TEXT).status.code(), Some(1));
    assert!(run(&["convert", "-", "-o", "link", "--force"], folder.path(), TEXT).status.success());
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(at("target")).unwrap(), TEXT);
    assert_eq!(fs::metadata(at("target")).unwrap().permissions().mode() & 0o777, 0o600);

    fs::write(at("out.unfinished"), "mine").unwrap();
    assert!(run(&["convert", "-", "-o", "out"], folder.path(), TEXT).status.success());
    assert_eq!(fs::read_to_string(at("out.unfinished")).unwrap(), "mine");

    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let pipe = at("pipe");
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).unwrap());
    assert!(run(&["convert", "-", "-o", "pipe"], folder.path(), TEXT).status.success());
    assert_eq!(reader.join().unwrap(), TEXT);
    assert!(fs::metadata(at("pipe")).unwrap().file_type().is_fifo());
    let bad = TEXT.to_owned() + "Oslo LOC\n";
    assert_eq!(run(&["convert", "-", "-o", "pipe"], folder.path(), &bad).status.code(), Some(1));
}

/// A format with two files is read by the name of one of them, so both need their endings.
#[test]
fn a_format_with_two_files_gets_both_endings() {
    let folder = tempfile::tempdir().unwrap();
    for (out, names) in
        [("a", ["a.ann", "a.txt"]), ("b.ann", ["b.ann", "b.txt"]), ("c.x", ["c.x.ann", "c.x.txt"])]
    {
        let done = run(&["convert", "-", "--to", "brat", "-o", out], folder.path(), TEXT);
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(names.iter().all(|name| folder.path().join(name).exists()), "{out}");
        let report = run(&["check", "--json", names[0]], folder.path(), "");
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(
            report["files"][0]["mentions"],
            serde_json::json!({ "LOC": 1, "PER": 1 }),
            "{out}"
        );
    }
    assert_eq!(names_in(folder.path()).len(), 6);
}

#[test]
fn a_folder_cannot_be_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.conll"), TEXT).unwrap();
    for command in ["augment", "train", "finetune", "trial"] {
        let refused = run(&[command, "a.conll", "-o", "-"], folder.path(), "");
        assert_eq!(refused.status.code(), Some(2), "{command}");
        assert!(text(&refused.stderr).contains("expected a folder"), "{}", text(&refused.stderr));
    }
    assert_eq!(names_in(folder.path()), ["a.conll"]);
}

fn tiny(name: &str) -> String {
    format!("{}/../../testdata/tiny/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn names_of_tag_ids_are_found_next_to_the_file_and_copied_by_sample() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(&["-q", "convert", &tiny("hf-ids.jsonl"), "--to", "conll"], folder.path(), "");
    let wanted = "# id 0\nOslo\tB-LOC\nand\tO\nBergen\tB-LOC\n\n\
                  # id 1\nGreta\tB-PER\nGarbo\tI-PER\nleft\tO\nStockholm\tB-LOC\n\n";
    assert_eq!(text(&done.stdout), wanted);
    let args = ["sample", &tiny("hf-ids.jsonl"), "--size", "1", "-o", "one.jsonl"];
    assert!(run(&args, folder.path(), "").status.success());
    assert!(run(&["check", "one.jsonl"], folder.path(), "").status.success());
    let ids = fs::read_to_string(tiny("hf-ids.jsonl")).unwrap();
    let stdin = run(&["check", "-"], folder.path(), &ids);
    assert!(text(&stdin.stderr).contains("0 names are known"), "no names for standard input");
}

#[test]
fn other_keys_are_kept_and_values_left_out_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let strings = fs::read_to_string(tiny("hf-strings.jsonl")).unwrap();
    let same = run(&["-q", "convert", "-"], folder.path(), &strings);
    assert_eq!(text(&same.stdout), strings);
    let conll = run(&["convert", "-", "--to", "conll"], folder.path(), &strings);
    assert!(text(&conll.stderr).contains("left out 2 other values"), "{}", text(&conll.stderr));
    let multiconer = tiny("conll2003.conll");
    let json = run(&["convert", &multiconer, "--to", "jsonl"], folder.path(), "");
    assert!(text(&json.stderr).contains("left out 2 other columns"));
    assert!(text(&json.stderr).contains("left out 2 comment lines"), "{}", text(&json.stderr));
    let ids = "# id 7\n# note\nAda B-PER\n\n# id 8\tdomain=en\nIda B-PER\n\n# end\n";
    let json = run(&["convert", "-", "--to", "jsonl"], folder.path(), ids);
    assert!(text(&json.stderr).contains("left out 3 comment lines"), "{}", text(&json.stderr));
    let null = "{\"id\":null,\"tokens\":[\"a\"],\"ner_tags\":[\"O\"]}\n";
    let conll = run(&["convert", "-", "--to", "conll"], folder.path(), null);
    assert_eq!(text(&conll.stdout), "a\tO\n\n");
    assert!(text(&conll.stderr).contains("left out 1 other value"), "{}", text(&conll.stderr));
    let marks = "{\"tokens\":[\"-DOCSTART-\"],\"ner_tags\":[\"O\"]}\n\
                 {\"tokens\":[\"Oslo\"],\"ner_tags\":[\"B-LOC\"]}\n";
    let kept = run(&["-q", "convert", "-"], folder.path(), marks);
    assert_eq!(text(&kept.stdout), marks);
}

#[test]
fn changing_the_separator_keeps_every_column() {
    let folder = tempfile::tempdir().unwrap();
    let tabbed = "Ada\t\tB-PER\nsang\tN P\tO\n\n";
    let same = run(&["-q", "convert", "-", "--separator", "tab"], folder.path(), tabbed);
    assert_eq!(text(&same.stdout), tabbed);
    let late = format!("fine\tX\tO\n\n{tabbed}");
    let refused = run(&["-q", "convert", "-", "--separator", "space"], folder.path(), &late);
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""));
    let spaced =
        run(&["-q", "convert", "-", "--separator", "tab"], folder.path(), "a  X   B-PER\n");
    assert_eq!(text(&spaced.stdout), "a\tX\tB-PER\n\n");
}

#[test]
fn a_report_into_a_closed_pipe_still_counts_the_problems() {
    let folder = tempfile::tempdir().unwrap();
    let many: String = (0..20_000).map(|n| format!("w B-T{n}\n\n")).collect();
    fs::write(folder.path().join("many"), many + "w BAD\n").unwrap();
    let mut child = melm(&["check", "many"], folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("`BAD` is not a tag"));
}

#[test]
fn samples_are_nested_and_list_their_sentences() {
    let folder = tempfile::tempdir().unwrap();
    let sentences: String = (1..=50).map(|n| format!("# id s{n}\nword{n} B-X\n\n")).collect();
    let numbers = |size: &str, out: &str| -> Vec<String> {
        let args = ["sample", "-", "--size", size, "--seed", "3", "-o", out];
        assert!(run(&args, folder.path(), &sentences).status.success());
        let drawn = fs::read_to_string(folder.path().join(out)).unwrap();
        let ids = fs::read_to_string(folder.path().join(format!("{out}.ids"))).unwrap();
        let ids: Vec<_> = ids.lines().skip(1).map(str::to_owned).collect();
        for id in &ids {
            let (number, name) = id.split_once('\t').unwrap();
            assert_eq!(name, format!("s{number}"));
            assert!(drawn.contains(&format!("# id s{number}\nword{number} B-X\n\n")));
        }
        assert_eq!(drawn.matches("# id").count(), ids.len());
        ids
    };
    let (few, many) = (numbers("10", "a.conll"), numbers("20", "b.conll"));
    assert_eq!((few.len(), many.len()), (10, 20));
    assert!(few.iter().all(|id| many.contains(id)));
}

#[test]
fn tag_ids_are_read_back_as_the_same_tags() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["convert", "-", "-o", "a.jsonl", "--tag-ids"];
    assert!(run(&args, folder.path(), TEXT).status.success());
    let json = fs::read_to_string(folder.path().join("a.jsonl")).unwrap();
    assert!(json.contains("\"ner_tags\":[3,4,0]"), "{json}");
    let back = run(&["convert", "a.jsonl", "--to", "conll"], folder.path(), "");
    assert_eq!(text(&back.stdout), TEXT.replace(' ', "\t"));
}

#[test]
fn latin1_is_read_with_the_option() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("l1"), b"K\xf6ln B-LOC\n").unwrap();
    let done = run(&["-q", "convert", "l1", "--encoding", "latin1"], folder.path(), "");
    assert_eq!(text(&done.stdout), "Köln B-LOC\n\n");
}

#[test]
fn repair_corrects_tags_and_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let slip = "Ada B-PER\n\nin O\nOslo I-LOC\n\nNew B-LOC\nYork I-LOC\n\n";
    let done = run(&["convert", "-", "--repair"], folder.path(), slip);
    assert_eq!(text(&done.stdout), slip.replace("Oslo I-LOC", "Oslo B-LOC"));
    assert!(text(&done.stderr).contains("repaired 1 tag"), "{}", text(&done.stderr));
    let mixed = run(&["convert", "-", "--repair"], folder.path(), "a S-X\n\nb U-X\n\n");
    assert_eq!(text(&mixed.stdout), "a S-X\n\nb S-X\n\n");
    assert!(text(&mixed.stderr).contains("wrote all tags in IOBES"), "{}", text(&mixed.stderr));
}

#[test]
fn scores_as_json_have_the_micro_rates_at_the_top() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gold"), TEXT).unwrap();
    let predicted = TEXT.replace("Oslo B-LOC", "Oslo B-PER");
    let done = run(&["score", "--json", "gold", "-"], folder.path(), &predicted);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    for key in ["f1", "precision", "recall"] {
        assert!((json[key].as_f64().unwrap() - 0.5).abs() < 1e-12, "{json}");
    }
    assert_eq!(json["types"]["PER"]["support"], 1);
    assert_eq!(json["types"]["PER"]["predicted"], 2);
}

#[test]
fn leaks_between_splits_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train"), TEXT).unwrap();
    fs::write(folder.path().join("test"), "new O\n\nOslo O\n\n").unwrap();
    let done = run(&["check", "train", "test"], folder.path(), "");
    assert!(done.status.success());
    assert!(text(&done.stdout).contains("line 3: same as train:5, with other mentions"));
    let done = run(&["check", "--json", "train", "test"], folder.path(), "");
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["files"][1]["repeats"]["leaks"]["n"], 1);
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    clap_mangen::generate_to(melm_cli::command(), folder.path()).unwrap();
    for command in melm_cli::command().get_subcommands() {
        let path = folder.path().join(format!("melm-{}.1", command.get_name()));
        let page = fs::read_to_string(&path).unwrap();
        assert!(page.contains(".SH DESCRIPTION"), "{}", path.display());
    }
}

#[test]
fn help_and_completions_contain_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let done = run(&["completions", shell], folder.path(), "");
        for command in ["check", "convert", "sample", "score"] {
            assert!(text(&done.stdout).contains(command), "{shell} {command}");
        }
    }
    for command in ["check", "convert", "sample", "score"] {
        let help = run(&[command, "--help"], folder.path(), "");
        assert!(text(&help.stdout).contains(&format!("melm {command} ")), "{command}: an example");
    }
    assert_eq!(run(&[], folder.path(), "").status.code(), Some(2));
}
