//! How many chains were exact, by function and by instruction.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use iced_x86::Instruction;
use ipc::bootfs::{Bootfs, PROGRAMS};
use profd::atlas::{Atlas, Place, Space};
use profd::catalog::Catalog;
use profd::chain::Chain;
use profd::symbols::SymbolId;

use crate::build::elf;
use crate::test::Verdict as Passed;

use super::super::disassembly::instructions;
use super::verdict::{Truth, Verdict, judge};

/// Functions with wrong chains that are told.
const TOLD: usize = 12;

/// What was found.
#[derive(Debug, Default)]
pub struct Tally {
    exact: usize,
    marked: usize,
    /// Exact or with a gap, in what was begun where a gap is likely.
    on_purpose: usize,
    /// Calls that the kernel had made again.
    pub again: usize,
    /// What is wrong with chains, by function.
    wrong: BTreeMap<String, Vec<String>>,
    instructions: BTreeSet<Place>,
    /// Chains with a gap, by function.
    functions: BTreeMap<(Space, SymbolId), usize>,
}

/// The true callers at a moment.
#[derive(Clone, Debug)]
pub struct Callers {
    /// Whose the program's are.
    pub pid: u32,
    /// Their return addresses, innermost first.
    pub addresses: Vec<u64>,
    /// Whether those are all.
    pub complete: bool,
}

impl Tally {
    /// Judges a chain. It may have a gap `on_purpose`.
    pub fn judge(
        &mut self,
        atlas: Atlas<'_, '_>,
        chain: &Chain,
        callers: &Callers,
        on_purpose: bool,
    ) {
        let owner = atlas.owner(callers.pid);
        let places = callers.addresses.iter().map(|&caller| owner.place(caller));
        let truth = Truth {
            callers: places.collect(),
            complete: callers.complete,
        };
        let verdict = judge(&chain.key.steps, chain.beyond.open, &truth);
        self.add(atlas, chain.leaf, verdict, on_purpose, || {
            format!("{:x?}, not {:x?}", chain.key.steps, truth.callers)
        });
    }

    /// Counts a chain with this leaf; `tell` says what is wrong with it. It may have a gap `on_purpose`.
    fn add(
        &mut self,
        atlas: Atlas<'_, '_>,
        leaf: Place,
        verdict: Verdict,
        on_purpose: bool,
        tell: impl FnOnce() -> String,
    ) {
        self.instructions.insert(leaf);
        let function = atlas.function(leaf);
        if let Some((symbol, _)) = function {
            let marked = self.functions.entry((leaf.space, symbol)).or_default();
            *marked += usize::from(verdict == Verdict::Marked && !on_purpose);
        }
        match verdict {
            Verdict::Exact | Verdict::Marked if on_purpose => self.on_purpose += 1,
            Verdict::Exact => self.exact += 1,
            Verdict::Marked => self.marked += 1,
            Verdict::Wrong => {
                let offset = function.map_or(0, |(_, offset)| offset);
                let name = name(
                    atlas.catalog,
                    leaf.space,
                    function.map(|(symbol, _)| symbol),
                );
                let wrong = self.wrong.entry(name).or_default();
                wrong.push(format!("+{offset:#x}: {}", tell()));
            }
        }
    }

    /// Instructions at which there was a chain.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.instructions.len()
    }

    fn wrong(&self) -> usize {
        self.wrong.values().map(Vec::len).sum()
    }

    /// How many functions were gone through whole, with every instruction that they have.
    ///
    /// # Errors
    /// If an image is not there.
    pub fn whole(&self, catalog: &Catalog<'_>, archive: &Bootfs<'_>) -> Result<usize> {
        let mut whole = 0;
        let mut files = BTreeMap::new();
        for &(space, symbol) in self.functions.keys() {
            let Space::Image(image) = space else {
                continue;
            };
            let name = catalog.name(image);
            let file = archive.find(&format!("{PROGRAMS}{name}"));
            let data = file
                .or_else(|| archive.find(name))
                .context("no image")?
                .data;
            let functions = match files.entry(image) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(free) => free.insert(elf::functions(data)?),
            };
            let start = catalog.image(image)?.symbols.start(symbol);
            let Some(function) = functions.iter().find(|it| it.address == start) else {
                continue;
            };
            let was_hit = |at: &Instruction| {
                let address = at.ip();
                self.instructions.contains(&Place { space, address })
            };
            let all = instructions(data, function)?;
            whole += usize::from(all.iter().all(was_hit));
        }
        Ok(whole)
    }

    /// What was found, for people.
    #[must_use]
    pub fn table(&self, catalog: &Catalog<'_>, whole: usize) -> String {
        let mut text = format!(
            "{} functions, {whole} of them whole, {} instructions: {} chains exact, {} with a gap, {} wrong; {} more after interrupts between frames; {} calls made again\n",
            self.functions.len(),
            self.instructions.len(),
            self.exact,
            self.marked,
            self.wrong(),
            self.on_purpose,
            self.again
        );
        for (&(space, symbol), marked) in self.functions.iter().filter(|(_, marked)| **marked > 0) {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "  {marked} with a gap in {}",
                name(catalog, space, Some(symbol))
            );
        }
        text
    }

    /// Fails if there were fewer functions, a wrong chain, or a gap in more than one of so many.
    ///
    /// # Errors
    /// Which.
    pub fn check(&self, functions: usize, one_in: usize) -> Passed {
        let told = self.wrong.iter().map(|(name, all)| {
            let first = all.first().map_or("", String::as_str);
            format!("{} in {name}{first}", all.len())
        });
        let told: Vec<String> = told.take(TOLD).collect();
        ensure!(told.is_empty(), "{} wrong chains: {told:#?}", self.wrong());
        let seen = self.functions.len();
        ensure!(seen >= functions, "{seen} functions, not {functions}");
        let all = self.exact + self.marked;
        ensure!(
            self.marked * one_in < all,
            "{} of {all} chains have a gap",
            self.marked
        );
        Ok(())
    }
}

fn name(catalog: &Catalog<'_>, space: Space, symbol: Option<SymbolId>) -> String {
    match (space, symbol) {
        (Space::Image(image), Some(symbol)) => {
            format!(
                "{}`{}",
                catalog.name(image),
                catalog.symbol_name(image, symbol)
            )
        }
        _ => format!("{space:?}"),
    }
}
