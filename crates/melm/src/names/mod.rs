//! Lists of names: mentions that are not in gold, for the methods that replace mentions.
//!
//! A [`NameList`] is one file with names of one entity type. [`Names`] are the lists of a run, checked against gold.

mod harvest;
mod lines;
mod settings;

pub(crate) use harvest::harvest;
pub use settings::NamesSettings;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use melm_text::{
    Corpus, EntityType, EntityTypes, Sentence, Tag, TextFile, TextFormat, TextOptions, Token,
    Tokenizer, TokenizerRules, UnlabelledSentence, UnlabelledText, count, shown,
};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::files::Fingerprint;
use crate::rate::Rate;

/// A file of names of one entity type, one name on each line.
#[derive(Clone, Debug)]
pub struct NameList {
    entity_type: String,
    file: TextFile,
    names: Vec<ListedName>,
    /// The number of lines without a name.
    n_empty: usize,
    /// The first line with a comma, if most lines have one.
    first_comma: Option<String>,
}

/// A name and its line in the file, from 1.
#[derive(Clone, Debug)]
struct ListedName {
    tokens: Vec<Token>,
    line: usize,
}

impl NameList {
    /// Reads names from a file, plain or compressed with gzip. The lines are split into tokens like those of `train`.
    /// `options` gives the encoding and the largest size; its format and tokenizer are not used.
    ///
    /// # Errors
    /// If the file cannot be read or has no name, or if a line is too long or in a script that cannot be split. Also if most
    /// lines are CoNLL rows or have tabs.
    pub fn open(
        entity_type: &str,
        path: impl AsRef<Path>,
        train: &Corpus,
        options: TextOptions,
    ) -> Result<Self, Error> {
        let options = plain_text(train, options);
        Self::from_lines(entity_type, UnlabelledText::open(path, &options))
    }

    /// Makes a list from names, one for each item. `source` is its name for messages. Fails as [`Self::open`] does.
    pub fn from_names(
        entity_type: &str,
        source: &str,
        names: &[String],
        train: &Corpus,
    ) -> Result<Self, Error> {
        // A name is one line.
        let lines: Vec<String> = names.iter().map(|name| name.replace(['\r', '\n'], " ")).collect();
        let options = plain_text(train, TextOptions::default());
        Self::from_lines(
            entity_type,
            UnlabelledText::read(source, lines.join("\n").as_bytes(), &options),
        )
    }

    /// Makes a list from the lines of a file. Fails if the file could not be read, or if its lines are not names.
    fn from_lines(
        entity_type: &str,
        text: Result<UnlabelledText, melm_text::Error>,
    ) -> Result<Self, Error> {
        let text = text.map_err(lines::explain_no_text)?;
        lines::check(&text)?;
        Ok(Self::from_text(entity_type, &text))
    }

    /// Makes a list from the lines of a text. Each line is one name, even if it was split into several sentences.
    pub fn from_text(entity_type: &str, text: &UnlabelledText) -> Self {
        let by_line = text.sentences().chunk_by(|a, b| a.line() == b.line());
        let name = |parts: &[UnlabelledSentence]| ListedName {
            tokens: parts.iter().flat_map(|part| part.tokens().iter().cloned()).collect(),
            line: parts[0].line(),
        };
        let names: Vec<_> = by_line.map(name).collect();
        let file = text.files().first().cloned().unwrap_or_else(|| TextFile {
            name: "names".to_owned(),
            format: TextFormat::Plain,
            tokenizer: None,
            is_gzip: false,
            n_sentences: names.len(),
            n_unspaced: 0,
        });
        let last_line = names.last().map_or(0, |name| name.line);
        let n_empty = last_line.saturating_sub(names.len() + file.n_unspaced);
        let first_comma = lines::find_comma(text)
            .map(|line| format!("line {}: `{}`", line.number, shown(line.text.trim())));
        Self { entity_type: entity_type.to_owned(), file, names, n_empty, first_comma }
    }

    /// The file.
    pub fn file(&self) -> &TextFile {
        &self.file
    }

