//! Which instructions of which functions were judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use iced_x86::{Instruction, Mnemonic, Register};

use super::code::Code;
use super::state::Lost;
use crate::build::elf::Function;

/// Functions of which the test knows that it cannot follow them, and why.
const EXCEPTIONS: [(&str, &str, &str); 5] = [
    ("kernel", "8ap_entry", "is called by nobody"),
    ("kernel", "4arch5start5enter", "changes stacks, at boot"),
    (
        "kernel",
        "resume_kernel",
        "goes back to where a fault came from",
    ),
    (
        "kernel",
        "4arch7trouble8overflow",
        "pushes for ever, on purpose",
    ),
    ("crash", "5crash5crash", "jumps into its stack, on purpose"),
];

/// Why a function is not followed, if it is known not to be.
pub fn exception(image: &str, function: &Function) -> Option<&'static str> {
    let is_it = |name: &str| {
        let plain = name.trim_start_matches(|digit: char| digit.is_ascii_digit());
        function.name.ends_with(name) || function.name == plain
    };
    let mut all = EXCEPTIONS.into_iter();
    let found = all.find(|&(of, name, _)| of == image && is_it(name));
    found.map(|(.., why)| why)
}

/// What was gone through.
#[derive(Debug, Default)]
pub struct Coverage {
    images: Vec<Image>,
}

#[derive(Debug)]
struct Image {
    name: String,
    functions: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    instructions: usize,
    judged: usize,
    has_frame: bool,
    note: String,
}

impl Row {
    fn is_whole(&self) -> bool {
        self.judged == self.instructions && self.note.is_empty()
    }
}

/// An image's instructions that were judged, and where its functions were lost.
#[derive(Debug, Default)]
pub struct Visits {
    /// The instructions.
    pub judged: BTreeSet<u64>,
    /// By function.
    pub lost: BTreeMap<u64, Vec<(u64, Lost)>>,
}

impl Coverage {
    /// Adds an image, of whose functions these were to be judged.
    pub fn add<'f>(
        &mut self,
        image: &str,
        code: &Code<'_>,
        functions: impl Iterator<Item = &'f Function>,
        visits: &Visits,
    ) {
        let rows = functions.map(|function| {
            let is_judged = |it: &&Instruction| visits.judged.contains(&it.ip());
            let judged = code.of(function).filter(is_judged).count();
            let is_there = |it: &&Instruction| is_judged(it) || !is_filler(it);
            let lost = visits.lost.get(&function.address).into_iter().flatten();
            let note = match exception(image, function) {
                Some(why) => why.to_owned(),
                None => lost.map(|(at, lost)| format!("{at:#x} {lost}; ")).collect(),
            };
            Row {
                name: function.name.clone(),
                instructions: code.of(function).filter(is_there).count(),
                judged,
                has_frame: code.of(function).any(builds_frame),
                note,
            }
        });
        self.images.push(Image {
            name: image.to_owned(),
            functions: rows.collect(),
        });
    }

    /// How many functions were gone through whole: with every instruction that they have.
    pub fn whole(&self) -> usize {
        self.rows().filter(|row| row.is_whole()).count()
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.images.iter().flat_map(|image| &image.functions)
    }

    /// By image, and then by function.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:16}{:>10}{:>10}{:>10}{:>14}{:>10}\n",
            "IMAGE", "FUNCTIONS", "WHOLE", "FRAMELESS", "INSTRUCTIONS", "JUDGED"
        );
        for image in &self.images {
            let rows = &image.functions;
            let whole = rows.iter().filter(|row| row.is_whole());
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{:16}{:>10}{:>10}{:>10}{:>14}{:>10}",
                image.name,
                rows.len(),
                whole.clone().count(),
                whole.filter(|row| !row.has_frame).count(),
                rows.iter().map(|row| row.instructions).sum::<usize>(),
                rows.iter().map(|row| row.judged).sum::<usize>(),
            );
        }
        for image in &self.images {
            for row in &image.functions {
                let _ = writeln!(
                    text,
                    "{}`{} {} of {} {}",
                    image.name, row.name, row.judged, row.instructions, row.note
                );
            }
        }
        text
    }

    /// Fails if a function was not gone through whole for which there is no known reason.
    ///
    /// # Errors
    /// Which.
    pub fn check(&self) -> Result<()> {
        let known = |row: &&Row| !EXCEPTIONS.iter().any(|(.., why)| row.note == *why);
        let missed = self.rows().filter(|row| !row.is_whole()).filter(known);
        let missed: Vec<String> = missed
            .map(|row| {
                let Row { name, note, .. } = row;
                format!("{name}: {} of {} {note}", row.judged, row.instructions)
            })
            .collect();
        ensure!(missed.is_empty(), "not judged whole: {missed:#?}");
        let left_out = self.rows().filter(|row| !row.is_whole()).count();
        ensure!(
            left_out == EXCEPTIONS.len(),
            "{left_out} functions are exceptions, not {}",
            EXCEPTIONS.len()
        );
        Ok(())
    }
}

/// What stands behind the end of code, or between its parts: a jump behind an UD2, too. It counts where something leads to it.
fn is_filler(it: &Instruction) -> bool {
    matches!(
        it.mnemonic(),
        Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Ud2 | Mnemonic::Jmp
    )
}

fn builds_frame(it: &Instruction) -> bool {
    it.mnemonic() == Mnemonic::Mov
        && it.op0_register() == Register::RBP
        && it.op_count() == 2
        && it.op1_register() == Register::RSP
}
