//! What `check` says about the places of a BRAT folder, which has many files.

use melm_text::check::{Report, SeenSentences, Suspicion};
use melm_text::{Encoding, ReadOptions, Source};

#[test]
fn places_in_a_brat_folder_have_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("a.txt", "Ada sang.\nIt rained.\n");
    write("a.ann", "T1\tPER 0 3\tAda\n");
    write("b.txt", "It rained.\n\nBob, slept here.\n");
    write("b.ann", "T1\tPER 12 16\tBob,\n");
    // Files without their partner are counted.
    write("c.txt", "Nobody came.\n");
    write("d.ann", "");
    let source = Source::open(folder.path(), Encoding::Utf8).unwrap();
    let mut seen = SeenSentences::default();
    let (report, survey) =
        Report::read(&source, &ReadOptions::default(), &mut seen, |_| {}).unwrap();
    let longest = &report.longest[0];
    assert_eq!((longest.tokens, longest.line, longest.file.as_deref()), (5, 3, Some("b.txt")));
    let suspicions: Vec<_> = report.suspicions.iter().collect();
    let (_, edge) = suspicions.iter().find(|(kind, _)| *kind == Suspicion::MentionEdge).unwrap();
    assert_eq!((edge.first[0].line, edge.first[0].file.as_deref()), (3, Some("b.txt")));
    assert_eq!(serde_json::to_value(&edge.first[0]).unwrap()[2], "b.txt");
    let repeat = &report.repeats.duplicates.first[0];
    assert_eq!((repeat.line, repeat.file.as_deref(), repeat.first.line), (1, Some("b.txt"), 2));
    assert!(repeat.first.file.ends_with("/a.txt"), "{}", repeat.first.file);
    assert_eq!(report.repeats.leaks.n, 0);
    let counts = &survey.structure.documents().unwrap().counts;
    assert_eq!(counts.left_out.values().sum::<usize>(), 2, "{:?}", counts.left_out);
}
