use proptest::prelude::*;

use super::*;
use crate::{Corpus, OffsetUnit, ReadOptions, Source, Token};

fn tokens<'t>(tokenizer: &Tokenizer, text: &'t str) -> Vec<&'t str> {
    tokenizer.tokenize(text).unwrap().tokens().collect()
}

/// Returns a tokenizer with the rules of a corpus with these sentences.
fn fitted(sentences: &[&str]) -> Tokenizer {
    let rows = |sentence: &&str| sentence.replace(' ', "\tO\n") + "\tO\n\n";
    let text: String = sentences.iter().map(rows).collect();
    let corpus = Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap();
    Tokenizer::new(TokenizerRules::from_corpus(&corpus))
}

fn assert_tokens(tokenizer: &Tokenizer, text: &str, expected: &str) {
    assert_eq!(tokens(tokenizer, text).join(" "), expected, "{text}");
}

#[test]
fn punctuation_is_split_off_and_words_and_numbers_stay_whole() {
    let tokenizer = Tokenizer::default();
    for (text, expected) in [
        ("He said: \"No!\"", "He said : \" No ! \""),
        ("(U.S. troops), e.g. J.R.R. Tolkien.", "( U.S. troops ) , e.g. J.R.R. Tolkien ."),
        ("Mr. Smith vs. St. Pauli", "Mr. Smith vs. St. Pauli"),
        ("a well-known F-16, 3-1 on 1/2", "a well-known F-16 , 3-1 on 1/2"),
        ("1,000 or 3.5 at 10:30, .5", "1,000 or 3.5 at 10:30 , .5"),
        ("$5, 5% and 5 %", "$ 5 , 5 % and 5 %"),
        ("Well... no -- ===", "Well ... no -- ==="),
        ("\"'Tis ((odd))\"", "\" ' Tis ( ( odd ) ) \""),
        ("AT&T, O'Brien and @ada", "AT&T , O'Brien and @ada"),
        ("and/or Paris–Nice", "and / or Paris – Nice"),
        ("the end.The start", "the end . The start"),
        ("see https://a.org/b?c=1, or (www.b.de).", "see https://a.org/b?c=1 , or ( www.b.de ) ."),
        ("mail a.b-c@d.example.org.", "mail a.b-c@d.example.org ."),
        ("am 3. Oktober 1990.", "am 3. Oktober 1990 ."),
        ("¿Qué? «Sí»", "¿ Qué ? « Sí »"),
        ("-DOCSTART-", "- DOCSTART-"),
    ] {
        assert_tokens(&tokenizer, text, expected);
    }
}

#[test]
fn clitics_and_negations_follow_the_corpus() {
    let english = fitted(&["Ada 's cat does n't sing"]);
    assert_tokens(&english, "Bob's cats can't; they're", "Bob 's cats ca n't ; they 're");
    assert_tokens(&english, "the cats' tails", "the cats ' tails");
    let dutch = fitted(&["de foto's zo'n", "'s avonds"]);
    assert_tokens(&dutch, "de programma's, 's avonds", "de programma's , 's avonds");
    let french = fitted(&["l' Italie d' un"]);
    assert_tokens(&french, "qu'elle aime l'eau", "qu' elle aime l' eau");
    let tweets = fitted(&["I don't can't it's"]);
    assert_tokens(&tweets, "won't it's", "won't it's");
}

#[test]
fn hyphens_and_slashes_follow_the_corpus() {
    let split = fitted(&["a well - known b", "co - op x - y", "so - so"]);
    assert_tokens(&split, "far-off", "far - off");
    // Separate hyphens do not say that hyphens are split, because they were separate in the original text.
    let kept = fitted(&["a - b - c - d - e - f", "well-known x"]);
    assert_tokens(&kept, "far-off", "far-off");
    assert_tokens(&fitted(&["km/h x/y"]), "and/or", "and/or");
    assert_tokens(&fitted(&["Ein- und", "Aus- und"]), "Haus- und", "Haus- und");
}

#[test]
fn frequent_tokens_of_the_corpus_are_kept_whole() {
    let tokenizer = fitted(&["the Mgr. C++ x", "the Mgr. C++ y"]);
    assert_eq!(tokenizer.rules().n_exceptions(), 2);
    assert_tokens(&tokenizer, "(C++, Mgr.)", "( C++ , Mgr. )");
    assert_tokens(&tokenizer, "C++x", "C ++ x");
    let doubtful = fitted(&["end. x", "end. y", "end .", "end .", "end ."]);
    assert_tokens(&doubtful, "the end. x", "the end . x");
}

#[test]
fn grapheme_clusters_and_invisible_characters_are_not_cut() {
    let tokenizer = Tokenizer::default();
    assert_eq!(
        tokens(&tokenizer, "e\u{301}te\u{301}, 👨‍👩‍👧🇩🇪"),
        ["e\u{301}te\u{301}", ",", "👨‍👩‍👧", "🇩🇪"]
    );
    assert_eq!(tokens(&tokenizer, "\u{feff}Wort\u{ad}teil\u{200f}."), ["Wort\u{ad}teil", "."]);
    assert_eq!(tokens(&tokenizer, "a\u{200b}b\r\nc\u{a0}d\u{1}e"), ["a", "b", "c", "d", "e"]);
    assert_eq!(tokens(&tokenizer, "می‌خواهم، שלום!"), ["می‌خواهم", "،", "שלום", "!"]);
}

