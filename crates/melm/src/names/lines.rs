//! Checks that the lines of a list are names and not the rows of a table.

use melm_text::{EntityTypes, Error, Fault, Problems, UnlabelledText};

/// The advice for every file that is not a list of names.
const CURE: &str = "write one name on each line, without other columns; `cut -f 1` keeps the first column of a table with tabs";

/// Fails if most lines of a list are CoNLL rows or have tabs. The problem is at the first of these lines.
pub(super) fn check(text: &UnlabelledText) -> Result<(), Error> {
    let (has_tab, ends_in_tag) =
        (find_most(text, |line| line.contains('\t')), find_most(text, ends_in_tag));
    let (line, message) = match (ends_in_tag, has_tab) {
        (Some(line), _) => (line, "most lines end in a tag: the file has CoNLL rows, not names"),
        (None, Some(line)) => {
            (line, "most lines have a tab: the file is a table, not a list of names")
        }
        (None, None) => return Ok(()),
    };
    Err(fail(text.files().first().map_or("names", |file| &file.name), line, message))
}

/// Returns the first line with a comma, if most lines have one. Such lines may be rows of a table, but there are also names
/// with a comma.
pub(super) fn find_comma(text: &UnlabelledText) -> Option<Line<'_>> {
    find_most(text, |line| line.contains(','))
}

/// Replaces the error for a file without text by one that says what a list of names is.
pub(super) fn explain_no_text(error: Error) -> Error {
    match error {
        Error::Data { name, problems, .. }
            if problems.first().iter().any(|problem| problem.fault == Fault::NoText) =>
        {
            fail(&name, Line { number: 1, text: "" }, "the list contains no name")
        }
        other => other,
    }
}

/// A line of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    /// Its number, from 1.
    pub(super) number: usize,
    pub(super) text: &'t str,
}

/// Returns the first line that `is_such`, if more than half of the lines are.
fn find_most(text: &UnlabelledText, is_such: impl Fn(&str) -> bool) -> Option<Line<'_>> {
    let (mut first, mut n, mut n_such) = (None, 0, 0);
    for sentences in text.sentences().chunk_by(|a, b| a.line() == b.line()) {
        let Some(line) = sentences[0].text() else { continue };
        n += 1;
        if is_such(line.trim()) {
            n_such += 1;
            first.get_or_insert(Line { number: sentences[0].line(), text: line });
        }
    }
    first.filter(|_| n_such * 2 > n)
}

/// Returns true if the last of several words is `O` or a tag such as `B-PER`.
fn ends_in_tag(line: &str) -> bool {
    line.rsplit_once([' ', '\t']).is_some_and(|(_, last)| {
        last == "O" || last.contains('-') && EntityTypes::default().parse(last).is_ok()
    })
}

fn fail(file: &str, line: Line<'_>, message: &str) -> Error {
    let mut problems = Problems::default();
    let fault = Fault::Record { message: message.to_owned(), cure: CURE };
    problems.push(line.number, 0..line.text.len(), fault);
    Error::data(file, &("\n".repeat(line.number - 1) + line.text), problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{TextFormat, TextOptions};

    fn read(text: &str) -> UnlabelledText {
        let options = TextOptions { format: Some(TextFormat::Plain), ..TextOptions::default() };
        UnlabelledText::read("names.txt", text.as_bytes(), &options).unwrap()
    }

    /// The line and the message of the problem.
    fn problem(text: &str) -> Option<(usize, String)> {
        match check(&read(text)) {
            Ok(()) => None,
            Err(Error::Data { name, problems, .. }) => {
                assert_eq!((&*name, problems.len()), ("names.txt", 1));
                let problem = &problems.first()[0];
                Some((problem.line, problem.fault.to_string()))
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn rows_and_tables_are_refused_and_names_are_not() {
        for names in [
            "Oslo\nNew York\n",
            "Jackie O\nIan Rankin\nVitamin B-12\nOslo\n",
            "Olaf Scholz, SPD\nRobert Habeck, Greens\n",
            "Oslo\t\nNew York\nBonn\n",
        ] {
            assert_eq!(problem(names), None, "{names}");
        }
        let (line, message) = problem("Oslo\n\nAda B-PER\nsang O\n").unwrap();
        assert!(line == 3 && message.contains("CoNLL rows"), "{line}: {message}");
        let (line, message) = problem("Oslo\tNorway\nBonn\tGermany\n").unwrap();
        assert!(line == 1 && message.contains("a table"), "{line}: {message}");
        let (_, message) = problem("Ada\tB-PER\nsang\tO\n").unwrap();
        assert!(message.contains("CoNLL rows"), "{message}");
    }

    #[test]
    fn commas_in_most_lines_are_found() {
        let text = read("Oslo\nScholz, SPD\nHabeck, Greens\n");
        assert_eq!(find_comma(&text), Some(Line { number: 2, text: "Scholz, SPD" }));
        assert_eq!(find_comma(&read("Oslo\nBonn\nWashington, D.C.\n")), None);
    }
}
