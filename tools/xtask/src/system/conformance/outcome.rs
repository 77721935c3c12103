//! Reads what the suite prints: a table of calls, and a verdict.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};

use super::errors;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name of the call.
    pub name: String,
    /// Errors that it answered.
    pub errors: BTreeSet<String>,
}

/// The rows of the table, if every case passed.
///
/// # Errors
/// If a case failed, or the table is not whole.
pub fn rows(text: &str) -> Result<Vec<Row>> {
    let failed: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("FAIL"))
        .collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    let mut lines = text.lines().skip_while(|line| !line.starts_with("call "));
    lines
        .next()
        .with_context(|| format!("no table in:\n{text}"))?;
    let known = errors();
    let (mut rows, mut cases) = (Vec::<Row>::new(), 0);
    for line in lines {
        if let Some(verdict) = line.strip_prefix("conformance: ") {
            let calls = rows.len() - 1;
            let whole = format!("{calls} calls, {cases} cases, {cases} passed");
            ensure!(verdict == whole, "{verdict}, not {whole}, in:\n{text}");
            ensure!(
                text.trim_end().ends_with(line),
                "it did not end well:\n{text}"
            );
            return Ok(rows);
        }
        let mut names = line;
        if !line.starts_with("  ") {
            // A name has no two blanks in a row; that of numbers without a call has one.
            let (name, rest) = line.split_once("  ").unwrap_or((line, ""));
            let (tried, rest) = number(rest);
            let (passed, rest) = number(rest);
            let (Some(tried), Some(passed)) = (tried, passed) else {
                bail!("`{line}` is no row of the table in:\n{text}");
            };
            ensure!(tried == passed && tried > 0, "{line}");
            cases += tried;
            let (name, errors) = (name.to_owned(), BTreeSet::new());
            rows.push(Row { name, errors });
            names = rest;
        }
        let row = rows
            .last_mut()
            .with_context(|| format!("`{line}` comes first"))?;
        for name in names.split_whitespace() {
            ensure!(known.contains(name), "`{name}` is no error: {line}");
            row.errors.insert(name.to_owned());
        }
    }
    bail!("no verdict in:\n{text}")
}

/// The number that a text begins with, and the rest of the text.
fn number(text: &str) -> (Option<u32>, &str) {
    let (word, rest) = text.trim_start().split_once(' ').unwrap_or((text, ""));
    (word.parse().ok(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "call                  cases passed  errors
null                      1      1 
call                     86     86  BadHandle WrongType
                                    TimedOut
(no call)                 5      5  BadSyscall
conformance: 2 calls, 92 cases, 92 passed
";

    #[test]
    fn a_table_is_read() {
        let rows = rows(TEXT).unwrap();
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["null", "call", "(no call)"]);
        let errors: Vec<_> = rows[1].errors.iter().map(String::as_str).collect();
        assert_eq!(errors, ["BadHandle", "TimedOut", "WrongType"]);
    }

    #[test]
    fn what_did_not_pass_is_refused() {
        for (old, new, says) in [
            (
                "call                  c",
                "FAIL null (x): Busy\ncall                  c",
                "FAIL null (x): Busy",
            ),
            ("86     86", "86     85", "86     85"),
            ("1      1", "0      0", "0      0"),
            ("92 cases", "93 cases", "93 cases"),
            ("2 calls", "1 calls", "1 calls"),
            ("TimedOut", "Timeout", "Timeout"),
            (
                "passed\n",
                "passed\nconformance: exited with code 1 (pid 5)\n",
                "code 1",
            ),
            ("conformance: 2", "conformance:  2", "2 calls"),
        ] {
            let error = rows(&TEXT.replacen(old, new, 1))
                .expect_err(new)
                .to_string();
            assert!(error.contains(says), "{new}: {error}");
        }
        let half = TEXT.split_once("conformance").unwrap().0;
        assert!(rows(half).unwrap_err().to_string().contains("no verdict"));
        assert!(rows("").unwrap_err().to_string().contains("no table"));
    }
}