#[test]
fn scripts_without_spaces_are_refused_unless_the_corpus_has_single_characters() {
    let tokenizer = Tokenizer::default();
    for (text, script) in [
        ("in 北京", UnspacedScript::Han),
        ("カー", UnspacedScript::Kana),
        ("ภาษา", UnspacedScript::Thai),
        ("ລາວ", UnspacedScript::Lao),
        ("ខ្មែរ", UnspacedScript::Khmer),
        ("မြန်မာ", UnspacedScript::Myanmar),
    ] {
        assert_eq!(tokenizer.tokenize(text).unwrap_err().script, script);
    }
    assert_eq!(tokenizer.tokenize("in 北京").unwrap_err().at, 3);
    let characters = fitted(&["我 在 北 京 。", "他 是 中 国 人 吗 。"]);
    assert_tokens(&characters, "你在上海。", "你 在 上 海 。");
    let words = fitted(&["我 在 北京 。 他 是 中国 人 。 我 在 北京 。 他 是"]);
    assert!(words.tokenize("北京").is_err());
    assert!(characters.tokenize("カー").is_err());
    assert_tokens(&tokenizer, "한국어 문장이다.", "한국어 문장이다 .");
}

#[test]
fn sentences_end_at_final_marks_before_capital_letters() {
    let split = |text: &str| -> Vec<String> {
        let tokenizer = Tokenizer::default();
        let found = tokenizer.tokenize(text).unwrap();
        let spans = found.spans();
        let ranges = tokenizer.split_sentences(&found).into_iter();
        ranges
            .map(|range| text[spans[range.start].start..spans[range.end - 1].end].into())
            .collect()
    };
    assert_eq!(split("It rained. Ada sang! \"Why?\" \"So.\" ¿Qué?").len(), 5);
    assert_eq!(
        split("He said (loudly.) \"No.\" Then he left."),
        ["He said (loudly.)", "\"No.\"", "Then he left."]
    );
    for one in [
        "Mr. Smith met J. Doe of the U.S. Army.",
        "on the 3. Oktober.",
        "It rained. but not here",
        "version 2.Beta is out",
        "Dr. No",
        "",
    ] {
        assert!(split(one).len() <= 1, "{one}");
    }
    assert_eq!(split("title\n\ntext"), ["title", "text"]);
    assert_eq!(split("a line\nof text").len(), 1);
    let characters = fitted(&["我 在 北 京 他 是 中 国 人 吗"]);
    let found = characters.tokenize("我在。他是！「人。」国").unwrap();
    assert_eq!(characters.split_sentences(&found), [0..3, 3..6, 6..11]);
    assert_eq!(split("सब ठीक है. वह गया.").len(), 2);
}

/// Texts with the characters that tokenizers get wrong.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-zA-Z0-9äÉß]{1,4}",
        "[-./,:;'’\"()\\[\\]&@#$%!?…–—=*+_ \t]",
        "[ \u{a0}\u{200b}\u{200d}\u{ad}\u{feff}\u{200f}\u{202e}\u{301}\u{20dd}]",
        "[אבגد👩🏽🇩🇪❤️]",
        Just("\r\n".to_owned()),
        Just("http://".to_owned()),
        Just("n't".to_owned()),
        Just("-DOCSTART-".to_owned()),
        Just("北".to_owned()),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Tokenizers with different rules.
fn tokenizers() -> impl Strategy<Value = Tokenizer> {
    proptest::collection::vec(any::<bool>(), TokenizerChoice::ALL.len()).prop_map(|joins| {
        let mut rules =
            fitted(&["我 在 北 京 他 是 中 国 人 我", "C++ x.", "C++ x."]).rules().clone();
        for (choice, joins) in TokenizerChoice::ALL.into_iter().zip(joins) {
            rules = rules.with_choice(choice, joins);
        }
        Tokenizer::new(rules)
    })
}

proptest! {
    #[test]
    fn gaps_and_tokens_are_the_text_again(text in texts(), tokenizer in tokenizers()) {
        let Ok(found) = tokenizer.tokenize(&text) else { return Ok(()) };
        let mut again = String::new();
        for (gap, token) in found.gaps().zip(found.tokens().map(Some).chain([None])) {
            again.push_str(gap);
            again.push_str(token.unwrap_or_default());
            prop_assert!(!gap.chars().any(char::is_alphanumeric));
        }
        prop_assert_eq!(&again, &text);
        for token in found.tokens() {
            prop_assert!(Token::new(token).is_ok(), "{:?}", token);
            prop_assert!(!token.contains(char::is_whitespace) || token.chars().count() > 1, "{:?}", token);
        }
    }

    #[test]
    fn offsets_in_code_points_and_utf16_select_the_tokens(text in texts()) {
        let tokenizer = Tokenizer::default();
        let Ok(found) = tokenizer.tokenize(&text) else { return Ok(()) };
        let chars: Vec<char> = text.chars().collect();
        let wide: Vec<u16> = text.encode_utf16().collect();
        let code_points = found.spans_in(OffsetUnit::CodePoint).into_iter();
        let utf16 = found.spans_in(OffsetUnit::Utf16).into_iter();
        for (token, (points, units)) in found.tokens().zip(code_points.zip(utf16)) {
            prop_assert_eq!(chars[points].iter().collect::<String>(), token);
            prop_assert_eq!(String::from_utf16(&wide[units]).unwrap(), token);
        }
    }

    #[test]
    fn sentences_contain_all_tokens(text in texts()) {
        let tokenizer = Tokenizer::default();
        let Ok(found) = tokenizer.tokenize(&text) else { return Ok(()) };
        let mut end = 0;
        for sentence in tokenizer.split_sentences(&found) {
            prop_assert_eq!(sentence.start, end);
            prop_assert!(sentence.start < sentence.end);
            end = sentence.end;
        }
        prop_assert_eq!(end, found.spans().len());
    }
}
