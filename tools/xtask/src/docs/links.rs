//! What the pages lead to.

use super::{pages, read, root};
use std::path::Path;

/// The links of a page: what stands in the round brackets behind square ones.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let after = page.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// A heading as a link names it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|&c| c.is_alphanumeric() || " -_".contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_lead_to_pages_and_headings() {
    for page in pages() {
        for link in links(&read(&page)).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.with_file_name(file),
            };
            assert!(root().join(&target).exists(), "{}: {link}", page.display());
            let text = if heading.is_empty() {
                String::new()
            } else {
                read(&target)
            };
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            assert!(
                heading.is_empty() || headings.any(|line| anchor(line) == heading),
                "{}: {link}",
                page.display()
            );
        }
    }
}

#[test]
fn every_page_is_found_from_the_readme_or_the_architecture() {
    let readme = read("README.md");
    let architecture = read("docs/architecture.md");
    for page in pages().iter().filter(|page| page.starts_with("docs")) {
        let name = page.strip_prefix("docs").unwrap().to_str().unwrap();
        let is_linked = links(&readme).any(|link| link.split('#').next() == page.to_str())
            || links(&architecture).any(|link| link.split('#').next() == Some(name));
        assert!(is_linked, "no link to {}", page.display());
    }
}

#[test]
fn paths_that_are_named_exist() {
    let mut tops = Vec::new();
    for entry in std::fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_source = !name.starts_with('.') && name != "target";
        if is_source && entry.path().is_dir() {
            tops.push(name);
        }
    }
    for page in pages() {
        let text = read(&page);
        // Every second part is between back quotes.
        for code in text.split('`').skip(1).step_by(2) {
            let path = code.trim_end_matches('/');
            let is_path = path.contains('/') || code.ends_with('/');
            let top = path.split('/').next().unwrap_or_default();
            let is_plain = !path.contains(|c: char| c.is_whitespace() || "*{}<>$".contains(c));
            if is_path && is_plain && tops.iter().any(|other| other == top) {
                assert!(
                    root().join(Path::new(path)).exists(),
                    "{}: {path}",
                    page.display()
                );
            }
        }
    }
}
