//! Tables, figures and trials, computed from invented ledger lines.

use std::collections::{BTreeMap, BTreeSet};

use super::{cell, corpus, grid, line};
use melm::augment::DraftSummary;
use melm_text::{KnownSentences, UnlabelledText};

use crate::table::{self, Split, Table, csv, latex, markdown};
use crate::{
    Cell, CellFilter, Dataset, LedgerLine, PaperScores, System, Trial, TrialSystem, statistics,
};

/// Returns lines of gold and melm in two languages, with draws 1, 2, 3 and seeds 1 and 2.
fn lines() -> Vec<LedgerLine> {
    let mut lines = Vec::new();
    for (language, base) in [("en", 600), ("de", 500)] {
        for draw in 1..=3 {
            for seed in 1..=2 {
                let at =
                    |method: &str| Cell { language: language.into(), draw, seed, ..cell(method) };
                let f1 = base + draw * 10 + seed;
                // English gains 1, 2, 3 points by draw, German 2, 2, 2. The differences between the seeds of a draw cancel out.
                let gain = if language == "en" { draw * 10 } else { 20 };
                let wobble = if seed == 1 { 5 } else { 0 };
                let others: &[(&str, u64)] = &[("en", f1), ("de", f1 / 2)];
                lines.push(line(
                    at("gold"),
                    f1,
                    if language == "en" { others } else { &others[1..] },
                ));
                let f1 = f1 + gain + 2 * wobble - 5;
                let others: &[(&str, u64)] = &[("en", f1), ("de", f1 / 2)];
                lines.push(line(
                    at("melm"),
                    f1,
                    if language == "en" { others } else { &others[1..] },
                ));
            }
        }
    }
    lines
}

#[test]
fn differences_are_paired_over_draws_with_their_seeds_averaged() {
    let paper = grid().paper;
    let rows = Table::Mono.rows(&lines(), Split::Dev, &paper);
    let melm = rows.rows.iter().find(|row| row.method != System::GOLD).unwrap();
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
    let english = melm.to_gold["en"];
    // By hand: the differences are 1, 2, 3; their mean is 2, sd 1; t(0.975, 2) = 4.302652729749 is divided by the root
    // of 3.
    assert_eq!(english.n, 3);
    close(english.mean, 2.0);
    close(english.margin().unwrap(), 4.302_652_729_749_462 / 3.0_f64.sqrt());
    assert_eq!(english.verdict(), statistics::Verdict::Inconclusive);
    assert_eq!(melm.to_gold["de"].verdict(), statistics::Verdict::Better);
    // Pairs over both languages: 1, 2, 3, 2, 2, 2; sd = sqrt(2/5), t(0.975, 5) = 2.570581835636.
    let mean = melm.to_gold["mean"];
    assert_eq!(mean.n, 6);
    close(mean.mean, 2.0);
    close(mean.margin().unwrap(), 2.570_581_835_636_197 * (0.4_f64 / 6.0).sqrt());
    // F1 of gold is 61.1 to 63.2 in English, and ten points lower in German.
    let gold = &rows.rows.iter().find(|row| row.method == System::GOLD).unwrap().f1;
    close(gold["en"].mean, 62.15);
    close(gold["mean"].mean, 57.15);
    assert_eq!(gold["en"].n, 6);
    let text = markdown(&rows);
    assert!(text.contains("| 10 | melm | 54.2 ± 1.0 | 64.2 ± 1.9 |"), "{text}");
    assert!(text.contains("+2.0 [+1.3, +2.7] better"), "{text}");
    assert!(text.contains("the unit is a draw of a language, its seeds averaged; 6 pairs a row"));
    assert!(latex(&rows).contains("10 & melm & 54.2 $\\pm$ 1.0 &"));
    let numbers = csv(std::slice::from_ref(&rows));
    assert!(numbers.lines().all(|line| line.split(',').count() == 15), "{numbers}");
    assert!(numbers.contains("dev,30 updates,10,base,melm,none,en,6,64.1"), "{numbers}");
}

#[test]
fn the_sizes_of_a_draw_count_as_one_pair() {
    let mut all = lines();
    for mut line in lines() {
        line.cell.size = 20;
        all.push(line);
    }
    let rows = Table::Mono.rows(&all, Split::Dev, &grid().paper);
    let sizes: Vec<_> = rows.rows.iter().map(|row| row.size).collect();
    assert_eq!(sizes, [10, 10, 20, 20, usize::MAX, usize::MAX]);
    let melm = rows.rows.last().unwrap();
    let (one, both) = (rows.rows[1].to_gold["mean"], melm.to_gold["mean"]);
    assert_eq!((both.n, melm.f1["en"].n), (6, 12));
    assert!((both.mean - one.mean).abs() < 1e-9);
    assert!((both.margin().unwrap() - one.margin().unwrap()).abs() < 1e-9);
    assert!(markdown(&rows).contains("| all | melm |"));
    // A draw without scores for all sizes is left out.
    all.retain(|line| (line.cell.size, line.cell.draw) != (20, 3) || line.cell.language != "en");
    let rows = Table::Mono.rows(&all, Split::Dev, &grid().paper);
    let melm = rows.rows.last().unwrap();
    assert_eq!((melm.to_gold["mean"].n, melm.f1["en"].n), (5, 8));
    assert!((melm.to_gold["en"].mean - 1.5).abs() < 1e-9);
}