    /// The name of the entity type.
    pub fn entity_type(&self) -> &str {
        &self.entity_type
    }

    /// Adds the entity type and all names to a hash.
    pub fn add_to(&self, fingerprint: &mut Fingerprint) {
        fingerprint.add(self.entity_type.as_bytes());
        for name in &self.names {
            add_tokens(&name.tokens, fingerprint);
        }
    }
}

/// Returns options to read plain text that is split into tokens like those of `train`.
fn plain_text(train: &Corpus, options: TextOptions) -> TextOptions {
    let tokenizer = Tokenizer::new(TokenizerRules::from_corpus(train));
    TextOptions { format: Some(TextFormat::Plain), tokenizer, ..options }
}

fn add_tokens(tokens: &[Token], fingerprint: &mut Fingerprint) {
    fingerprint.add(&(tokens.len() as u64).to_le_bytes());
    for token in tokens {
        fingerprint.add(token.as_str().as_bytes());
    }
}

/// The origin of a new mention that is not a gold mention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameOrigin {
    /// A list of names.
    #[default]
    Names,
    /// A name that the panel found in unlabelled text.
    Harvest,
}

/// The number of names of one list, and of lines that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameCounts {
    /// The file.
    pub file: String,
    /// The entity type.
    pub entity_type: String,
    /// The number of names that are used.
    pub names: usize,
    /// The number of used names that are also mentions of this type in gold.
    pub in_gold: usize,
    /// The number of lines without a name.
    pub empty: usize,
    /// The number of lines that repeat a name of the same type.
    pub repeated: usize,
    /// The number of names that gold has only as mentions of another type. They are not used.
    pub contradicted: usize,
    /// The first of them, with its line and the other type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_contradicted: Option<String>,
    /// The number of lines in a script without spaces between words. They are not used.
    pub unspaced: usize,
    /// The first line with a comma, if most lines have one. The lines may then be rows of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_comma: Option<String>,
}

impl NameCounts {
    /// Describes the list, and how many of its lines are not used. `share` is the share of new mentions that are names.
    fn note(&self, share: Rate) -> String {
        let (n, percent) = (count(self.names, "name"), 100.0 * share.value());
        let (entity_type, file) = (&self.entity_type, &self.file);
        let mut note =
            format!("{n} for {entity_type} from `{file}`, for {percent:.0} % of new mentions");
        let first = self.first_contradicted.as_deref().unwrap_or_default();
        let contradicted = format!("with another type in TRAIN ({first})");
        for (n, what) in [
            (self.repeated, "repeated"),
            (self.contradicted, contradicted.as_str()),
            (self.unspaced, "in a script without spaces"),
            (self.empty, "empty"),
        ] {
            if n > 0 {
                let _ = write!(note, "; left out: {} {what}", count(n, "line"));
            }
        }
        if let Some(line) = &self.first_comma {
            let _ = write!(
                note,
                "; warning: most lines have a comma ({line}), which becomes part of the name; write one name on each line"
            );
        }
        note
    }
}

/// The names of a run, by entity type.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_type: BTreeMap<EntityType, Vec<Vec<Token>>>,
    counts: Vec<NameCounts>,
    origin: NameOrigin,
}

impl Names {
    /// Checks lists of names against the training set. Leaves out repeated names, and names that gold contradicts.
    ///
    /// # Errors
    /// If a list has an entity type that the training set does not have, or if no name of a list is left.
    pub fn new(lists: &[NameList], train: &Corpus) -> Result<Self, Error> {
        let gold = gold_mentions(train);
        let mut names = Self::default();
        let mut seen = HashSet::new();
        for list in lists {
            names.add(list, train, &gold, &mut seen)?;
        }
        Ok(names)
    }

