//! Labelled files, one or one a language, as the one corpus that a command works on.

use melm::files::Fingerprint;
use melm_text::{Corpus, EntityTypes, Sentence};
use serde_json::Value;

use crate::args::{Input, Reading};
use crate::data::Data;
use crate::failure::Failure;
use crate::output::is_stdout;
use crate::terminal::Terminal;

/// What was read.
pub(crate) struct Labelled {
    pub(crate) parts: Vec<(Option<String>, Data)>,
    /// All sentences, if their languages were named.
    merged: Option<Corpus>,
}

impl Labelled {
    /// Reads the files. Several need their languages, each another.
    pub(crate) fn read(
        inputs: &[Input],
        reading: &Reading,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        check(inputs)?;
        let read = |input: &Input| {
            let data = Data::read(&input.path, reading, terminal)?;
            Ok((input.language.clone(), data))
        };
        let parts = inputs.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
        let named = parts.iter().filter_map(|(code, data)| Some((code.as_deref()?, data.corpus())));
        let named: Vec<_> = named.collect();
        let merged = (!named.is_empty()).then(|| Corpus::from_languages(named));
        Ok(Self { parts, merged })
    }

    /// Reads a dev set, if there is one; its languages must be those of the training set.
    pub(crate) fn read_dev(
        &self,
        inputs: &[Input],
        reading: &Reading,
        terminal: &Terminal,
    ) -> Result<Option<Self>, Failure> {
        for Input { language, path } in inputs {
            if self.parts.iter().any(|(known, _)| known == language) {
                continue;
            }
            return Err(match language {
                Some(code) => Failure::Usage {
                    message: format!("the dev set has the language `{code}`, TRAIN has not"),
                    hint: "give both the same languages",
                },
                None => Failure::Usage {
                    message: format!("the language of `{}` is not named", path.display()),
                    hint: "TRAIN has languages: name the dev set's too, as `--dev en=FILE`",
                },
            });
        }
        if inputs.is_empty() { Ok(None) } else { Self::read(inputs, reading, terminal).map(Some) }
    }

    /// All sentences.
    pub(crate) fn corpus(&self) -> &Corpus {
        self.merged.as_ref().unwrap_or_else(|| self.parts[0].1.corpus())
    }

    /// `100 sentences of file`, of each.
    pub(crate) fn described(&self) -> String {
        let one = |(code, data): &(Option<String>, Data)| match code {
            Some(code) => format!("{} ({code})", data.described()),
            None => data.described(),
        };
        self.parts.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Adds everything that decides what was read.
    pub(crate) fn add_to(&self, fingerprint: &mut Fingerprint) {
        for (code, data) in &self.parts {
            if let Some(code) = code {
                fingerprint.add(code.as_bytes());
            }
            data.add_to(fingerprint);
        }
    }

    /// What the record of a run says of it: of one file as it is, of languages a list.
    pub(crate) fn record(&self) -> Value {
        let one = |(code, data): &(Option<String>, Data)| {
            let mut record = data.record();
            if let Some(code) = code {
                record["language"] = code.as_str().into();
            }
            record
        };
        match &self.parts[..] {
            [only @ (None, _)] => one(only),
            all => all.iter().map(one).collect(),
        }
    }

    /// The text of every file with more sentences behind its own, or those alone: its suffix, and the text. A sentence
    /// goes to the file of its language, in that file's own scheme.
    pub(crate) fn extended(
        &self,
        more: &[Sentence],
        union: bool,
    ) -> Result<Vec<(String, String)>, Failure> {
        let mut texts = Vec::new();
        for (number, (code, data)) in self.parts.iter().enumerate() {
            let format = data.file.format().name();
            let write = |types: &EntityTypes, more: &[Sentence]| {
                if union {
                    data.file.append_sentences(types, more)
                } else {
                    data.file.format_sentences(types, more)
                }
            };
            let (suffix, text) = match (code, &self.merged) {
                (Some(code), Some(merged)) => {
                    let is_own = |s: &&Sentence| s.language().is_some_and(|l| l.index() == number);
                    let own: Vec<_> = more.iter().filter(is_own).cloned().collect();
                    (format!("{code}.{format}"), write(merged.types(), &own)?)
                }
                _ => (format.to_owned(), write(data.corpus().types(), more)?),
            };
            texts.push((suffix, text));
        }
        Ok(texts)
    }
}

fn check(inputs: &[Input]) -> Result<(), Failure> {
    let is_named = |input: &Input| input.language.is_some();
    if inputs.len() > 1 && !inputs.iter().all(is_named) {
        return Err(Failure::Usage {
            message: "several files need the names of their languages".into(),
            hint: "write `en=a.conll de=b.conll`",
        });
    }
    for (at, input) in inputs.iter().enumerate() {
        let before = &inputs[..at];
        if let Some(code) = &input.language
            && before.iter().any(|other| other.language == input.language)
        {
            return Err(Failure::Usage {
                message: format!("the language `{code}` is given twice"),
                hint: "give each language one file",
            });
        }
        if is_stdout(&input.path) && before.iter().any(|other| is_stdout(&other.path)) {
            return Err(Failure::Usage {
                message: "only one of the files can be standard input".into(),
                hint: "name the others",
            });
        }
    }
    Ok(())
}
