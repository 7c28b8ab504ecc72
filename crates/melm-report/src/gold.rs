//! The gold sentences of a run, read from the files that the run has written.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use melm_text::{Corpus, EntityTypes};
use serde_json::Value;

use crate::segment::TaggedTokens;

/// The gold sentences by language code and number.
#[derive(Debug, Default)]
pub(crate) struct GoldSentences {
    sentences: HashMap<(String, usize), TaggedTokens>,
    /// The entity type and the text of every mention.
    known: HashSet<(usize, Vec<String>)>,
}

impl GoldSentences {
    /// Reads the gold sentences at the beginning of the files `train.augmented.*`. `run` is the content of `run.json`.
    ///
    /// Fails with the reason if the run wrote no gold, or if a file has changed so that it cannot be read.
    pub(crate) fn read(
        dir: &Path,
        run: &Value,
        has_union: bool,
        types: &mut EntityTypes,
    ) -> Result<Self, String> {
        if !has_union {
            return Err("the plan's `union` is false, so the folder has no gold sentences".into());
        }
        let parts = match &run["train"] {
            Value::Array(parts) => parts.clone(),
            one => vec![one.clone()],
        };
        let mut gold = Self::default();
        for part in &parts {
            let language = part["language"].as_str().unwrap_or_default();
            let n_sentences = part["sentences"].as_u64().unwrap_or(0);
            gold.read_part(dir, language, n_sentences, types)?;
        }
        Ok(gold)
    }

    fn read_part(
        &mut self,
        dir: &Path,
        language: &str,
        n_sentences: u64,
        types: &mut EntityTypes,
    ) -> Result<(), String> {
        let prefix = match language {
            "" => "train.augmented.".to_owned(),
            code => format!("train.augmented.{code}."),
        };
        let is_own = |name: &str| {
            let format = name.strip_prefix(&prefix);
            format.is_some_and(|format| !format.contains('.') && format != "names")
        };
        let entries = std::fs::read_dir(dir).map_err(|error| error.to_string())?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            // A pipe may never end.
            .filter(|name| is_own(name) && dir.join(name).is_file())
            .collect();
        names.sort();
        let name = names.first().ok_or_else(|| format!("there is no file `{prefix}*`"))?;
        let failed = |error: melm_text::Error| format!("`{name}` cannot be read: {error}");
        let corpus = Corpus::open(dir.join(name)).map_err(failed)?;
        let n = usize::try_from(n_sentences).unwrap_or(usize::MAX);
        if corpus.sentences().len() < n {
            return Err(format!("`{name}` has fewer sentences than the training set had"));
        }
        for (at, sentence) in corpus.sentences().iter().take(n).enumerate() {
            let tokens = sentence.tokens().iter().map(ToString::to_string).collect();
            let spell = |tag: &_| corpus.types().spell(*tag, corpus.scheme()).to_string();
            let tags: Vec<String> = sentence.tags().iter().map(spell).collect();
            let tagged = TaggedTokens::parse(tokens, &tags, types)?;
            self.add(language, at + 1, tagged);
        }
        Ok(())
    }

    fn add(&mut self, language: &str, number: usize, sentence: TaggedTokens) {
        for mention in &sentence.mentions {
            let tokens = sentence.tokens[mention.tokens.clone()].to_vec();
            self.known.insert((mention.entity_type.index(), tokens));
        }
        self.sentences.insert((language.to_owned(), number), sentence);
    }

    /// The sentence with a number, which counts from 1.
    pub(crate) fn find(&self, language: Option<&str>, number: usize) -> Option<&TaggedTokens> {
        self.sentences.get(&(language.unwrap_or_default().to_owned(), number))
    }

    /// All sentences, in no order.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = &TaggedTokens> {
        self.sentences.values()
    }

    /// Returns true if gold has a mention of this type with these tokens.
    pub(crate) fn has_mention(&self, entity_type: usize, tokens: &[String]) -> bool {
        self.known.contains(&(entity_type, tokens.to_vec()))
    }

    /// Adds a sentence if gold does not have one with this number.
    pub(crate) fn insert_missing(
        &mut self,
        language: Option<&str>,
        number: usize,
        sentence: TaggedTokens,
    ) {
        if self.find(language, number).is_none() {
            self.add(language.unwrap_or_default(), number, sentence);
        }
    }
}
