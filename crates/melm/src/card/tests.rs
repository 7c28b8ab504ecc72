use super::*;

fn corpus(text: &str) -> Corpus {
    let source = melm_text::Source::from_text("my data/train.conll", text);
    let file = melm_text::LabelledFile::read(source, &melm_text::ReadOptions::default()).unwrap();
    file.into_corpus()
}

#[test]
fn a_card_of_the_user_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(CARD);
    assert_eq!(write_card(dir.path(), "first\n").unwrap(), CardState::Written);
    let first = std::fs::read_to_string(&path).unwrap();
    assert!(first.starts_with("first\n\n<!-- Written by melm."), "{first}");
    // A card that nobody has changed is replaced, and the same text gives the same bytes.
    assert_eq!(write_card(dir.path(), "second\n").unwrap(), CardState::Written);
    assert_eq!(write_card(dir.path(), "first\n").unwrap(), CardState::Written);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    for own in [first.replace("first", "licence: mine"), first.clone() + "more\n", String::new()] {
        std::fs::write(&path, &own).unwrap();
        assert_eq!(write_card(dir.path(), "second\n").unwrap(), CardState::Kept);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), own);
    }
    // A file that is no text.
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert_eq!(write_card(dir.path(), "second\n").unwrap(), CardState::Kept);
}

#[test]
fn a_card_has_the_command_or_says_that_there_is_none() {
    let text = |arguments: &[&str]| {
        let mut card = Card::default();
        card.repetition(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>(), 7);
        card.0
    };
    let command = text(&["train", "my data", "--set", "a=it's"]);
    assert!(command.contains("$ melm train 'my data' --set 'a=it'\\''s'\n```\n"), "{command}");
    assert!(!command.contains("standard input"), "{command}");
    for input in ["-", "en=-"] {
        assert!(text(&["train", input]).contains("The file `-` is standard input"), "{input}");
    }
    // A line feed cannot end the block of code.
    assert!(text(&["train", "a\n```\nb"]).contains(r"$ melm train 'a\n```\nb'"));
    let library = text(&[]);
    assert!(library.contains("a program called melm as a library"), "{library}");
    assert!(!library.contains("```") && library.contains("The seed is 7."), "{library}");
}

#[test]
fn names_cannot_break_tables_or_headers() {
    let odd = corpus("Ada\tB-a|b\nsang\tO\n\nBonn\tB-\"x\": y\n");
    assert_eq!(count_mentions(&odd), [("\"x\": y", 1), ("a|b", 1)]);
    let mut card = Card::default();
    card.yaml_list("entity_types", count_mentions(&odd).into_iter().map(|(name, _)| name));
    card.row(&["a|b", "c\nd"]);
    assert_eq!(card.0, "entity_types:\n- \"\\\"x\\\": y\"\n- \"a|b\"\n| a\\|b | c d |\n");
}