    fn add<'l>(
        &mut self,
        list: &'l NameList,
        train: &Corpus,
        gold: &HashMap<&[Token], Vec<EntityType>>,
        seen: &mut HashSet<(EntityType, &'l [Token])>,
    ) -> Result<(), Error> {
        let entity_type = find_type(list, train)?;
        let mut counts = NameCounts {
            file: list.file.name.clone(),
            entity_type: list.entity_type.clone(),
            empty: list.n_empty,
            unspaced: list.file.n_unspaced,
            first_comma: list.first_comma.clone(),
            ..NameCounts::default()
        };
        let own = self.by_type.entry(entity_type).or_default();
        for ListedName { tokens, line } in &list.names {
            let types = gold.get(&tokens[..]).map_or(&[][..], Vec::as_slice);
            if !seen.insert((entity_type, tokens)) {
                counts.repeated += 1;
            } else if let Some(other) = types.first().filter(|_| !types.contains(&entity_type)) {
                counts.contradicted += 1;
                let described =
                    || describe_contradiction(tokens, *line, train.types().name(*other));
                counts.first_contradicted.get_or_insert_with(described);
            } else {
                counts.in_gold += usize::from(!types.is_empty());
                counts.names += 1;
                own.push(tokens.clone());
            }
        }
        if counts.names == 0 {
            return Err(Error::NoNames {
                file: list.file.name.clone(),
                entity_type: list.entity_type.clone(),
                repeated: counts.repeated,
                contradicted: counts.contradicted,
            });
        }
        self.counts.push(counts);
        Ok(())
    }

    /// The counts of each list.
    pub fn counts(&self) -> &[NameCounts] {
        &self.counts
    }

    /// Returns a line about each list. `share` is the share of new mentions that are names.
    pub fn notes(&self, share: Rate) -> Vec<String> {
        self.counts.iter().map(|list| list.note(share)).collect()
    }

    /// Where the names come from.
    pub(crate) fn origin(&self) -> NameOrigin {
        self.origin
    }

    /// The number of all names.
    pub(crate) fn n_names(&self) -> usize {
        self.by_type.values().map(Vec::len).sum()
    }

    /// The names of an entity type.
    pub(crate) fn of_type(&self, entity_type: EntityType) -> &[Vec<Token>] {
        self.by_type.get(&entity_type).map_or(&[], Vec::as_slice)
    }

    /// Adds all names to a hash. The names of the files are left out.
    pub(crate) fn add_to(&self, fingerprint: &mut Fingerprint) {
        for (entity_type, names) in &self.by_type {
            fingerprint.add(&(entity_type.index() as u64).to_le_bytes());
            for name in names {
                add_tokens(name, fingerprint);
            }
        }
    }
}

/// Returns a sentence of the tokens of a name, in which all tags are `O`.
pub(crate) fn to_sentence(tokens: &[Token]) -> Sentence {
    let tags = vec![Tag::Outside; tokens.len()];
    Sentence::new(tokens.to_vec(), tags).expect("a name has tokens")
}

/// Returns the entity types of the mentions of a corpus, by their tokens.
fn gold_mentions(train: &Corpus) -> HashMap<&[Token], Vec<EntityType>> {
    let mut types: HashMap<&[Token], Vec<EntityType>> = HashMap::new();
    for sentence in train.sentences() {
        for mention in sentence.mentions() {
            types.entry(&sentence.tokens()[mention.tokens]).or_default().push(mention.entity_type);
        }
    }
    types
}

fn find_type(list: &NameList, train: &Corpus) -> Result<EntityType, Error> {
    train.types().find(&list.entity_type).ok_or_else(|| Error::UnknownNameType {
        file: list.file.name.clone(),
        entity_type: list.entity_type.clone(),
        known: spell_types(train.types()),
    })
}

/// Returns the names of all entity types, in alphabetical order.
fn spell_types(types: &EntityTypes) -> String {
    let mut names: Vec<_> = types.iter().map(|one| types.name(one)).collect();
    names.sort_unstable();
    names.join(", ")
}

fn describe_contradiction(tokens: &[Token], line: usize, other: &str) -> String {
    let words: Vec<_> = tokens.iter().map(Token::as_str).collect();
    format!("line {line}: `{}` is {other} in TRAIN", words.join(" "))
}

#[cfg(test)]
mod tests;