#[test]
fn later_methods_are_compared_with_label_wise_and_melm() {
    let mut all = lines();
    for (name, more) in [("label-wise", 0), ("melm-both", 30), ("lwtr", 10)] {
        all.extend(lines().into_iter().filter(|line| line.cell.method == System::GOLD).map(
            |line| {
                let Cell { language, draw, seed, .. } = line.cell;
                let f1 = if language == "en" { 600 } else { 500 } + draw * 10 + seed + more;
                self::line(Cell { language, draw, seed, ..cell(name) }, f1, &[])
            },
        ));
    }
    let rows = Table::Mono.rows(&all, Split::Dev, &grid().paper);
    let means = |name: &str| {
        let row = rows.rows.iter().find(|row| row.method.name() == name).unwrap();
        let rounded = |(name, mean): (&&'static str, &statistics::Mean)| {
            (*name, (mean.mean * 10.0).round() / 10.0)
        };
        row.to_methods.iter().map(rounded).collect::<Vec<_>>()
    };
    assert!(means("gold").is_empty() && means("label-wise").is_empty());
    assert_eq!(means("lwtr"), [("label-wise", 1.0)]);
    assert_eq!(means("melm"), [("label-wise", 2.0)]);
    assert_eq!(means("melm-both"), [("label-wise", 3.0), ("melm", 1.0)]);
    assert!(markdown(&rows).contains("| mean | to gold | to label-wise | to melm |"));
    let two = Table::Mono.rows(&lines(), Split::Dev, &grid().paper);
    assert!(markdown(&two).contains("| mean | to gold |\n"), "{}", markdown(&two));
}

#[test]
fn scores_on_other_languages_are_paired_by_draw() {
    let rows = Table::Cross.rows(&lines(), Split::Test, &grid().paper);
    assert_eq!(rows.columns, ["en→de"]);
    let melm = rows.rows.iter().find(|row| row.method != System::GOLD).unwrap();
    assert_eq!(melm.to_gold["mean"].n, 3);
    assert!(Table::Cross.rows(&lines(), Split::Dev, &grid().paper).rows.is_empty());
    let mut joined = lines();
    joined.retain(|line| line.cell.language == "en");
    for line in &mut joined {
        line.cell.language = "en+de".to_owned();
    }
    assert!(Table::Mono.rows(&joined, Split::Test, &grid().paper).rows.is_empty());
    let rows = Table::Multi.rows(&joined, Split::Test, &grid().paper);
    assert_eq!(rows.columns, ["de", "en"]);
    let melm = rows.rows.iter().find(|row| row.method != System::GOLD).unwrap();
    // Two columns of the same tagger count as one pair.
    assert_eq!(melm.to_gold["mean"].n, 3);
}

