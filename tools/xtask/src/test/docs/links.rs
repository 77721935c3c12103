//! What the pages lead to.

use std::path::Path;

use anyhow::Result;

use super::Sources;

const ARCHITECTURE: &str = "docs/architecture.md";

/// The links of a page: what stands in the round brackets behind square ones.
fn targets(page: &str) -> impl Iterator<Item = &str> {
    let after = page.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// A heading as a link names it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|&c| c.is_alphanumeric() || " -_".contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Each link leads to a file, and to a heading in it.
pub fn links(sources: &Sources<'_>) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for page in sources.pages()? {
        for link in targets(&sources.read(&page)?).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.with_file_name(file),
            };
            let leads = sources.has(&target)
                && (heading.is_empty()
                    || sources
                        .read(&target)?
                        .lines()
                        .any(|line| line.starts_with('#') && anchor(line) == heading));
            if !leads {
                wrong.push(format!("{}: {link} leads nowhere", page.display()));
            }
        }
    }
    Ok(wrong)
}

/// Each page is found from README, or from the architecture.
pub fn pages(sources: &Sources<'_>) -> Result<Vec<String>> {
    let (readme, architecture) = (sources.read("README.md")?, sources.read(ARCHITECTURE)?);
    let file = |link: &'_ str| link.split('#').next().unwrap_or_default().to_owned();
    let mut linked: Vec<_> = targets(&readme).map(file).collect();
    linked.extend(targets(&architecture).map(|link| format!("docs/{}", file(link))));
    let is_missed = |page: &String| page.starts_with("docs/") && !linked.contains(page);
    let pages = sources.pages()?.into_iter();
    let pages = pages.map(|page| page.display().to_string());
    Ok(pages
        .filter(is_missed)
        .map(|page| format!("{page}: neither README.md nor {ARCHITECTURE} has a link to it"))
        .collect())
}

/// Each path that a page names exists, if it begins with a directory of the sources, or is made by a command of that page.
pub fn paths(sources: &Sources<'_>) -> Result<Vec<String>> {
    let tops = sources.names(Path::new("."))?;
    let is_source = |top: &str| top != "target" && tops.iter().any(|other| other == top);
    let mut wrong = Vec::new();
    for page in sources.pages()? {
        let text = sources.read(&page)?;
        let made: Vec<_> = text.lines().filter_map(made).collect();
        // Every second part is between back quotes.
        for code in text.split('`').skip(1).step_by(2) {
            let Some((top, _)) = code.split_once('/') else {
                continue;
            };
            let is_plain = !code.contains(|c: char| c.is_whitespace() || "*{}<>$".contains(c));
            if is_plain && is_source(top) && !made.contains(&code) && !sources.has(code) {
                wrong.push(format!("{}: there is no {code}", page.display()));
            }
        }
    }
    Ok(wrong)
}

/// The file that `./run.sh new` says it has made.
fn made(line: &str) -> Option<&str> {
    Some(line.strip_prefix("made ")?.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_read() {
        let page = "[a](b.md#c-d), [e](#f) and [g]";
        assert!(targets(page).eq(["b.md#c-d", "#f"]));
        assert_eq!(made("made    servers/a/b.rs"), Some("servers/a/b.rs"));
        assert_eq!(made("changed servers/a"), None);
        assert_eq!(
            anchor("## What is `bounded`, by what"),
            "what-is-bounded-by-what"
        );
    }
}
