//! Where the values of the presets come from.

/// The source of a key's values.
struct Source {
    /// A key, or a section with the source of all keys in it that have no entry of their own.
    key: &'static str,
    /// The source. Pages are named by their path in the repository, and may have an anchor.
    text: &'static str,
}

/// Returns the source of a key: its own, or that of the innermost section with one.
pub(super) fn source(key: &str) -> Option<&'static str> {
    entry(key).map(|source| source.text)
}

fn entry(key: &str) -> Option<&'static Source> {
    let own = SOURCES.iter().find(|source| source.key == key);
    own.or_else(|| key.rsplit_once('.').and_then(|(section, _)| entry(section)))
}

/// Returns the keys of the entries that are the source of no key of `keys`.
#[cfg(test)]
pub(super) fn unused<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    let used: Vec<&str> = keys.filter_map(entry).map(|source| source.key).collect();
    SOURCES.iter().map(|source| source.key).filter(|key| !used.contains(key)).collect()
}

const fn from(key: &'static str, text: &'static str) -> Source {
    Source { key, text }
}

/// "The paper" is Zhou et al. 2022. Rows are those of `docs/fidelity.md`.
const SOURCES: &[Source] = &[
    from("version", "A convention: the version of the plan's format."),
    from("seed", "A convention. Results differ between seeds only by chance."),
    from(
        "method",
        "`melm-both`: the best of 28 settings on dev (docs/results.md#how-melm-both-was-found). `melm`: the paper.",
    ),
    from(
        "union",
        "`true`: the paper, Algorithm 1. `false`: the authors' code. Without gold, dev F1 was 2.7 points lower \
         (docs/fidelity.md, row 10).",
    ),
    from(
        "model",
        "`mini`: part of the program, so that no download is needed. The others: the paper, section 3.2.",
    ),
    from("model.seq2seq", "A convention: no model is downloaded unless you name one."),
    from("markers.linearize", "The paper, section 2.1."),
    from(
        "markers.start",
        "`related-words`: the paper, section 2.1. `related-added`: the authors' code (docs/fidelity.md, row 13). The \
         start made no difference on dev (docs/log.md#2026-11-16-unlabelled-text-first-dev-run).",
    ),
    from(
        "markers.train",
        "The paper trains all parameters (equation 1). On dev, untrained markers were 0.3 ± 0.6 points worse \
         (docs/log.md#2026-11-16-unlabelled-text-first-dev-run).",
    ),
    from("markers.words", "Our choice: docs/fidelity.md#notes, note 13."),
    from(
        "finetune",
        "`best` and `quick` with a small model: our choice for `mini`, not measured by itself; the paper's optimiser \
         settings together are 2.3 points worse there (docs/fidelity.md, row 14). The others: the paper, section 3.2. \
         What it does not state is off.",
    ),
    from(
        "finetune.mask.rate",
        "The paper, section 3.2: 0.7, found by a search on its dev set. 0.5 made no difference on ours \
         (docs/results.md#how-the-settings-were-chosen).",
    ),
    from(
        "finetune.mask.unit",
        "`token`: the paper, section 2.2. `piece`: the authors' code. The difference was not significant on dev \
         (docs/fidelity.md, row 3).",
    ),
    from(
        "finetune.mask.refresh",
        "`every-epoch`: the paper, section 2.2. `cycle-30`: the authors' code (docs/fidelity.md, row 3).",
    ),
    from(
        "finetune.budget",
        "`5 epochs`: faster than 8, without a clear difference to F1 on dev with `mini`: -0.1 [-0.9, +0.8] points \
         (docs/log.md#2026-11-18-the-method-second-pass). `20 epochs`: the paper, section 3.2.",
    ),
    from(
        "finetune.batch_size",
        "`16`: our choice, not measured by itself. `30`: the paper, section 3.2. `32`: the authors' code, two batches \
         of 16 (docs/fidelity.md, row 14).",
    ),
    from(
        "finetune.learning_rate",
        "`2e-4`: the loss of `mini` on dev (docs/log.md#2026-11-15-training-tagging-augmenting). `1e-5`: the paper, \
         section 3.2.",
    ),
    from("finetune.weight_decay", "The paper, section 3.2: Adam."),
    from(
        "finetune.clip",
        "`1.0` for small models: our choice. `1.0` of `reference-code`: the authors' code (docs/fidelity.md, row 14). \
         `0.0`: the paper states no limit.",
    ),
    from(
        "finetune.evaluate_every",
        "`5` for small models: one evaluation, after the last epoch, which had the lowest loss on dev in 62 of 65 trainings \
         (docs/performance.md#where-the-time-of-augment-goes). `1`: our choice; the paper does not say.",
    ),
    from("finetune.patience", "The paper trains for a fixed number of epochs."),
    from(
        "finetune.keep",
        "Not stated in the paper for this model. `last` made no difference on dev (docs/fidelity.md, row 2).",
    ),
    from(
        "finetune.freeze",
        "Nothing is frozen in the paper. For small models, frozen piece embeddings halve the time of an update \
         (docs/fidelity.md#notes, note 13b).",
    ),
    from(
        "generate.rounds",
        "The paper, section 3.2: R = 3. On dev, 6 rounds were as good or better, at twice the time (docs/results.md#how-the-settings-were-chosen).",
    ),
    from(
        "generate.mask.mean",
        "The paper, section 3.2: 0.5. On dev, 0.7 was not better (docs/results.md#how-the-settings-were-chosen).",
    ),
    from(
        "generate.mask.unit",
        "`token`: the paper, section 2.3. `piece`: the authors' code. The difference was not significant on dev \
         (docs/fidelity.md, row 4). With `generate.whole_words`, as in `best` and `quick`, tokens are masked.",
    ),
    from(
        "generate.mask.scope",
        "`mention`: the paper, section 2.3. `token`: the authors' code. The difference was not significant on dev \
         (docs/fidelity.md, row 4).",
    ),
    from(
        "generate.ranks",
        "`[1, 5]`: the paper, section 2.3. `[2, 5]`: the authors' code. No difference on dev (docs/fidelity.md, row 5).",
    ),
    from(
        "generate.sampling",
        "The paper, section 2.3. A temperature made no difference on dev (docs/results.md#how-the-settings-were-chosen).",
    ),
    from(
        "generate.order",
        "`at-once`: the paper, section 2.3. `within-mentions`: drafts read better. Together with \
         `generate.whole_words`, `generate.distinct_mentions` and `generate.keep_case` it made no clear difference to \
         F1 on dev: -0.0 [-0.6, +0.6] points (docs/log.md#2026-11-19-whole-words). Left to right was not better on dev \
         (docs/results.md#how-the-settings-were-chosen).",
    ),
    from(
        "generate.whole_words",
        "The paper keeps the number of pieces. `best` and `quick`: drafts read better. Together with \
         `generate.order`, `generate.distinct_mentions` and `generate.keep_case` the option made no clear difference to \
         F1 on dev: -0.0 [-0.6, +0.6] points (docs/log.md#2026-11-19-whole-words).",
    ),
    from(
        "generate.keep_case",
        "The paper has no such limit. `best` and `quick`: drafts read better (docs/log.md#2026-11-19-whole-words). The \
         same casing and script made no difference on dev (docs/fidelity.md, row 6).",
    ),
    from(
        "generate.keep_script",
        "The paper has no such limit. No difference on dev (docs/fidelity.md, row 6).",
    ),
    from(
        "generate.avoid_repeats",
        "The paper has no such rule. `best` and `quick`: drafts read better. The rule made no clear difference to \
         F1 on dev: -0.2 [-1.2, +0.8] points (docs/log.md#2026-11-18-the-method-second-pass).",
    ),
    from(
        "generate.distinct_mentions",
        "The paper has no such rule. `best` and `quick`: drafts read better. Together with `generate.order`, \
         `generate.whole_words` and `generate.keep_case` the rule made no clear difference to F1 on dev: -0.0 [-0.6, \
         +0.6] points (docs/log.md#2026-11-19-whole-words).",
    ),
    from(
        "generate.keep_function_words",
        "The paper has no such rule. `best` and `quick`: drafts read better. The rule made no clear difference to \
         F1 on dev: +0.1 [-0.7, +0.8] points (docs/log.md#2026-11-18-the-method-second-pass).",
    ),
    from(
        "generate.longest_mention",
        "The paper rewrites mentions of any length. `best` and `quick`: drafts read better. A limit of 3 made no \
         clear difference to F1 on dev: -0.4 [-1.3, +0.4] points (docs/log.md#2026-11-18-the-method-second-pass).",
    ),
    from(
        "generate.score_margin",
        "Off: a margin of 2 made no clear difference to F1 on dev: -0.3 [-1.0, +0.5] points \
         (docs/log.md#2026-11-18-the-method-second-pass). Scoring takes time.",
    ),
    from("generate.banned", "A convention: nothing is banned but what would break a token."),
    from(
        "generate.without_mentions",
        "`left-out`: a comment in the source of the paper. `copied`: the authors' code. No difference on dev \
         (docs/fidelity.md, row 17).",
    ),
    from(
        "substitute",
        "Our choice. Replacing every mention made no clear difference on dev (docs/results.md#how-melm-both-was-found).",
    ),
    from(
        "names",
        "Harvesting is off: it made no clear difference to F1 on dev: +0.3 [-0.7, +1.2] points \
         (docs/results.md#lists-of-names).",
    ),
    from(
        "names.share",
        "Half of the new mentions: on test, F1 rose by 1.5 [0.6, 2.5] points with `label-wise` and 0.6 [-0.0, 1.2] \
         with `melm-both` (docs/results.md#lists-of-names).",
    ),
    from(
        "substitute.match_before",
        "`best` and `quick`: drafts read better. The rule made no clear difference to F1 on dev: +0.3 [-0.6, +1.1] \
         points (docs/log.md#2026-11-18-the-method-second-pass).",
    ),
    from(
        "daga",
        "`paper` and `reference-code`: the authors' code of DAGA (docs/guides/baselines.md). `best` and `quick`: half \
         the sizes, for about a hundred sentences (docs/log.md#2026-11-15-baselines-that-write-sentences). What the \
         authors do not state is our choice.",
    ),
    from("daga.learning_rate", "Our choice: the authors use SGD, we use Adam."),
    from(
        "mulda",
        "`paper` and `reference-code`: the authors' code of MulDA (docs/guides/baselines.md). `best` and `quick`: a \
         small model without pretraining (docs/log.md#2026-11-15-baselines-that-write-sentences). What the authors do \
         not state is our choice.",
    ),
    from(
        "codemix.rate",
        "Our reading of the paper, section 2.5: every mention (docs/fidelity.md#notes, note 11).",
    ),
    from("codemix.vectors", "The paper, section 2.5: aligned word vectors (MUSE)."),
    from(
        "filter.mode",
        "`agreement`: the paper, section 2.4. `off`: the authors' code. No difference on dev (docs/fidelity.md, row 9).",
    ),
    from(
        "filter.judges",
        "The paper, section 2.4: one tagger. Three judges made no clear difference to F1 on dev: +0.3 [-0.5, +1.1] \
         points (docs/log.md#2026-11-18-the-method-second-pass).",
    ),
    from(
        "filter.votes",
        "Our choice: all judges must agree. Only plans with several judges read it.",
    ),
    from("filter.threshold", "Our choice. Only the mode `probability` reads it."),
    from(
        "self_training",
        "The paper has no unlabelled text. The values were measured on dev: \
         docs/log.md#2026-11-16-unlabelled-text-first-dev-run and \
         docs/log.md#2026-11-16-unlabelled-text-later-dev-runs. `quick` trains 3 taggers instead of 10.",
    ),
    from(
        "silver.agreement",
        "With a fifth of the mentions wrong at random, test F1 was 73.0 with `mention` and 73.8 with `off`. \
         `mention` stays on, because errors that a source repeats were not measured. `sentence` was 1.6 [0.5, 2.7] \
         points worse than `mention` on dev (docs/results.md#labels-from-elsewhere).",
    ),
    from(
        "silver.votes",
        "Our choice. It was only measured together with `silver.folds` (docs/results.md#labels-from-elsewhere).",
    ),
    from(
        "silver.folds",
        "With a fifth of the mentions wrong at random, dev F1 was 72.5 with 2 (`silver.votes` 0.3) and 66.1 with 1 \
         (0.4) (docs/results.md#labels-from-elsewhere).",
    ),
    from(
        "pick.score",
        "On dev, the difference to random sentences was +5.8 points of F1 at 100 sentences and +5.9 at 150 with \
         `mentions`, and +5.4 and +4.8 with `entropy` (docs/results.md#picking-which-sentences-to-label-next). The \
         entropy of votes is that of Dagan and Engelson (1995).",
    ),
    from(
        "pick.length_power",
        "On dev with the score `entropy` and 150 sentences, the difference to random sentences was +8.3 points of \
         F1 with 0, +4.8 with 0.5 and -0.0 with 1. With 0 the sentences have half as many tokens again. For the \
         same number of tokens, 0.5 with `mentions` was better \
         (docs/results.md#picking-which-sentences-to-label-next).",
    ),
    from(
        "pick.diversity",
        "On dev with the score `entropy`, the difference to random sentences was +5.4 points of F1 at 100 sentences \
         and +4.8 at 150 with 1, and +4.8 and +5.2 with 0 (docs/results.md#picking-which-sentences-to-label-next).",
    ),
    from(
        "gold_check",
        "A convention: the check trains several taggers, so it is off unless you ask for it.",
    ),
    from(
        "self_training.threshold",
        "Our choice, measured once on dev (docs/log.md#2026-11-16-unlabelled-text-first-dev-run).",
    ),
    from(
        "tagger",
        "`best` and `quick` with a small model: our choice for `mini`, not measured by itself. The others: the paper, \
         section 3.2. What it does not state is a convention.",
    ),
    from(
        "tagger.head",
        "The paper, section 3.2. With `mini`, `crf` was better than `linear` on dev \
         (docs/log.md#2026-11-15-training-tagging-augmenting).",
    ),
    from(
        "tagger.constrained",
        "`true`: our choice for `mini`. `false`: the paper does not state it.",
    ),
    from(
        "tagger.budget",
        "`15 epochs`: our choice for `mini` (docs/log.md#2026-11-15-training-tagging-augmenting). `10 epochs`: the \
         paper, section 3.2.",
    ),
    from(
        "tagger.batch_size",
        "The paper, section 3.2. 32 was not better on dev with `mini` (docs/results.md#how-the-settings-were-chosen).",
    ),
    from(
        "tagger.learning_rate",
        "`2e-4`: measured on dev with `mini` (docs/log.md#2026-11-15-training-tagging-augmenting). `2e-5`: the paper, \
         section 3.2. The others: among those that the authors of the family recommend (docs/reference/models.md).",
    ),
    from(
        "tagger.weight_decay",
        "A convention: the default of AdamW in PyTorch. The paper names AdamW without a value.",
    ),
    from("tagger.clip", "A convention: the default of transformers. The paper does not state it."),
    from("tagger.patience", "The paper, section 3.2: a fixed number of epochs."),
    from("tagger.keep", "The paper, section 3.2."),
    from(
        "tagger.freeze",
        "Nothing is frozen in the paper. Frozen piece embeddings of `mini` halve the time of an update and made no \
         difference on dev (docs/results.md#how-the-settings-were-chosen).",
    ),
];
