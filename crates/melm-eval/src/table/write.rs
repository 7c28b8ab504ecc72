//! Tables as Markdown, LaTeX and CSV.

use super::Table;
use super::rows::{ALL_SIZES, MEAN, Row, Rows};
use crate::statistics::Mean;

/// Returns the table as Markdown, with one part for each budget.
pub fn markdown(rows: &Rows) -> String {
    let mut text = String::new();
    for budget in budgets(rows) {
        text += &format!("### {}, {} F1, {budget}\n\n", title(rows.table), rows.split.name());
        let head = header(rows);
        text += &format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len()));
        for row in rows.rows.iter().filter(|row| row.budget.to_string() == budget) {
            text += &format!("| {} |\n", cells(rows, row).join(" | "));
        }
        text += "\n";
    }
    if rows.rows.is_empty() {
        return format!("The ledger has no {} scores for this table.\n", rows.split.name());
    }
    text + &caption(rows) + "\n"
}

/// Returns the table as LaTeX.
pub fn latex(rows: &Rows) -> String {
    let mut text = String::new();
    for budget in budgets(rows) {
        let head = header(rows);
        let caption = format!("{}, {} F1, {budget}. ", title(rows.table), rows.split.name());
        text += &format!("\\begin{{tabular}}{{rl{}}}\n\\hline\n", "l".repeat(head.len() - 2));
        text += &format!("{} \\\\\n\\hline\n", escaped(&head).join(" & "));
        let mut size = None;
        for row in rows.rows.iter().filter(|row| row.budget.to_string() == budget) {
            if size.is_some_and(|size| size != row.size) {
                text += "\\hline\n";
            }
            size = Some(row.size);
            text += &format!("{} \\\\\n", escaped(&cells(rows, row)).join(" & "));
        }
        let caption = escaped(&[caption + &caption_of(rows)]).concat();
        text += &format!("\\hline\n\\end{{tabular}}\n% {caption}\n\n");
    }
    text
}

/// The columns of the CSV file.
const CSV_COLUMNS: [&str; 15] = [
    "split",
    "budget",
    "size",
    "variant",
    "method",
    "text",
    "column",
    "n",
    "mean",
    "sd",
    "paper",
    "pairs",
    "difference_to_gold",
    "margin95",
    "verdict",
];

/// Returns every number of several tables as CSV, one line each.
pub fn csv(tables: &[Rows]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(CSV_COLUMNS).expect("writing to memory does not fail");
    for rows in tables {
        for row in &rows.rows {
            for column in row.f1.keys() {
                let fields = csv_fields(rows, row, column);
                writer.write_record(fields).expect("writing to memory does not fail");
            }
        }
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("fields are text")
}

fn csv_fields(rows: &Rows, row: &Row, column: &str) -> [String; 15] {
    let number = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.4}"));
    let (f1, to_gold) = (&row.f1[column], row.to_gold.get(column));
    [
        rows.split.name().to_owned(),
        row.budget.to_string(),
        size(row),
        row.variant.clone(),
        row.method.title(row.is_pretrained).to_owned(),
        row.text.to_string(),
        column.to_owned(),
        f1.n.to_string(),
        number(Some(f1.mean)),
        number(f1.sd),
        number(row.paper.get(column).copied()),
        to_gold.map_or(String::new(), |mean| mean.n.to_string()),
        number(to_gold.map(|mean| mean.mean)),
        number(to_gold.and_then(Mean::margin)),
        to_gold.map_or(String::new(), |mean| mean.verdict().words().to_owned()),
    ]
}

pub(crate) fn budgets(rows: &Rows) -> Vec<String> {
    let mut budgets: Vec<_> = rows.rows.iter().map(|row| row.budget.to_string()).collect();
    budgets.dedup();
    budgets
}

pub(crate) fn title(table: Table) -> &'static str {
    match table {
        Table::Mono => "Monolingual",
        Table::Cross => "Zero-shot cross-lingual",
        Table::Multi => "Multilingual",
        Table::AddEntity => "New entities against new contexts",
        Table::Masking => "Mask rates",
        Table::Rounds => "Rounds of generation",
        Table::Costs | Table::CostsMulti => "Costs",
    }
}

