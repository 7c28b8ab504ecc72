//! A line of `drafts.jsonl` as the draft it was written for: nothing in it is believed that the corpus does not say too.

use melm_text::{Corpus, Language, LanguagePart, Mention, Sentence, Tag, Token};

use super::{DraftRecord, ReplacedRecord};
use crate::baselines::{substitute_mentions, swap_tokens};
use crate::draft::{Donor, Draft, Replacement, Swap};

impl DraftRecord {
    /// The draft of this line; what is wrong if it is none of this corpus.
    pub fn draft(&self, corpus: &Corpus) -> Result<Draft, String> {
        let Some(number) = self.source else { return self.written(corpus) };
        let source = self.position(corpus);
        let source = source.ok_or_else(|| match &self.language {
            Some(language) => format!("there is no sentence {number} in `{language}`"),
            None => format!("there is no sentence {number}"),
        })?;
        let place = (source, self.round);
        let gold = &corpus.sentences()[source];
        let before = (!self.mixed.is_empty()).then(|| self.taken(&self.mixed, place, corpus));
        let before = before.transpose()?;
        let base = before.as_ref().map_or(gold, |draft| &draft.sentence);
        let has_donors = self.replaced.iter().any(|one| one.donor.is_some());
        let draft = match (has_donors, self.swapped.is_empty()) {
            (true, _) => self.taken(&self.replaced, place, corpus)?,
            (false, false) => swap_tokens(corpus, source, self.round, self.swaps(source, corpus)?),
            (false, true) => self.guessed(base, place, corpus)?,
        };
        let mixed = before.map_or(Vec::new(), |draft| draft.replacements);
        let draft = Draft { mixed, ..draft };
        let again = Self::new(&draft, corpus, self.seed, self.verdict);
        let places = |record: &Self| -> Vec<(usize, usize)> {
            record.replaced.iter().map(|one| (one.start, one.end)).collect()
        };
        if (&again.tokens, &again.tags) != (&self.tokens, &self.tags) {
            Err("its tokens and tags are not its source's with the mentions replaced".to_owned())
        } else if places(&again) != places(self) {
            Err("its mentions are elsewhere".to_owned())
        } else {
            Ok(draft)
        }
    }

    /// The draft of a line without a source.
    fn written(&self, corpus: &Corpus) -> Result<Draft, String> {
        if !(self.replaced.is_empty() && self.mixed.is_empty() && self.swapped.is_empty()) {
            return Err("it replaces something, but has no source".to_owned());
        }
        let tokens: Result<Vec<_>, _> = self.tokens.iter().map(|text| Token::new(text)).collect();
        let tokens = tokens.map_err(|fault| fault.to_string())?;
        let sentence = Sentence::new(tokens, self.tags_of(corpus)?);
        let sentence = sentence.map_err(|fault| fault.to_string())?;
        let sentence = match (&self.language, corpus.languages()) {
            (None, []) => sentence,
            (code, languages) => {
                let is_own = |part: &LanguagePart| Some(&*part.code) == code.as_deref();
                let own = languages.iter().position(is_own);
                sentence.with_language(Language::from_index(
                    own.ok_or("it is in no language of the corpus")?,
                ))
            }
        };
        if corpus.scheme().violations(sentence.tags()).next().is_some() {
            return Err(format!("its tags are not valid in {}", corpus.scheme()));
        }
        Ok(Draft::written(sentence, self.round))
    }

    /// Its tags, all of whose types the corpus has.
    pub(super) fn tags_of(&self, corpus: &Corpus) -> Result<Vec<Tag>, String> {
        let mut types = corpus.types().clone();
        let n_types = types.iter().count();
        let mut parse = |text: &String| {
            let tag = types.parse(text).map_err(|fault| fault.to_string())?;
            match tag.entity_type() {
                Some(new) if new.index() >= n_types => Err(format!("the corpus has no `{text}`")),
                _ => Ok(tag),
            }
        };
        self.tags.iter().map(&mut parse).collect()
    }

