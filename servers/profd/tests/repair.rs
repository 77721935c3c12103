//! Leaf repair, against a function whose instructions are known and against all those of this test's own executable.

mod support;

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, DebugFrame, EhFrame, EndianVec,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, X86_64};
use profd::atlas::Atlas;
use profd::catalog::{Catalog, Content};
use profd::chain::{Step, chain};
use profd::image::Image;
use profd::process::Processes;
use profd::repair::{Caller, caller};
use profd::unwind::Rule;
use support::elf::{EH_FRAME, Elf};
use support::record::Record;
use support::{KERNEL, process};

const START: u64 = 0x40_1000;

/// A function that builds its frame at once and drops it before it returns:
/// `push rbp` (1 byte), `mov rbp, rsp` (3), body (12), `pop rbp` (1), `ret` (1).
fn frame_table() -> FrameTable {
    let encoding = Encoding {
        address_size: 8,
        format: Format::Dwarf32,
        version: 1,
    };
    let mut entry = CommonInformationEntry::new(encoding, 1, -8, X86_64::RA);
    entry.add_instruction(CallFrameInstruction::Cfa(X86_64::RSP, 8));
    entry.add_instruction(CallFrameInstruction::Offset(X86_64::RA, -8));
    let mut table = FrameTable::default();
    let entry = table.add_cie(entry);
    let mut function = FrameDescriptionEntry::new(Address::Constant(START), 18);
    function.add_instruction(1, CallFrameInstruction::CfaOffset(16));
    function.add_instruction(1, CallFrameInstruction::Offset(X86_64::RBP, -16));
    function.add_instruction(4, CallFrameInstruction::CfaRegister(X86_64::RBP));
    function.add_instruction(17, CallFrameInstruction::Cfa(X86_64::RSP, 8));
    table.add_fde(entry, function);
    table
}

fn framed() -> Vec<u8> {
    let mut section = EhFrame(EndianVec::new(LittleEndian));
    frame_table()
        .write_eh_frame(&mut section)
        .expect("memory does not fail to be written");
    let elf = Elf {
        eh_frame: section.0.into_vec(),
        ..Elf::new([("f", START, 18), ("g", START + 18, 18)])
    };
    elf.build()
}

#[test]
fn the_caller_is_restored_exactly_where_the_walk_misses_it() {
    let file = framed();
    let image = Image::parse(&file).unwrap();
    assert_ne!(EH_FRAME, 0);
    let code = START + 20;
    let stack = |top: &[u64]| {
        Record {
            rsp: 0x7000,
            rbp: 0x7100,
            stack: top.to_vec(),
            ..Record::new(1, &[0])
        }
        .sample()
    };
    let at = |offset: u64, top: &[u64]| {
        caller(&stack(top), image.rule(START + offset), |word| {
            image.is_code(word)
        })
    };
    // Before the push, and between push and move.
    assert_eq!(at(0, &[code, 1]), Caller::Restored(code));
    assert_eq!(at(1, &[0x7100, code]), Caller::Restored(code));
    // In the body.
    for offset in 4..17 {
        assert_eq!(at(offset, &[code, code]), Caller::Walked);
    }
    // Before the return.
    assert_eq!(at(17, &[code]), Caller::Restored(code));
    // What is there cannot be a return address, or is not in the record.
    assert_eq!(at(0, &[0x1234]), Caller::Lost);
    assert_eq!(at(1, &[0x7100]), Caller::Lost);
    // Nobody called it.
    assert_eq!(at(0, &[0, code]), Caller::Walked);
    assert_eq!(at(1, &[0, 0]), Caller::Walked);
    // No table for this function.
    assert_eq!(at(18, &[code]), Caller::Walked);
    assert_eq!(image.rule(START + 18), Rule::Unknown);
}

#[test]
fn what_is_remembered_of_an_instruction_is_told_of_none_with_another_rule() {
    let file = framed();
    let all = START - 1..START + 20;
    let fresh = |address| Image::parse(&file).unwrap().rule(address);
    for first in all.clone() {
        let image = Image::parse(&file).unwrap();
        let _ = image.rule(first);
        for then in all.clone() {
            assert_eq!(image.rule(then), fresh(then), "{then:#x} after {first:#x}");
        }
    }
}

#[test]
fn a_frame_that_rbp_points_to_is_not_repaired() {
    let sample = Record {
        rsp: 0x7000,
        rbp: 0x7030,
        stack: vec![START; 8],
        ..Record::new(1, &[0])
    }
    .sample();
    let counted_from_rsp = Rule::StackPointer {
        frame: 0x40,
        slot: 0x38,
    };
    assert_eq!(caller(&sample, counted_from_rsp, |_| true), Caller::Walked);
    let other = Rule::StackPointer {
        frame: 0x30,
        slot: 0x28,
    };
    assert_eq!(caller(&sample, other, |_| true), Caller::Restored(START));
    let far = Rule::StackPointer {
        frame: 0x1000,
        slot: 0xff8,
    };
    assert_eq!(caller(&sample, far, |_| true), Caller::Lost);
    for odd in [-8, 4, i64::MIN] {
        assert_eq!(
            caller(
                &sample,
                Rule::StackPointer {
                    frame: 0,
                    slot: odd
                },
                |_| true
            ),
            Caller::Lost
        );
    }
}

#[test]
fn what_one_table_lacks_the_other_tells() {
    let mut section = DebugFrame(EndianVec::new(LittleEndian));
    frame_table()
        .write_debug_frame(&mut section)
        .expect("memory does not fail to be written");
    let elf = Elf {
        // One that ends at once, as in an image all of whose tables are elsewhere.
        eh_frame: vec![0; 4],
        debug_frame: section.0.into_vec(),
        ..Elf::new([("f", START, 18), ("g", START + 18, 18)])
    };
    let file = elf.build();
    let image = Image::parse(&file).unwrap();
    assert_eq!(image.rule(START), Rule::StackPointer { frame: 8, slot: 0 });
    assert_eq!(image.rule(START + 4), Rule::FramePointer);
    assert_eq!(image.rule(START + 18), Rule::Unknown);
}

#[test]
fn a_program_that_was_interrupted_between_frames_has_a_gap_behind_it() {
    let kernel = Elf::new([("idle", KERNEL, 0x100)]).build();
    let file = framed();
    let mut catalog = Catalog::new(Some(Content::Bytes(&kernel)));
    catalog.add("bin/a", Content::Bytes(&file));
    let mut processes = Processes::default();
    processes.start(1, process("a"));
    processes.start(2, process("a"));
    let atlas = Atlas {
        catalog: &catalog,
        processes: &processes,
    };
    let caller = START + 20;
    let steps = |record: Record| chain(&record.sample(), 48, atlas).key.steps;
    let (program, outer) = (atlas.owner(1).place(START), atlas.owner(1).place(caller));
    let in_kernel = |rip| steps(Record::new(1, &[KERNEL + 8, rip, caller]));
    assert_eq!(
        in_kernel(START),
        [Step::Caller(program), Step::Missing, Step::Caller(outer)]
    );
    // With its frame there, the walk misses nobody.
    let body = atlas.owner(1).place(START + 8);
    assert_eq!(
        in_kernel(START + 8),
        [Step::Caller(body), Step::Caller(outer)]
    );
    // A client is in the kernel, too.
    let served = Record {
        clients: vec![(2, vec![START, caller])],
        ..Record::new(1, &[START + 8, caller])
    };
    assert_eq!(
        steps(served),
        [
            Step::Caller(outer),
            Step::Client(program),
            Step::Missing,
            Step::Caller(outer)
        ]
    );
}
