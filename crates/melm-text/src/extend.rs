//! Writes a corpus followed by more sentences, in the formats of the files that the corpus was read from.

use crate::conll::Separator;
use crate::corpus::Corpus;
use crate::error::Error;
use crate::format::Structure;
use crate::formats::{Format, WrittenFile};
use crate::jsonl::TagNames;
use crate::labelled_file::LabelledFile;
use crate::sentence::Sentence;
use crate::token::Token;

/// The text of one language of a corpus, or of a whole corpus without languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageText {
    /// The language code; `None` for a corpus without languages.
    pub language: Option<String>,
    /// The format of the text.
    pub format: Format,
    /// The files of the text: one, or several for formats that need them.
    pub files: Vec<WrittenFile>,
    /// The names of the tag ids, if the text has ids. A reader looks for them in `FILE.names`.
    pub tag_names: Option<TagNames>,
}

impl LanguageText {
    /// The ending of the name of each file, such as `conll` or `en.jsonl`.
    pub fn suffixes(&self) -> impl Iterator<Item = String> {
        self.files.iter().map(|file| match &self.language {
            Some(language) => format!("{language}.{}", file.extension),
            None => file.extension.to_owned(),
        })
    }
}

impl Corpus {
    /// Returns the texts of the corpus followed by `more` sentences, one text for each language. A file that the corpus
    /// was read from is copied byte for byte, and the new sentences are written in the format and scheme of this file.
    /// A language without a file ([`Self::with_language_codes`]) is written in the format and scheme of the first file.
    /// A corpus without files is written as CoNLL rows. If `own` is false, the texts contain only the new sentences.
    ///
    /// The tags of `more` must use the types of this corpus. Fails with [`Error::NoName`] if a file has tag ids and a
    /// tag of `more` has no id.
    pub fn append_sentences(
        &self,
        more: &[Sentence],
        own: bool,
    ) -> Result<Vec<LanguageText>, Error> {
        if self.languages().is_empty() {
            return Ok(vec![self.append_to_part(None, self.sentences(), more, own)?]);
        }
        let parts = self.languages().iter().enumerate().map(|(index, part)| {
            let is_in = |sentence: &&Sentence| {
                sentence.language().is_some_and(|language| language.index() == index)
            };
            let more: Vec<_> = more.iter().filter(is_in).cloned().collect();
            self.append_to_part(Some(index), &self.sentences()[part.sentences.clone()], &more, own)
        });
        parts.collect()
    }

