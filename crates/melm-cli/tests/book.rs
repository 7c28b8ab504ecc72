//! Checks the links of the documentation, and that the book contains every page. Needs no network: links to other
//! sites are not followed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    normalize(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

/// Removes `.` and `..` without reading the file system, so that a link cannot leave and enter a folder unseen.
fn normalize(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

/// Returns the Markdown files in a folder and in its subfolders, in order.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the text of a page without code: fenced blocks and text in back-ticks are left out.
fn prose(page: &str) -> String {
    let mut is_code = false;
    let mut text = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            text.push_str(line);
            text.push('\n');
        }
    }
    // Every second part is between back-ticks. Text in back-ticks never spans a paragraph.
    text.split("\n\n")
        .map(|paragraph| paragraph.split('`').step_by(2).collect::<Vec<_>>().join(" ") + "\n\n")
        .collect()
}

/// Returns the targets of the links `[text](target)`.
fn links(page: &str) -> Vec<String> {
    let text = prose(page);
    let mut parts = text.split("](");
    parts.next();
    parts.filter_map(|part| part.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// Returns the anchors of the headings, as GitHub and mdBook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut counts = BTreeMap::<String, u32>::new();
    let mut found = BTreeSet::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

/// Checks one link of a page. `limit` is the folder that it must stay in.
fn check_link(page: &Path, target: &str, limit: &Path) -> Result<(), String> {
    if target.starts_with("https://") || target.starts_with("http://") {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
    let path = match file {
        "" => page.to_path_buf(),
        file => normalize(&page.parent().unwrap().join(file)),
    };
    if !path.starts_with(limit) {
        return Err("leaves docs, so the book cannot follow it: write the path as code".to_owned());
    }
    let Some(anchor) = anchor else {
        return if path.exists() { Ok(()) } else { Err("there is no such file".to_owned()) };
    };
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let known = anchors(&text);
    if known.contains(anchor) { Ok(()) } else { Err("there is no such heading".to_owned()) }
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = root();
    let docs = root.join("docs");
    let outside = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name));
    let mut failures = Vec::new();
    let mut n_links = 0;
    for page in outside.into_iter().chain(pages(&docs)).chain(pages(&root.join("crates"))) {
        let limit = if page.starts_with(&docs) { &docs } else { &root };
        for target in links(&fs::read_to_string(&page).unwrap()) {
            n_links += 1;
            if let Err(reason) = check_link(&page, &target, limit) {
                let page = page.strip_prefix(&root).unwrap().display();
                failures.push(format!("{page}: ({target}): {reason}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n_links >= 60, "only {n_links} links found");
}

#[test]
fn the_book_contains_every_page_once() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> = links(&summary).iter().map(|link| docs.join(link)).collect();
    listed.sort();
    let mut existing = pages(&docs);
    existing.retain(|page| !page.ends_with("SUMMARY.md"));
    assert_eq!(listed, existing, "docs/SUMMARY.md must list every page below docs once");
}

#[test]
fn every_figure_is_small_and_shown_on_a_page() {
    let docs = root().join("docs");
    let mut shown = BTreeSet::new();
    for page in pages(&docs) {
        let parent = page.parent().unwrap().to_path_buf();
        shown.extend(
            links(&fs::read_to_string(&page).unwrap())
                .iter()
                .map(|link| normalize(&parent.join(link))),
        );
    }
    let mut n_figures = 0;
    for entry in fs::read_dir(docs.join("figures")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{}", path.display());
        assert!(text.len() < 16 * 1024, "{} has {} bytes", path.display(), text.len());
        assert!(shown.contains(&path), "no page shows {}", path.display());
        n_figures += 1;
    }
    assert!(n_figures >= 3, "only {n_figures} figures found");
}

#[test]
fn every_page_is_linked_from_the_front_page() {
    let docs = root().join("docs");
    let front = [root().join("README.md"), docs.join("README.md")];
    let linked: BTreeSet<PathBuf> = front
        .iter()
        .flat_map(|page| {
            let targets = links(&fs::read_to_string(page).unwrap());
            let parent = page.parent().unwrap().to_path_buf();
            targets.into_iter().map(move |target| {
                normalize(&parent.join(target.split('#').next().unwrap_or_default()))
            })
        })
        .collect();
    let is_own = |page: &PathBuf| page.ends_with("SUMMARY.md") || page.ends_with("docs/README.md");
    let missing: Vec<PathBuf> =
        pages(&docs).into_iter().filter(|page| !is_own(page) && !linked.contains(page)).collect();
    assert!(missing.is_empty(), "neither README.md nor docs/README.md links to {missing:?}");
}

#[test]
fn links_and_anchors_are_found_as_a_reader_of_markdown_finds_them() {
    let page = "# A `b`: c\n\nSee [x\ny](z.md#q) and `[no](no.md)`.\n\n```md\n# d\n[no](no.md)\n```\n\n## A b c\n";
    assert_eq!(links(page), ["z.md#q"]);
    assert_eq!(anchors(page), BTreeSet::from(["a-b-c".to_owned(), "a-b-c-1".to_owned()]));
    let twice = anchors("# The `gemm` crate (2026-11-16)\n\n# x_y\n\n# x_y\n");
    assert_eq!(
        twice,
        ["the-gemm-crate-2026-11-16", "x_y", "x_y-1"].map(str::to_owned).into_iter().collect()
    );
    let docs = root().join("docs");
    let from = docs.join("README.md");
    for wrong in ["guides/none.md", "log.md#none", "../README.md", "#none"] {
        assert!(check_link(&from, wrong, &docs).is_err(), "{wrong}");
    }
}
