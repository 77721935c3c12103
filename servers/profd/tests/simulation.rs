//! Leaf repair against a simulation: the functions of this test's own executable, decoded and followed, instruction by
//! instruction, as far as their stack and frame pointers go.
//!
//! The simulation knows at each instruction where the return address is, because it has followed RSP from the function's
//! first instruction. It lays a stack with other code addresses everywhere else, and repair must find that one address, or
//! say that the record does not hold it.

mod support;

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use profd::image::Image;
use profd::repair::{Caller, caller};
use profd::unwind::Rule;
use support::record::Record;

/// RSP before the call, less than the address of everything the function pushes.
const TOP: i64 = 0x7fff_0000;

/// RSP and RBP relative to the word that holds the return address; RBP is `None` while it is the caller's, or anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    rsp: i64,
    rbp: Option<i64>,
    /// Whether RBP holds the caller's frame pointer.
    callers: bool,
}

/// The state after an instruction; `None` if it does something to RSP or RBP that is not followed here.
fn step(frame: Frame, instruction: &Instruction) -> Option<Frame> {
    let immediate = || match instruction.op1_kind() {
        OpKind::Immediate8to64 => Some(instruction.immediate8to64()),
        OpKind::Immediate32to64 => Some(instruction.immediate32to64()),
        _ => None,
    };
    let first = (instruction.op0_kind() == OpKind::Register).then(|| instruction.op0_register());
    let second = (instruction.op1_kind() == OpKind::Register).then(|| instruction.op1_register());
    Some(match (instruction.mnemonic(), first, second) {
        (Mnemonic::Push, ..) => Frame {
            rsp: frame.rsp - 8,
            ..frame
        },
        // Only the frame pointer that was pushed first is popped into RBP.
        (Mnemonic::Pop, Some(Register::RBP), _) => Frame {
            rsp: frame.rsp + 8,
            rbp: None,
            callers: frame.rsp == -8,
        },
        (Mnemonic::Pop, ..) => Frame {
            rsp: frame.rsp + 8,
            ..frame
        },
        (Mnemonic::Sub, Some(Register::RSP), _) => Frame {
            rsp: frame.rsp - immediate()?,
            ..frame
        },
        (Mnemonic::Add, Some(Register::RSP), _) => Frame {
            rsp: frame.rsp + immediate()?,
            ..frame
        },
        (Mnemonic::Mov, Some(Register::RBP), Some(Register::RSP)) => Frame {
            rbp: Some(frame.rsp),
            callers: false,
            ..frame
        },
        (Mnemonic::Mov, Some(Register::RSP), Some(Register::RBP)) => Frame {
            rsp: frame.rbp?,
            ..frame
        },
        (Mnemonic::Lea, Some(Register::RSP), _)
            if instruction.memory_base() == Register::RBP
                && instruction.memory_index() == Register::None =>
        {
            Frame {
                rsp: frame.rbp? + instruction.memory_displacement64() as i64,
                ..frame
            }
        }
        (Mnemonic::Call, ..) => frame,
        (_, Some(Register::RSP | Register::ESP | Register::SP), _) => return None,
        (Mnemonic::Cmp | Mnemonic::Test, ..) => frame,
        (_, Some(Register::RBP | Register::EBP | Register::BP | Register::BPL), _) => Frame {
            rbp: None,
            callers: false,
            ..frame
        },
        (Mnemonic::Xchg | Mnemonic::Xadd | Mnemonic::Leave | Mnemonic::Enter, ..) => return None,
        _ => frame,
    })
}

/// The state before every instruction that is reached; those that two ways reach with different states are left out.
fn follow(code: &[u8], start: u64) -> BTreeMap<u64, Frame> {
    let end = start + code.len() as u64;
    let mut states: BTreeMap<u64, Option<Frame>> = BTreeMap::new();
    let entry = Frame {
        rsp: 0,
        rbp: None,
        callers: true,
    };
    // What follows a call may never be reached by it, so it is looked at last.
    let mut ways = vec![(start, entry)];
    let mut after_calls = Vec::new();
    while let Some((address, frame)) = ways.pop().or_else(|| after_calls.pop()) {
        if !(start..end).contains(&address) {
            continue;
        }
        if let Some(known) = states.get_mut(&address) {
            if *known != Some(frame) {
                *known = None;
            }
            continue;
        }
        let offset = (address - start) as usize;
        let mut decoder = Decoder::with_ip(64, &code[offset..], address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            continue;
        }
        states.insert(address, Some(frame));
        let Some(after) = step(frame, &instruction) else {
            continue;
        };
        let next = instruction.next_ip();
        match instruction.flow_control() {
            FlowControl::Next => ways.push((next, after)),
            FlowControl::Call | FlowControl::IndirectCall => after_calls.push((next, after)),
            FlowControl::ConditionalBranch => {
                ways.push((next, after));
                ways.push((instruction.near_branch_target(), after));
            }
            FlowControl::UnconditionalBranch => {
                ways.push((instruction.near_branch_target(), after))
            }
            _ => {}
        }
    }
    states
        .into_iter()
        .filter_map(|(address, frame)| Some((address, frame?)))
        .collect()
}