#[test]
fn a_trial_cuts_gold_into_folds_and_gives_a_verdict() {
    let file: String = (0..11).map(|n| format!("w{n} B-X\n\n")).collect();
    let gold = corpus(&file);
    let methods = ["gold", "label-wise", "melm"].map(|name| name.parse().unwrap());
    let trial = Trial::new(3, 1.try_into().unwrap(), 30.try_into().unwrap(), &methods).unwrap();
    let (grid, folds) = trial.prepare(&gold, None).unwrap();
    assert_eq!((grid.cells().len(), folds.len()), (9, 3));
    let words = |dataset: &Dataset| -> BTreeSet<String> {
        dataset.corpus().sentences().iter().map(|s| s.tokens()[0].to_string()).collect()
    };
    let mut held = BTreeSet::new();
    for fold in folds.values() {
        let (train, test) = (words(&fold.train), words(fold.test.as_ref().unwrap()));
        assert!(train.is_disjoint(&test) && train.len() + test.len() == 11);
        held.extend(test);
    }
    assert_eq!(held.len(), 11);
    let fingerprints: BTreeSet<_> = folds.values().map(|fold| fold.train.fingerprint()).collect();
    assert_eq!(fingerprints.len(), 3);
    // Returns the verdict on melm for these F1 of each fold, in tenths of a percent.
    let judged = |kept: usize, label_wise: [u64; 3], melm: [u64; 3]| {
        let mut lines = Vec::new();
        for (method, f1s) in [("gold", [500, 510, 520]), ("label-wise", label_wise), ("melm", melm)]
        {
            for (at, f1) in f1s.into_iter().enumerate() {
                let fold = format!("fold {}", at + 1);
                let cell = Cell { language: fold.clone(), ..cell(method) };
                let mut line = line(cell, 0, &[(&fold, f1)]);
                line.drafts = (method != "gold").then(|| DraftSummary {
                    disagrees: 8,
                    kept,
                    ..DraftSummary::default()
                });
                lines.push(line);
            }
        }
        let result = trial.result(&lines);
        let note = if kept == 0 { " (no draft kept)" } else { "" };
        assert!(result.markdown().contains(&format!("| melm{note} |")));
        result.verdict(&TrialSystem::without_text("melm".parse().unwrap()))
    };
    let verdict = |label_wise, melm| judged(1, label_wise, melm);
    assert!(verdict([500, 511, 519], [550, 561, 571]).starts_with("use melm: it helps"));
    assert!(verdict([549, 561, 570], [550, 561, 571]).contains("start with label-wise"));
    assert!(verdict([500, 511, 519], [450, 461, 471]).starts_with("do not use melm: it hurts"));
    let said = verdict([500, 511, 519], [490, 561, 501]);
    assert!(said.starts_with("no verdict on melm: the trial is inconclusive"), "{said}");
    let said = verdict([500, 511, 519], [501, 510, 520]);
    assert!(said.starts_with("do not use melm: it makes no difference"), "{said}");
    let said = judged(0, [500, 510, 520], [500, 510, 520]);
    assert!(said.starts_with("no verdict: the judge kept no draft of melm"), "{said}");
}

#[test]
fn variants_named_by_axes_make_a_figure() {
    let mut all = Vec::new();
    for eta in ["0.3", "0.5"] {
        for (mu, f1) in [("0.3", 500), ("0.5", 510), ("0.7", 505)] {
            let variant = format!("eta {eta}, mu {mu}");
            all.push(line(Cell { variant, ..cell("melm") }, f1, &[]));
        }
    }
    let filter: CellFilter = "variant=eta 0.3, mu 0.5".parse().unwrap();
    assert_eq!(all.iter().filter(|line| filter.allows(&line.cell)).count(), 1);
    assert!(filter.check(all.iter().map(|line| &line.cell)).is_ok());
    let paper = PaperScores::from([(
        "any".to_owned(),
        BTreeMap::from([(
            "eta 0.5, mu 0.5".to_owned(),
            BTreeMap::from([("mean".to_owned(), 78.06)]),
        )]),
    )]);
    let rows = Table::Masking.rows(&all, Split::Dev, &paper);
    assert!(markdown(&rows).contains("51.0 (78.06)"), "{}", markdown(&rows));
    let figures = table::figures(&rows);
    assert_eq!(figures.len(), 1);
    let (name, figure) = &figures[0];
    assert_eq!((name.as_str(), figure.x.as_str()), ("dev-variants-30-updates", "mu"));
    assert_eq!(figure.places, ["0.3", "0.5", "0.7"]);
    let names: Vec<_> = figure.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["eta 0.3", "eta 0.5"]);
    assert_eq!(table::figures(&Table::Mono.rows(&lines(), Split::Dev, &paper)).len(), 0);
    let mut sizes = lines();
    sizes.extend(lines().into_iter().map(|mut line| {
        line.cell.size = 200;
        line
    }));
    let figures = table::figures(&Table::Mono.rows(&sizes, Split::Dev, &paper));
    assert_eq!(figures[0].1.places, ["10", "200"]);
    assert_eq!(figures[0].1.series.len(), 2);
    // Gold has no line in the figure of gains. The mean gain of MELM is 2 at both sizes.
    let (name, gains) = figures.last().unwrap();
    assert_eq!((name.as_str(), gains.y.as_str()), ("dev-gains-updates", "points of dev F1"));
    assert_eq!(gains.series.len(), 1);
    assert!(gains.series[0].points.iter().all(|(_, gain, _)| (gain - 2.0).abs() < 1e-9));
}