    /// Finds a token that [`Self::append_sentences`] cannot write, because it contains a space and the columns of the
    /// file are separated by spaces. `language` is the code of the sentence's language, if it has one. Returns the first
    /// such token and the file. Returns `None` if all `tokens` can be written.
    pub fn find_unwritable<'t>(
        &'t self,
        tokens: &'t [Token],
        language: Option<&str>,
    ) -> Option<(&'t Token, &'t LabelledFile)> {
        let index = self.languages().iter().position(|part| Some(&*part.code) == language);
        let file = self.files().get(index.unwrap_or(0)).or(self.files().first())?;
        match file.structure() {
            Structure::Conll(layout) if layout.separator == Separator::Space => {
                let token = tokens.iter().find(|token| token.as_str().contains(' '))?;
                Some((token, file))
            }
            _ => None,
        }
    }

    fn append_to_part(
        &self,
        language: Option<usize>,
        sentences: &[Sentence],
        more: &[Sentence],
        own: bool,
    ) -> Result<LanguageText, Error> {
        let code = language.map(|index| self.languages()[index].code.to_string());
        let own_file = self.files().get(language.unwrap_or(0));
        let Some(file) = own_file.or(self.files().first()) else {
            let own = if own { sentences } else { &[] };
            let all = own.iter().chain(more).cloned().collect();
            let corpus = Self::new(self.types().clone(), self.scheme(), all)
                .expect("all sentences are valid in the scheme of this corpus");
            let mut text = Vec::new();
            corpus.write_conll(&mut text).expect("writing to memory does not fail");
            let files = vec![WrittenFile { extension: "conll", bytes: text }];
            let format = Format::CONLL;
            return Ok(LanguageText { language: code, format, files, tag_names: None });
        };
        let files = file.write_sentences(self.types(), more, own && own_file.is_some())?;
        let tag_names = file.id_names().cloned();
        Ok(LanguageText { language: code, format: file.format(), files, tag_names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelledFile, Language, ReadOptions, Source};

    fn text(found: &LanguageText) -> &str {
        std::str::from_utf8(&found.files[0].bytes).unwrap()
    }

    fn file(text: &str) -> Corpus {
        let source = Source::from_text("a", text);
        LabelledFile::read(source, &ReadOptions::default()).unwrap().into_corpus()
    }

    #[test]
    fn each_language_keeps_its_file_and_gets_its_own_sentences() {
        let (en, de) =
            (file("in  O\nBonn  B-LOC\n"), file("{\"tokens\":[\"Rom\"],\"tags\":[\"B-LOC\"]}\n"));
        let both = Corpus::from_languages([("en", &en), ("de", &de)]);
        let texts = both.append_sentences(both.sentences(), true).unwrap();
        let suffixes: Vec<_> = texts.iter().flat_map(LanguageText::suffixes).collect();
        assert_eq!(suffixes, ["en.conll", "de.jsonl"]);
        assert_eq!(text(&texts[0]), "in  O\nBonn  B-LOC\n\nin  O\nBonn  B-LOC\n\n");
        assert_eq!(text(&texts[1]).lines().count(), 2);
        let new = both.append_sentences(&both.sentences()[..1], false).unwrap();
        assert_eq!((text(&new[0]), text(&new[1])), ("in  O\nBonn  B-LOC\n\n", ""));
    }

    #[test]
    fn a_new_language_is_written_in_the_format_of_the_first_file() {
        let one = |text| {
            let corpus = Corpus::from_languages([("en", &file(text))]);
            let corpus = corpus.with_language_codes(&["en", "de", "de"]);
            let codes: Vec<_> = corpus.languages().iter().map(|part| &*part.code).collect();
            assert_eq!(codes, ["en", "de"]);
            assert_eq!(corpus.files().len(), 1);
            let old = &corpus.sentences()[0];
            let more = Sentence::new(old.tokens().to_vec(), old.tags().to_vec()).unwrap();
            let more = [more.with_language(Language::from_index(1))];
            let texts = corpus.append_sentences(&more, true).unwrap();
            assert!(super::tests::text(&texts[0]).starts_with(text));
            assert_eq!(texts[1].suffixes().next().unwrap().split_once('.').unwrap().0, "de");
            assert_eq!(corpus.append_sentences(&more, false).unwrap()[1], texts[1]);
            super::tests::text(&texts[1]).to_owned()
        };
        assert_eq!(one("in\tIN\tO\r\nBonn\tNE\tS-LOC\r\n"), "in\t_\tO\r\nBonn\t_\tS-LOC\r\n\r\n");
        assert_eq!(
            one("{\"words\":[\"Rom\"],\"tags\":[\"B-LOC\"]}\n"),
            "{\"words\": [\"Rom\"], \"tags\": [\"B-LOC\"]}\n"
        );
    }

    #[test]
    fn a_token_with_a_space_cannot_be_written_between_spaces() {
        let (en, de) = (file("in O\nBonn B-LOC\n"), file("in\tO\nBad Ems\tB-LOC\n"));
        let both = Corpus::from_languages([("en", &en), ("de", &de)]);
        let both = both.with_language_codes(&["en", "de", "nl"]);
        let tokens = de.sentences()[0].tokens();
        for (language, expected) in [("en", Some("Bad Ems")), ("de", None), ("nl", Some("Bad Ems"))]
        {
            let found = both.find_unwritable(tokens, Some(language));
            assert_eq!(found.map(|(token, _)| token.as_str()), expected, "{language}");
        }
        assert!(de.find_unwritable(tokens, None).is_none());
        assert!(en.find_unwritable(&tokens[..1], None).is_none());
        let json = file("{\"tokens\":[\"Rom\"],\"tags\":[\"B-LOC\"]}\n");
        assert!(json.find_unwritable(tokens, None).is_none());
    }

    #[test]
    fn a_corpus_without_a_file_is_written_as_rows() {
        let read = file("in O\nBonn B-LOC\n");
        let corpus = Corpus::new(read.types().clone(), read.scheme(), read.sentences().to_vec());
        let texts = corpus.unwrap().append_sentences(read.sentences(), true).unwrap();
        assert_eq!(text(&texts[0]), "in O\nBonn B-LOC\n\nin O\nBonn B-LOC\n\n");
        assert_eq!(texts[0].suffixes().next().unwrap(), "conll");
    }
}
