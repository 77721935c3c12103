//! Leaf repair, against a function whose instructions are known and against all those of this test's own executable.

mod support;

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, EhFrame, EndianVec,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, X86_64};
use profd::image::Image;
use profd::repair::{Caller, caller};
use profd::unwind::Rule;
use support::elf::{EH_FRAME, Elf};
use support::record::Record;

const START: u64 = 0x40_1000;

/// A function that builds its frame at once and drops it before it returns:
/// `push rbp` (1 byte), `mov rbp, rsp` (3), body (12), `pop rbp` (1), `ret` (1).
fn framed() -> Vec<u8> {
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
    let mut section = EhFrame(EndianVec::new(LittleEndian));
    table
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