#[test]
fn costs_have_intervals_and_the_papers_values() {
    let entry = |name: &str, value: f64| (name.to_owned(), value);
    let values =
        BTreeMap::from([entry("en", 82.38), entry("minutes", 7.0), entry("parameters", 270.0)]);
    let paper = |method: &str| {
        let methods = BTreeMap::from([(method.to_owned(), values.clone())]);
        PaperScores::from([("10".to_owned(), methods)])
    };
    let costs = table::costs(Table::Costs, &lines(), &paper("melm")).unwrap();
    // By hand: English MELM has 62.15, 64.15 and 66.15 in the three draws; t(0.975, 2) = 4.3027, so the margin is 4.97.
    assert!(costs.contains("| budget | gold | de | en | drafts, s | tagger, s |"), "{costs}");
    assert!(
        costs.contains("64.2 [59.2, 69.1] (82.38) | 0.0 (7 min) | 0.0 | 0 M (270 M) |"),
        "{costs}"
    );
    assert_eq!(table::costs(Table::CostsMulti, &lines(), &paper("melm")), None);
    assert_eq!(table::costs(Table::Mono, &lines(), &paper("melm")), None);
    let mut joined = lines();
    for line in &mut joined {
        line.cell =
            Cell { language: "en+de".to_owned(), draw: line.cell.draw, ..cell("melm-codemix") };
    }
    let costs = table::costs(Table::CostsMulti, &joined, &paper("melm-codemix")).unwrap();
    assert!(costs.contains("### Costs of melm-codemix") && costs.contains("(7 min)"), "{costs}");
    assert_eq!(table::costs(Table::Costs, &joined, &paper("melm")), None);
}

#[test]
fn variants_are_compared_with_the_choice_of_the_paper() {
    let variant = |name: &str, draw: u64, f1: u64| {
        line(Cell { variant: name.to_owned(), draw, ..cell("melm") }, f1, &[])
    };
    let mut all = Vec::new();
    for draw in 1..=3 {
        all.extend([variant("R 1", draw, 500), variant("R 3", draw, 520 + draw)]);
    }
    let text = markdown(&Table::Rounds.rows(&all, Split::Dev, &PaperScores::new()));
    // The differences are -2.1, -2.2 and -2.3.
    assert!(text.contains("| to R 3 |") && text.contains("-2.2 [-2.4, -2.0] worse"), "{text}");
    // Without that variant, the first one is the reference.
    all.retain(|line| line.cell.variant == "R 1");
    all.extend((1..=3).map(|draw| variant("R 2", draw, 510)));
    let text = markdown(&Table::Rounds.rows(&all, Split::Dev, &PaperScores::new()));
    assert!(text.contains("| to R 1 |"), "{text}");
}

#[test]
fn new_contexts_are_compared_with_new_entities() {
    let mut all = Vec::new();
    for draw in 1..=3 {
        for (method, f1) in [("gold", 500), ("add-entity", 530), ("add-context", 520 + draw)] {
            all.push(line(Cell { draw, ..cell(method) }, f1, &[]));
        }
    }
    let text = markdown(&Table::AddEntity.rows(&all, Split::Dev, &PaperScores::new()));
    assert!(text.contains("| to gold | to add-entity |"), "{text}");
    assert!(text.contains("-0.8 [-1.0, -0.6] worse |"), "{text}");
}

#[test]
fn a_trial_with_text_compares_gold_and_the_last_method_with_the_text() {
    let sentences: String = (0..8).map(|n| format!("word{n} B-X\n\n")).collect();
    let gold = corpus(&sentences);
    let methods = ["label-wise", "melm"].map(|name| name.parse().unwrap());
    let [two, updates] = [2, 30].map(|n| u16::try_from(n).unwrap());
    let trial =
        Trial::new(3, two.try_into().unwrap(), u64::from(updates).try_into().unwrap(), &methods);
    let text = corpus("some O\n\nmore O\n\ntext O\n");
    let trial = trial
        .unwrap()
        .with_text(&UnlabelledText::from_corpus(&text), &KnownSentences::default())
        .unwrap();
    let names: Vec<_> = trial.systems().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["label-wise", "melm", "gold + text", "melm + text"]);
    let (grid, folds) = trial.prepare(&gold, None).unwrap();
    // 3 folds, 2 seeds: three methods without text, two with it.
    assert_eq!(grid.cells().len(), 3 * 2 * 5);
    assert!(folds.values().all(|fold| fold.text.as_ref().unwrap().corpus().sentences().len() == 3));
    let mut lines = Vec::new();
    for (method, text, f1s) in [
        ("gold", "none", [500, 510, 520]),
        ("melm", "none", [501, 509, 521]),
        ("melm", "3", [560, 571, 579]),
    ] {
        for (at, f1) in f1s.into_iter().enumerate() {
            let language = format!("fold {}", at + 1);
            let text = text.parse().unwrap();
            let cell = Cell { language: language.clone(), text, ..cell(method) };
            lines.push(line(cell, 0, &[(&language, f1)]));
        }
    }
    let result = trial.result(&lines);
    let verdict = result.verdict(trial.systems().last().unwrap());
    assert!(verdict.starts_with("use melm + text: it helps"), "{verdict}");
    assert!(result.markdown().contains("| melm + text | 57.0 |"), "{}", result.markdown());
    assert!(
        Trial::new(2, two.try_into().unwrap(), 1.try_into().unwrap(), &methods)
            .unwrap()
            .with_text(&UnlabelledText::default(), &KnownSentences::default())
            .is_err()
    );
}
