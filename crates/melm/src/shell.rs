//! Commands as text for a shell.

/// Returns the command `melm` with these arguments as one line. A shell reads the same arguments from it.
///
/// ```
/// use melm::shell::melm_command;
/// assert_eq!(melm_command(&["check", "my file"]), "melm check 'my file'");
/// ```
pub fn melm_command(arguments: &[impl AsRef<str>]) -> String {
    let words = arguments.iter().map(|argument| quote(argument.as_ref()));
    std::iter::once("melm".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, if it needs quotes.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let command = melm_command(&["augment", "a b.conll", "", "--set", "x=\"it's\""]);
        assert_eq!(command, r#"melm augment 'a b.conll' '' --set 'x="it'\''s"'"#);
        assert_eq!(quote("de=köln/train.conll"), "de=köln/train.conll");
    }
}