    /// The source with mentions taken from elsewhere.
    fn taken(
        &self,
        replaced: &[ReplacedRecord],
        (source, round): (usize, u32),
        corpus: &Corpus,
    ) -> Result<Draft, String> {
        let sentence = &corpus.sentences()[source];
        let mut donors = vec![None; sentence.mentions().count()];
        let mut similarities = Vec::new();
        for one in replaced {
            let mention = self.mention(one, sentence, corpus)?;
            let no_mention = || format!("what takes the place of mention {} is none", one.mention);
            let donor = one.donor.as_ref().ok_or_else(no_mention)?;
            let language = one.language.as_deref().or(self.language.as_deref());
            let from = corpus.find(language, donor.sentence).ok_or_else(|| self.another(one))?;
            let given = Mention { entity_type: mention.entity_type, tokens: donor.tokens.clone() };
            if !corpus.sentences()[from].mentions().any(|other| other == given) {
                return Err(no_mention());
            }
            donors[one.mention] = Some(Donor { sentence: from, ..donor.clone() });
            similarities.push(one.similarity);
        }
        let mut draft = substitute_mentions(corpus, source, round, &donors);
        for (replacement, similarity) in draft.replacements.iter_mut().zip(similarities) {
            replacement.similarity = similarity;
        }
        Ok(draft)
    }

    /// The source, or what code-mixing made of it, with tokens of mentions guessed.
    fn guessed(
        &self,
        base: &Sentence,
        place: (usize, u32),
        corpus: &Corpus,
    ) -> Result<Draft, String> {
        let (mut tokens, mut replacements) = (Vec::new(), Vec::new());
        for one in &self.replaced {
            let mention = self.mention(one, base, corpus)?;
            let new: Result<Vec<_>, _> = one.new.iter().map(|text| Token::new(text)).collect();
            let new = new.map_err(|fault| fault.to_string())?;
            if new.len() != mention.tokens.len() || one.start != mention.tokens.start {
                return Err(self.another(one));
            }
            tokens.extend(mention.tokens.clone().zip(new.iter().cloned()));
            replacements.push(Replacement {
                mention: one.mention,
                old: base.tokens()[mention.tokens.clone()].to_vec(),
                tokens: mention.tokens,
                entity_type: mention.entity_type,
                new,
                pieces: one.pieces.clone(),
                donor: None,
                similarity: None,
            });
        }
        let draft = Draft::new(base.with_tokens(tokens), place, replacements);
        Ok(Draft { n_restored: self.restored, ..draft })
    }

    /// The mention of a sentence that was replaced, if it is what the line says.
    fn mention(
        &self,
        one: &ReplacedRecord,
        sentence: &Sentence,
        corpus: &Corpus,
    ) -> Result<Mention, String> {
        let mention = sentence.mentions().nth(one.mention);
        let is_same = |mention: &Mention| {
            let old = sentence.tokens()[mention.tokens.clone()].iter().map(Token::as_str);
            old.eq(one.old.iter().map(String::as_str))
                && corpus.types().name(mention.entity_type) == one.entity_type
        };
        mention.filter(is_same).ok_or_else(|| self.another(one))
    }

    fn another(&self, one: &ReplacedRecord) -> String {
        let number = self.source.unwrap_or_default();
        format!("mention {} of sentence {number} is another", one.mention)
    }

    /// The swaps: each is of a token of its own, by one with the same tag in the same language.
    fn swaps(&self, source: usize, corpus: &Corpus) -> Result<Vec<Swap>, String> {
        let tag = |sentence: usize, at: usize| corpus.sentences().get(sentence)?.tags().get(at);
        let (mut swaps, mut next) = (Vec::new(), 0);
        for swap in &self.swapped {
            let wrong = || format!("what takes the place of token {} is none", swap.token);
            let sentence =
                corpus.find(self.language.as_deref(), swap.sentence).ok_or_else(wrong)?;
            let own = tag(source, swap.token).filter(|_| swap.token >= next);
            if own.is_none() || own != tag(sentence, swap.from) {
                return Err(wrong());
            }
            next = swap.token + 1;
            swaps.push(Swap { sentence, ..swap.clone() });
        }
        Ok(swaps)
    }
}
