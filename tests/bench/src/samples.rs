//! The samples of the workload, and the programs that they are of.
//!
//! - 1,000 chains of 8 frames; the first 1,000 samples bring one each, in the others the chains with low numbers are frequent.
//! - 5,000 functions: 1,000 of the kernel, 2,000 of a server and 2,000 of its client, each with an unwind table.
//! - A third of the samples is in the kernel, and half of the chains go on in the client.

use alloc::vec::Vec;

use ipc::abi::profile::{Header, KIND_SAMPLE, LAYOUT_VERSION, Marker, flags};
use sample_ring::Writer;

use crate::elf::{FUNCTION_BYTES, PROLOGUE_BYTES};

/// Distinct chains.
pub const CHAINS: u64 = 1000;
/// Frames of each.
pub const FRAMES: usize = 8;
/// Bytes of an instruction: about what a compiler's have.
const INSTRUCTION_BYTES: u64 = 4;
/// The client's, where there are any.
const CLIENT_FRAMES: usize = 3;
/// The kernel's, in the samples that are in the kernel.
const KERNEL_FRAMES: usize = 2;

/// A program of the workload, or its kernel.
pub struct Program {
    /// Name.
    pub name: &'static str,
    /// Process id.
    pub pid: u32,
    /// Address of its first function.
    pub base: u64,
    /// How many.
    pub functions: u32,
}

/// The kernel.
pub const KERNEL: Program = Program {
    name: "kernel",
    pid: 0,
    base: 0xffff_ffff_8010_0000,
    functions: 1000,
};
/// A server, which runs in every sample.
pub const SERVER: Program = Program {
    name: "server",
    pid: 10,
    base: 0x40_0000,
    functions: 2000,
};
/// Its client.
pub const CLIENT: Program = Program {
    name: "client",
    pid: 11,
    base: 0x40_0000,
    functions: 2000,
};

/// Functions of all of them.
pub const FUNCTIONS: u32 = KERNEL.functions + SERVER.functions + CLIENT.functions;

/// A number that depends on another, all over the range.
const fn scatter(number: u64) -> u64 {
    // SplitMix64's output function (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The chain of a sample.
const fn chain_of(number: u64) -> u64 {
    if number < CHAINS {
        return number;
    }
    let (one, other) = (scatter(number) % CHAINS, scatter(number << 32) % CHAINS);
    if one < other { one } else { other }
}

/// The address of an instruction of a function, behind those that build its frame.
const fn address(program: &Program, function: u64, instruction: u64) -> u64 {
    let function = function % program.functions as u64;
    let instructions = (FUNCTION_BYTES - PROLOGUE_BYTES) / INSTRUCTION_BYTES;
    let offset = PROLOGUE_BYTES + instruction % instructions * INSTRUCTION_BYTES;
    program.base + function * FUNCTION_BYTES + offset
}

/// Frame number `frame` of a chain. The server's first names the chain: no two have the same.
const fn frame(program: &Program, chain: u64, frame: usize) -> u64 {
    let place = scatter(chain << 8 | frame as u64);
    address(program, place >> 32, place)
}

/// Takes a sample on a CPU, at a time, into its ring.
pub fn write(number: usize, cpu: u8, tsc: u64, ring: &Writer<'_>) {
    let chain = chain_of(number as u64);
    let in_kernel = chain.is_multiple_of(3);
    let has_client = chain.is_multiple_of(2);
    let kernel_frames = if in_kernel { KERNEL_FRAMES } else { 0 };
    let client_frames = if has_client { CLIENT_FRAMES } else { 0 };
    let mut tagged: Vec<u64> = Vec::with_capacity(FRAMES + 2);
    for position in 0..FRAMES {
        if position == FRAMES - client_frames {
            let (pid, tid, image) = (CLIENT.pid, 1, 0);
            tagged.extend(Marker { pid, tid, image }.pack());
        }
        let program = match position {
            _ if position < kernel_frames => &KERNEL,
            _ if position >= FRAMES - client_frames => &CLIENT,
            _ => &SERVER,
        };
        tagged.push(match position {
            // The leaf is always in the same function, and anywhere in it.
            0 => address(program, chain, number as u64),
            // This caller tells the chain from all others.
            KERNEL_FRAMES => address(program, chain, 0),
            position => frame(program, chain, position),
        });
    }
    let header = Header {
        version: LAYOUT_VERSION,
        kind: KIND_SAMPLE,
        cpu,
        flags: if in_kernel { flags::KERNEL } else { 0 },
        tagged: tagged.len() as u8,
        ..Header::default()
    };
    let mut slot = ring.begin();
    // Of the server's thread 0 and image 0, with a weight of 1; no stack, so RSP and RBP do not matter.
    for word in [tsc, SERVER.pid.into(), 1 << 32, 0, 0]
        .into_iter()
        .chain(tagged)
    {
        let fits = slot.push(word);
        debug_assert!(fits, "a slot has room for more frames than these");
    }
    slot.publish(header.pack());
}