fn header(rows: &Rows) -> Vec<String> {
    let mut head = vec!["gold".to_owned(), "method".to_owned()];
    head.extend((rows.variants.len() > 1).then(|| "variant".to_owned()));
    head.extend(rows.columns.iter().cloned());
    head.extend([MEAN, "to gold"].map(str::to_owned));
    head.extend(rows.references().map(|name| format!("to {name}")));
    if has_text(rows) {
        head.extend(["to drafts", "to text"].map(str::to_owned));
    }
    head.extend(rows.reference.as_ref().map(|variant| format!("to {variant}")));
    head
}

fn cells(rows: &Rows, row: &Row) -> Vec<String> {
    let mut cells = vec![size(row), row.title()];
    cells.extend((rows.variants.len() > 1).then(|| row.variant.clone()));
    for column in rows.columns.iter().map(String::as_str).chain([MEAN]) {
        let f1 = row.f1.get(column).map_or_else(|| "–".to_owned(), with_spread);
        let paper = row.paper.get(column).map(|paper| format!(" ({paper:.2})"));
        cells.push(f1 + &paper.unwrap_or_default());
    }
    let said = |mean: Option<&Mean>| mean.map_or_else(String::new, difference);
    cells.push(said(row.to_gold.get(MEAN)));
    cells.extend(rows.references().map(|name| said(row.to_methods.get(name))));
    if has_text(rows) {
        cells.extend([&row.to_drafts, &row.to_text].map(|mean| said(mean.as_ref())));
    }
    if rows.variants.len() > 1 {
        cells.push(said(row.to_first.as_ref()));
    }
    cells
}

/// Returns true if a row has unlabelled text. The table then compares it with the same drafts without text, and with
/// the same text without drafts.
fn has_text(rows: &Rows) -> bool {
    rows.rows.iter().any(|row| !row.text.is_none())
}

fn size(row: &Row) -> String {
    if row.size == ALL_SIZES { "all".to_owned() } else { row.size.to_string() }
}

fn with_spread(mean: &Mean) -> String {
    match mean.sd {
        Some(sd) => format!("{:.1} ± {sd:.1}", mean.mean),
        None => format!("{:.1}", mean.mean),
    }
}

/// Formats a difference, its interval and its verdict.
fn difference(mean: &Mean) -> String {
    let (difference, words) = (mean.difference_with_interval(1), mean.verdict().words());
    match mean.margin() {
        Some(_) => format!("{difference} {words}"),
        None => format!("{difference} ({words})"),
    }
}

fn caption(rows: &Rows) -> String {
    caption_of(rows) + "\n"
}

fn caption_of(rows: &Rows) -> String {
    let pairs = rows.rows.iter().filter_map(|row| row.to_gold.get(MEAN)).map(|mean| mean.n);
    let pairs = match (pairs.clone().min(), pairs.max()) {
        (Some(1), Some(1)) => "; one pair a row".to_owned(),
        (Some(least), Some(most)) if least == most => format!("; {least} pairs a row"),
        (Some(least), Some(most)) => format!("; {least} to {most} pairs a row"),
        _ => String::new(),
    };
    let has_paper = rows.rows.iter().any(|row| !row.paper.is_empty());
    let paper = if has_paper {
        " In brackets the paper's value, which is of another backbone."
    } else {
        ""
    };
    format!(
        "Micro-F1 in percent, mean ± standard deviation over draws and seeds.{paper} Differences are paired, with \
         their 95 % interval (Student's t); the unit is {}{pairs}. An \
         interval that contains zero is called inconclusive, or no difference if all of it is within 1 point of zero.",
        rows.table.unit()
    )
}

fn escaped(texts: &[String]) -> Vec<String> {
    let escape = |text: &String| {
        text.replace('%', "\\%")
            .replace('→', "$\\rightarrow$")
            .replace('±', "$\\pm$")
            .replace('_', "\\_")
    };
    texts.iter().map(escape).collect()
}