/// What repair said, and where that was not what the simulation knows.
#[derive(Default, Debug)]
struct Seen {
    walked: usize,
    restored: usize,
    lost: usize,
    wrong: Vec<String>,
}

fn check(image: &Image<'_>, code: &[u8], start: u64, seen: &mut Seen) {
    let [right, wrong] = [start, start + 1];
    for (address, frame) in follow(code, start) {
        if frame.rsp > 0 || frame.rsp % 8 != 0 {
            continue;
        }
        let rule = image.rule(address);
        if matches!(rule, Rule::Unknown | Rule::Outermost) {
            continue;
        }
        let place = |relative: i64| (TOP + relative) as u64;
        let word = (-frame.rsp / 8) as usize;
        let mut stack = vec![wrong; 8];
        if let Some(slot) = stack.get_mut(word) {
            *slot = right;
        }
        // RBP as the walk finds it: this function's frame, the caller's, or anything.
        let rbp = frame.rbp.map_or(place(0x400), place);
        let sample = Record {
            rsp: place(frame.rsp),
            rbp,
            stack,
            ..Record::new(1, &[address])
        }
        .sample();
        let found = caller(&sample, rule, |word| word == right || word == wrong);
        // A frame is RBP of the caller and the return address above it.
        let framed = frame.rbp == Some(-8);
        let expected = match word {
            _ if framed => Caller::Walked,
            0..8 => Caller::Restored(right),
            _ => Caller::Lost,
        };
        if found != expected {
            let place = format!("{address:#x}, {:#x} into its function", address - start);
            seen.wrong.push(format!(
                "{place}: {found:?}, not {expected:?}: {frame:?}, {rule:?}"
            ));
        }
        match found {
            Caller::Walked => seen.walked += 1,
            Caller::Restored(_) => seen.restored += 1,
            Caller::Lost => seen.lost += 1,
        }
    }
}

/// The code section of a file.
struct Text<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    fn of(file: &'a [u8]) -> Self {
        let header = FileHeader64::<LittleEndian>::parse(file).expect("this executable runs");
        let sections = header
            .sections(LittleEndian, file)
            .expect("it is not stripped");
        let (_, text) = sections
            .section_by_name(LittleEndian, b".text")
            .expect("it has code");
        Self {
            start: text.sh_addr(LittleEndian),
            bytes: text
                .data(LittleEndian, file)
                .expect("its code is in the file"),
        }
    }
    fn covers(&self, start: u64, size: u64) -> bool {
        start >= self.start && start + size <= self.start + self.bytes.len() as u64
    }
    fn at(&self, start: u64, size: u64) -> &'a [u8] {
        let from = (start - self.start) as usize;
        &self.bytes[from..from + size as usize]
    }
}

#[test]
fn every_function_of_this_executable_gets_its_caller_back() {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let image = Image::parse(&file).unwrap();
    let text = Text::of(&file);
    let small = |&(start, size): &(u64, u64)| (1..4096).contains(&size) && text.covers(start, size);
    let functions: Vec<_> = image.symbols.iter().filter(small).collect();
    assert!(functions.len() > 500, "{}", functions.len());
    let mut seen = Seen::default();
    for &(start, size) in &functions {
        check(&image, text.at(start, size), start, &mut seen);
    }
    assert!(
        seen.walked > 1000 && seen.restored > 1000 && seen.lost > 1000,
        "{seen:?}"
    );
    // What follows a call that never returns is reached with a state that is not its own; compilers put little there.
    let checked = seen.walked + seen.restored + seen.lost;
    assert!(seen.wrong.len() * 1000 < checked, "{seen:#?}");
}
