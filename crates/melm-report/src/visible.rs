//! Makes invisible characters visible.

/// Returns `text` with control characters and characters that change the direction of the text around them written as
/// `⟨U+202E⟩`. A reader can then see them, and they cannot hide or reorder other parts of the page.
///
/// Joiners and the marks U+200E and U+200F stay as they are: Arabic, Persian and Indic scripts need them.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            shown += &format!("⟨U+{:04X}⟩", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' // embeddings, overrides and isolates
            | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{fffe}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_and_scripts_stay() {
        assert_eq!(visible("a\u{202e}b\u{2066}\u{7}"), "a⟨U+202E⟩b⟨U+2066⟩⟨U+0007⟩");
        for text in ["Köln", "می\u{200c}خواهم", "שלום\u{200f}", "👩\u{200d}🔬", "क्\u{200d}ष"]
        {
            assert_eq!(visible(text), text);
        }
    }
}
