//! The method: from labelled sentences to more labelled sentences.
