//! Measured figures, as a table and as a file.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use super::Budgets;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// By which budgets and scripts know it.
    pub name: &'static str,
    /// For the table.
    pub what: &'static str,
    /// What others need.
    pub peer: Option<&'static str>,
    /// Instructions of the least round: the figure.
    pub least: u64,
    /// Of the round in the middle.
    pub median: u64,
    /// Of the worst.
    pub most: u64,
    /// Rounds.
    pub rounds: u64,
}

impl Figure {
    /// One that was measured once.
    pub const fn once(name: &'static str, what: &'static str, value: u64) -> Self {
        Self {
            name,
            what,
            peer: None,
            least: value,
            median: value,
            most: value,
            rounds: 1,
        }
    }
}

/// The table; it fits 80 columns.
pub fn table(figures: &[Figure], budgets: &Budgets) -> String {
    let mut table = String::new();
    let mut line = |what: &str, least: &str, median: &str, budget: &str, peer: &str| {
        let line = format!("{what:<26}{least:>11} {median:>11} {budget:>11}  {peer}");
        // A string takes whatever is written to it.
        let _ = writeln!(table, "{}", line.trim_end());
    };
    line("guest instructions", "least", "median", "budget", "peer");
    for figure in figures {
        let budget = budgets.of(figure.name).map_or_else(String::new, thousands);
        let peer = figure.peer.unwrap_or_default();
        let (least, median) = (thousands(figure.least), thousands(figure.median));
        line(figure.what, &least, &median, &budget, peer);
    }
    table
}

/// One figure in the file.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    what: &'static str,
    unit: &'static str,
    value: u64,
    median: u64,
    most: u64,
    rounds: u64,
    budget: Option<u64>,
}

/// The file: a list of figures.
///
/// # Errors
/// None that a list of numbers and names can have.
pub fn json(figures: &[Figure], budgets: &Budgets) -> Result<String> {
    let entry = |figure: &Figure| Entry {
        name: figure.name,
        what: figure.what,
        unit: "instructions",
        value: figure.least,
        median: figure.median,
        most: figure.most,
        rounds: figure.rounds,
        budget: budgets.of(figure.name),
    };
    let entries: Vec<_> = figures.iter().map(entry).collect();
    Ok(serde_json::to_string_pretty(&entries)? + "\n")
}

/// A number with a comma after each three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Vec<Figure> {
        let guest = bench::figure::Figure::ALL.map(|figure| Figure {
            peer: figure.peer(),
            ..Figure::once(figure.name(), figure.what(), 199_999_999)
        });
        guest.into()
    }

    #[test]
    fn the_table_fits_80_columns() {
        let budgets = Budgets::parse("null = 299999999").unwrap();
        let table = table(&figures(), &budgets);
        assert_eq!(table.lines().count(), 1 + figures().len());
        for line in table.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        assert!(
            table.contains("199,999,999 199,999,999 299,999,999  seL4 91\n"),
            "{table}"
        );
    }

    #[test]
    fn the_file_has_every_figure_with_its_budget() {
        let budgets = Budgets::parse("null = 300").unwrap();
        let text = json(&figures(), &budgets).unwrap();
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), figures().len());
        assert_eq!(list[0]["name"], "null");
        assert_eq!(list[0]["unit"], "instructions");
        assert_eq!(list[0]["value"], 199_999_999);
        assert_eq!(list[0]["budget"], 300);
        assert!(list[1]["budget"].is_null());
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0, 999, 1000, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }
}
