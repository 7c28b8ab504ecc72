//! A fine-tuned model on disk: a Hugging Face model folder whose tokenizer has the markers.

use std::path::Path;

use melm_nn::mlm::MaskedLm;
use melm_text::Corpus;

use super::EntityLm;
use crate::Error;
use crate::markers::Markers;
use crate::models::Pretrained;

impl EntityLm {
    /// Writes a model folder that Python's `AutoModelForMaskedLM` can open.
    pub(crate) fn save(&self, dir: &Path) -> Result<(), Error> {
        self.model.save(dir)?;
        self.tokenizer.save(dir)
    }

    /// Opens a fine-tuned model to generate drafts of `corpus`. If `linearize` is false, sentences get no markers.
    ///
    /// # Errors
    /// If the model has no marker for a tag of the corpus.
    pub fn open(pretrained: &Pretrained, corpus: &Corpus, linearize: bool) -> Result<Self, Error> {
        let mut tokenizer = pretrained.tokenizer();
        let n_known = tokenizer.n_pieces();
        let markers =
            linearize.then(|| Markers::from_corpora(&[corpus], &mut tokenizer)).transpose()?;
        if tokenizer.n_pieces() > n_known {
            let new = u32::try_from(n_known).expect("ids of pieces are u32");
            let text = tokenizer.piece(new);
            let tag = text.trim_matches(['<', '>']).to_owned();
            return Err(Error::NotFinetunedFor { model: pretrained.name().to_owned(), tag });
        }
        let model = MaskedLm::open(pretrained.checkpoint(), 0, 0)?;
        Ok(Self::from_parts(model, tokenizer, markers))
    }
}
