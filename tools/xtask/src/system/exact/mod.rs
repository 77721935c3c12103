//! Whether the chain of a sample is the true one, wherever the sample hits: a machine is stepped through the kernel and through programs,
//! instruction by instruction, and at each one the sample is made that an NMI would take there.
//!
//! The record is made by the kernel's own code, and its chain by profd's, with the files of the boot archive: frames, repair and
//! all. The true chain is kept apart, by the calls and returns that were executed. Of a thread that was in the middle of
//! something when the stepping began, the first chain in user mode is taken for true, and held to it by every return that
//! follows.
//!
//! Steps let no interrupt in, so they begin at one that has come, or at a system call, and end where the CPU would wait for one.

mod paths;
mod sampler;
mod shadow;
mod switch;
mod tally;
mod thread;
mod verdict;
mod walk;

use std::mem::offset_of;

use anyhow::{Context as _, Result, ensure};
use ipc::abi::startup::{STARTUP_PAGE, StartupHeader};
use ipc::bootfs::{Bootfs, KERNEL};
use ipc::proto::Text;
use ipc::proto::init::{BUILD_ID_MAX, Name};
use profd::catalog::{Catalog, Content};
use profd::process::{Process, Processes};

use crate::build::Image;
use crate::test::{Case, Context, Verdict as Passed};

use super::probe::{Probe, Ram};
use sampler::Layout;
use walk::Walk;

/// Functions that are gone through at least.
const FUNCTIONS: usize = 200;
/// Most chains with a gap: one in so many.
const MARKED: usize = 100;
/// Entries that are looked at after a line was typed.
const ENTRIES: usize = 150;
/// The first line has init load profd again, whose stack takes a call that is made again until it is whole; and the entries until it is.
const RELOAD: (&str, usize) = ("kill 3", 400);
/// Lines that are typed.
const LINES: [&str; 14] = [
    "run shares 60 30 10 -t 1",
    "ps",
    "run chain 4 -t 1",
    "mem",
    "profile 10 all 4",
    "map 1",
    "top",
    "threads",
    "dmesg",
    "irq",
    "stacks",
    "objects 1",
    "run syscalls -t 1",
    "run crash null",
];
/// Frames beyond what any chain has.
const DEEP: u8 = u8::MAX;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("chains_are_exact_at_every_instruction", || exact(context)),
        Case::new("chains_are_exact_between_threads", || {
            switch::exact(context)
        }),
        Case::new("chains_are_exact_on_every_path", || paths::exact(context)),
    ]
}

/// The bytes of an image's boot archive.
fn bytes(image: &Image) -> Result<Vec<u8>> {
    Ok(std::fs::read(image.bootfs.as_ref().context("no archive")?)?)
}

/// The archive in these bytes.
fn archive(bytes: &[u8]) -> Result<Bootfs<'_>> {
    Bootfs::parse(bytes).map_err(|error| anyhow::anyhow!("{error:?}"))
}

/// The files that profd has.
fn catalog<'a>(archive: &Bootfs<'a>) -> Catalog<'a> {
    let mut catalog = Catalog::new(archive.find(KERNEL).map(Content::File));
    for file in archive.files() {
        catalog.add(file.name, Content::File(file));
    }
    catalog
}

/// A process that runs the image of this name.
fn process(name: &str) -> Process {
    Process {
        name: Name::cut(name),
        image: Text::cut(name),
        build_id: [0; BUILD_ID_MAX],
        load_bias: 0,
        ended: None,
    }
}

fn exact(context: &Context<'_>) -> Passed {
    let image = context.image()?;
    let bytes = bytes(image)?;
    let archive = archive(&bytes)?;
    let catalog = catalog(&archive);
    let layout = Layout::new(&std::fs::read(&image.kernel)?)?;
    let mut probe = Probe::boot(image)?;
    let mut walk = Walk::new(layout, &catalog)?;
    for (line, entries) in [RELOAD]
        .into_iter()
        .chain(LINES.map(|line| (line, ENTRIES)))
    {
        walk.line(&mut probe, line, entries)?;
    }
    probe.session.power_off()?;
    let tally = walk.tally;
    let whole = tally.whole(&catalog, &archive)?;
    eprint!("{}", tally.table(&catalog, whole));
    ensure!(tally.again > 0, "no call was made again");
    tally.check(FUNCTIONS, MARKED)
}

/// Learns which process has these page tables, by its startup page.
fn learn(processes: &mut Processes, catalog: &Catalog<'_>, ram: &Ram, root: u64) -> Result<u32> {
    let word = |at| {
        ram.word_at(root, STARTUP_PAGE + at)
            .context("no startup page")
    };
    let pid = word(offset_of!(StartupHeader, pid) as u64)? as u32;
    if processes.get(pid).is_some() {
        return Ok(pid);
    }
    // The name comes first behind the header: its length and its text.
    let first = size_of::<StartupHeader>() as u64;
    let length = word(first)? & 0xffff;
    let text = (first + 2..first + 2 + length).map(|at| ram.byte_at(root, STARTUP_PAGE + at));
    let text: Option<Vec<u8>> = text.collect();
    let name = String::from_utf8(text.context("no startup page")?)?;
    ensure!(catalog.find(&name).is_some(), "no image of `{name}`");
    processes.start(pid, process(&name));
    Ok(pid)
}
