//! What each figure may be at most: `tools/xtask/budgets.toml`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;

use super::Figure;
use super::figure::thousands;

/// The file, from the top of the sources.
const FILE: &str = "tools/xtask/budgets.toml";

/// Budgets by the names of the figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budgets(BTreeMap<String, u64>);

impl Budgets {
    /// Those of this working tree.
    ///
    /// # Errors
    /// The file is not there, or is not a list of names and numbers.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let text = fs::read_to_string(workspace.root.join(FILE)).context(FILE)?;
        Self::parse(&text)
    }

    /// From the file's text.
    ///
    /// # Errors
    /// It is not a list of names and numbers.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).map(Self).context(FILE)
    }

    /// The budget of a figure.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// The same with one budget changed.
    #[must_use]
    pub fn with(&self, name: &str, budget: u64) -> Self {
        let mut changed = self.clone();
        changed.0.insert(name.to_owned(), budget);
        changed
    }

    /// Checks that each figure has a budget, and each budget a figure.
    ///
    /// # Errors
    /// Names all that have none.
    pub fn match_names(&self, figures: &[Figure]) -> Result<()> {
        let is_figure = |name: &str| figures.iter().any(|figure| figure.name == name);
        let names = figures.iter().map(|figure| figure.name);
        let without_budget = names.filter(|name| self.of(name).is_none());
        let without_figure = self.0.keys().filter(|name| !is_figure(name));
        let mistakes: Vec<_> = without_budget
            .map(|name| format!("the figure `{name}` has no budget"))
            .chain(without_figure.map(|name| format!("the budget `{name}` has no figure")))
            .collect();
        if mistakes.is_empty() {
            return Ok(());
        }
        bail!("{FILE}: {}", mistakes.join(", "))
    }

    /// A line for each figure above its budget.
    #[must_use]
    pub fn above(&self, figures: &[Figure]) -> Vec<String> {
        let above = |figure: &Figure| {
            let budget = self.of(figure.name)?;
            let more = figure.least.checked_sub(budget).filter(|&more| more > 0)?;
            Some(format!(
                "{}: {} instructions, {} above its budget of {}",
                figure.name,
                thousands(figure.least),
                thousands(more),
                thousands(budget)
            ))
        };
        figures.iter().filter_map(above).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> [Figure; 2] {
        [
            Figure::once("null", "null system call", 354),
            Figure::once("call", "call and reply", 3240),
        ]
    }

    #[test]
    fn a_figure_above_its_budget_is_named_with_how_much() {
        let budgets = Budgets::parse("null = 354\ncall = 3240").unwrap();
        assert!(budgets.above(&figures()).is_empty());
        let lower = budgets.with("call", 2000);
        assert_eq!(
            lower.above(&figures()),
            ["call: 3,240 instructions, 1,240 above its budget of 2,000"]
        );
    }

    #[test]
    fn figures_and_budgets_belong_together() {
        let mistake = |text| {
            let budgets = Budgets::parse(text).unwrap();
            budgets
                .match_names(&figures())
                .map_err(|error| error.to_string())
        };
        assert_eq!(mistake("null = 1\ncall = 2"), Ok(()));
        let message = "tools/xtask/budgets.toml: the figure `call` has no budget, the budget `cal` has no figure";
        assert_eq!(mistake("null = 1\ncal = 2"), Err(message.to_owned()));
    }

    #[test]
    fn what_is_no_number_is_no_budget() {
        for bad in ["null = \"many\"", "null = -1", "null"] {
            assert!(Budgets::parse(bad).is_err(), "{bad}");
        }
    }
}
