//! The registers of a CPU as the debugger port tells them all at once: little-endian, in the order of QEMU's
//! `i386-64bit.xml`.

use std::fmt;

use anyhow::{Context as _, Result};

/// The registers at a moment. Two are equal if every register is, the control and vector registers among them.
#[derive(Clone, PartialEq, Eq)]
pub struct Registers(Vec<u8>);

/// Bytes of what is read here: the general registers, flags, segments, bases and control registers.
const READ: usize = FLAGS + 4 + SEGMENTS * 4 + BASES * 8 + 6 * 8;
/// General registers, and RIP behind them.
const GENERAL: usize = 16;
const FLAGS: usize = (GENERAL + 1) * 8;
const CS: usize = FLAGS + 4;
const SEGMENTS: usize = 6;
/// FS, GS, and what SWAPGS swaps GS with.
const BASES: usize = 3;
const CONTROL: usize = CS + SEGMENTS * 4 + BASES * 8;
/// CR0, CR2 and CR3 come in this order.
const CR3: usize = CONTROL + 2 * 8;

impl Registers {
    /// RAX's number in the protocol.
    pub const RAX_NUMBER: usize = 0;
    /// RIP's number in the protocol.
    pub const RIP_NUMBER: usize = GENERAL;

    /// From the reply's hexadecimal digits.
    ///
    /// # Errors
    /// If they are not those of an x86-64 CPU.
    pub fn parse(text: &str) -> Result<Self> {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        let bytes = bytes.filter(|bytes| bytes.len() >= READ);
        Ok(Self(
            bytes.with_context(|| format!("no registers: {text:?}"))?,
        ))
    }

    fn word(&self, at: usize) -> u64 {
        // All that is asked for lies within `READ` bytes.
        self.0[at..at + 8]
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// What a function has returned.
    #[must_use]
    pub fn rax(&self) -> u64 {
        self.word(Self::RAX_NUMBER * 8)
    }
    /// The next instruction.
    #[must_use]
    pub fn rip(&self) -> u64 {
        self.word(GENERAL * 8)
    }
    /// The stack pointer.
    #[must_use]
    pub fn rsp(&self) -> u64 {
        self.word(7 * 8)
    }
    /// The frame pointer.
    #[must_use]
    pub fn rbp(&self) -> u64 {
        self.word(6 * 8)
    }
    /// RCX: at SYSCALL's entry, where the program goes on.
    #[must_use]
    pub fn rcx(&self) -> u64 {
        self.word(2 * 8)
    }
    /// RDI: the first argument.
    #[must_use]
    pub fn rdi(&self) -> u64 {
        self.word(5 * 8)
    }
    /// The flags.
    #[must_use]
    pub fn rflags(&self) -> u64 {
        self.word(FLAGS) & 0xffff_ffff
    }
    /// Whether the CPU is in user mode.
    #[must_use]
    pub fn is_user(&self) -> bool {
        self.0[CS] & 3 == 3
    }
    /// What SWAPGS swaps GS with: at an entry from a program the CPU's block.
    #[must_use]
    pub fn kernel_gs(&self) -> u64 {
        self.word(CONTROL - 8)
    }
    /// The root of the page tables.
    #[must_use]
    pub fn cr3(&self) -> u64 {
        self.word(CR3)
    }
}

impl fmt::Debug for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; GENERAL + 1] = [
            "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15", "rip",
        ];
        for (name, index) in NAMES.into_iter().zip(0..) {
            write!(f, "{name} {:x} ", self.word(index * 8))?;
        }
        write!(f, "rflags {:x} cr3 {:x}", self.rflags(), self.cr3())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_where_qemu_puts_them() {
        let mut bytes = [0; READ];
        bytes[GENERAL * 8] = 0x37;
        bytes[FLAGS] = 0x46;
        bytes[140] = 0x23;
        bytes[180 + 2] = 0x60;
        bytes[204 + 1] = 0x50;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let registers = Registers::parse(&text).unwrap();
        assert_eq!(registers.rip(), 0x37);
        assert_eq!((registers.rflags(), registers.is_user()), (0x46, true));
        assert_eq!(registers.kernel_gs(), 0x60_0000);
        assert_eq!(registers.cr3(), 0x5000);
        assert!(Registers::parse(&text[2..]).is_err());
        assert!(Registers::parse("E01").is_err());
    }
}
