//! The interrupt descriptor table: every vector leads to its stub (Intel SDM, volume 3, 6.14.1). One table serves all CPUs.

use super::percpu::KERNEL_CS;
use ipc::abi::inspect::StackKind;
use spin::Once;
use x86_64::VirtAddr;
use x86_64::instructions::tables::lidt;
use x86_64::structures::DescriptorTablePointer;

unsafe extern "C" {
    static vector_stubs: u8;
}

/// Bytes from stub to stub.
const STUB_SIZE: u64 = 16;
const PRESENT: u16 = 1 << 15;
const INTERRUPT_GATE: u16 = 0xe << 8;
const FOR_USERS: u16 = 3 << 13;

/// A gate.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Gate {
    offset_low: u16,
    selector: u16,
    options: u16,
    offset_middle: u16,
    offset_high: u32,
    reserved: u32,
}

static TABLE: Once<[Gate; 256]> = Once::new();

fn gate(vector: usize) -> Gate {
    const BREAKPOINT: usize = 3;
    let handler = &raw const vector_stubs as u64 + vector as u64 * STUB_SIZE;
    let stack = match vector {
        2 => StackKind::Nmi as u16,
        8 => StackKind::DoubleFault as u16,
        18 => StackKind::MachineCheck as u16,
        _ => 0,
    };
    let users = if vector == BREAKPOINT { FOR_USERS } else { 0 };
    Gate {
        offset_low: handler as u16,
        selector: KERNEL_CS,
        options: PRESENT | INTERRUPT_GATE | users | stack,
        offset_middle: (handler >> 16) as u16,
        offset_high: (handler >> 32) as u32,
        reserved: 0,
    }
}

/// Makes this CPU use the table.
pub fn load() {
    let table = TABLE.call_once(|| core::array::from_fn(gate));
    let pointer = DescriptorTablePointer {
        limit: (size_of_val(table) - 1) as u16,
        base: VirtAddr::from_ptr(table),
    };
    // SAFETY: the table is a static, and every gate leads to a stub that handles its vector.
    unsafe { lidt(&pointer) };
}
