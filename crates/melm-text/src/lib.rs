//! What a labelled sentence is: tokens, tags, mentions, file formats, scores.
