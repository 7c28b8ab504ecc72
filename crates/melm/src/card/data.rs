//! The card of the data that `melm augment` writes.

use std::path::Path;

use melm_text::Corpus;

use super::{Card, count_mentions, count_tokens, languages};
use crate::augment::Augmented;
use crate::methods::Method;

/// Returns the card of an augmented corpus. `names` are the names of its files, `arguments` those of the command, which are
/// empty if a program called the library.
pub(crate) fn data_card(augmented: &Augmented, names: &[String], arguments: &[String]) -> String {
    let corpus = augmented.corpus();
    let mut card = Card::default();
    write_header(&mut card, &corpus, names);
    let version = env!("CARGO_PKG_VERSION");
    card.heading("# Training data for named-entity recognition, augmented");
    card.line(&format!(
        "Written by melm {version} with the method `{}`.",
        augmented.plan().method.name()
    ));
    write_origins(&mut card, augmented);
    write_types(&mut card, augmented.gold(), &corpus);
    write_files(&mut card, names);
    card.repetition(arguments, augmented.plan().seed);
    write_models(&mut card, augmented);
    write_limits(&mut card, augmented);
    card.0
}

fn write_header(card: &mut Card, corpus: &Corpus, names: &[String]) {
    card.line("---");
    card.yaml_list("language", languages(corpus));
    card.yaml_list("task_categories", ["token-classification"]);
    card.yaml_list("task_ids", ["named-entity-recognition"]);
    card.yaml_list("size_categories", [size_category(corpus.sentences().len())]);
    card.yaml_list("entity_types", count_mentions(corpus).into_iter().map(|(name, _)| name));
    card.yaml_list("tags", ["melm", "data-augmentation"]);
    // Without this, the hub would also load the drafts as training data.
    let is_loadable = |name: &&String| {
        let extension = Path::new(name).extension().unwrap_or_default();
        extension == "parquet" || extension == "jsonl"
    };
    let loadable: Vec<_> = names.iter().filter(is_loadable).collect();
    if !loadable.is_empty() {
        card.line("configs:");
        card.line("- config_name: default");
        card.line("  data_files:");
        card.line("  - split: train");
        card.line("    path:");
        for name in loadable {
            card.line(&format!("    - {}", serde_json::Value::from(name.as_str())));
        }
    }
    card.line("---");
}

/// Returns the size of a data set in the words of the Hugging Face hub.
fn size_category(n: usize) -> &'static str {
    match n {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        1_000_000..10_000_000 => "1M<n<10M",
        _ => "n>10M",
    }
}

fn write_origins(card: &mut Card, augmented: &Augmented) {
    let summary = augmented.summary();
    let (n_gold, has_gold) = (augmented.gold().sentences().len(), augmented.plan().union);
    card.heading("## Sentences by origin");
    card.table(&["origin", "sentences in the data", "of"]);
    let n_used = if has_gold { n_gold } else { 0 };
    card.row(&["gold: labelled by people", &n_used.to_string(), &n_gold.to_string()]);
    let n_kept = summary.kept + summary.copied;
    card.row(&[
        "drafts: made from gold sentences",
        &n_kept.to_string(),
        &summary.drafts.to_string(),
    ]);
    if summary.with_names > 0 {
        let (with_names, kept) = (summary.with_names.to_string(), n_kept.to_string());
        card.row(&["of these, with a name of a list or of the text", &with_names, &kept]);
    }
    if let Some(text) = augmented.text() {
        let text = text.summary();
        let (kept, all) = (text.kept.to_string(), text.sentences.to_string());
        card.row(&["labelled: text with tags of a panel of taggers", &kept, &all]);
    }
    let corpus = augmented.corpus();
    let (n, n_tokens) = (corpus.sentences().len(), count_tokens(&corpus));
    card.line("");
    card.line(&format!("Together: {n} sentences with {n_tokens} tokens."));
}

fn write_types(card: &mut Card, gold: &Corpus, corpus: &Corpus) {
    card.heading("## Entity types");
    card.table(&["entity type", "mentions in gold", "mentions in the data"]);
    for ((name, n_gold), (_, n)) in count_mentions(gold).into_iter().zip(count_mentions(corpus)) {
        card.row(&[&format!("`{name}`"), &n_gold.to_string(), &n.to_string()]);
    }
    card.line("");
    card.line(&format!("Tags are written in {}.", gold.scheme()));
}

fn write_files(card: &mut Card, names: &[String]) {
    card.heading("## Files");
    card.table(&["file", "content"]);
    for name in names {
        card.row(&[&format!("`{name}`"), "the data"]);
    }
    let other = [
        ("drafts.jsonl", "every draft and every labelled sentence, kept or not, with the reason"),
        ("plan.toml", "every setting"),
        ("run.json", "data, models, machine and counts, and the SHA-256 of the data"),
        ("metrics.jsonl", "losses and F1 of each epoch"),
    ];
    for (name, content) in other {
        card.row(&[&format!("`{name}`"), content]);
    }
}

fn write_models(card: &mut Card, augmented: &Augmented) {
    let plan = augmented.plan();
    let models = [
        (plan.needs_masked_lm(), "the masked language model", &plan.model.masked_lm),
        (plan.has_judge() || augmented.text().is_some(), "the taggers", &plan.model.tagger),
        (plan.method == Method::Mulda, "the encoder-decoder", &plan.model.seq2seq),
    ];
    for (is_used, role, name) in models {
        if is_used && !name.is_empty() {
            card.line(&format!("The model `{name}` is the start of {role}."));
        }
    }
}

fn write_limits(card: &mut Card, augmented: &Augmented) {
    card.heading("## Limits");
    card.line("- Only the gold sentences were labelled by people. Train with all of the data, but evaluate on gold alone.");
    if augmented.summary().drafts > 0 {
        card.line("- Drafts are written by a model or joined from parts of gold. They can be odd, and can say things about real");
        card.line("  people that are not true.");
    }
    if augmented.text().is_some() {
        card.line("- The tags of labelled sentences are those of taggers that were trained on gold. They repeat its gaps.");
    }
    card.line("- Licence: none is stated. The data contains parts of your training set. Add `license:` to the header if you");
    card.line("  publish it.");
}
