//! The system calls: one typed function each, generated from the table that the kernel is generated from. Those that carry a
//! message are in [`message`]: a row does not show its words.
//!
//! A function here is `unsafe` if the call can take memory away from, or put a thread into, code of this process that did
//! not expect it; all others can at worst fail.

pub mod message;

use core::arch::asm;

use ipc::abi::message::WORDS;
use ipc::abi::syscall::Register;
use ipc::abi::{Error, Handle, Rights};

/// What came back from the kernel, as registers.
#[derive(Clone, Copy, Debug)]
struct Returned {
    status: u64,
    results: [u64; 3],
    /// The words of a message that came.
    words: [u64; WORDS],
}

impl Returned {
    fn check(&self) -> Result<(), Error> {
        match self.status {
            0 => Ok(()),
            // The ABI versions were compared (`startup`), so the kernel knows no error that this table lacks.
            number => Err(Error::from_raw(number).unwrap_or(Error::Unsupported)),
        }
    }
    fn result<T: Register>(&self, index: usize) -> Result<T, Error> {
        let raw = self.results.get(index).copied().unwrap_or_default();
        T::from_raw(raw).ok_or(Error::Unsupported)
    }
}

/// Enters the kernel: `first` in `rdi`, `rsi`, `rdx`, and `then` in `r10`, `r8`, `r9`, `r12`.
#[inline(always)]
fn enter(number: u64, first: [u64; 3], then: [u64; WORDS]) -> Returned {
    let ([a, b, c], [d, e, f, g]) = (first, then);
    let status;
    let (x, y, z);
    let (s, t, u, v);
    // SAFETY: the instruction changes no register but those listed (ipc::abi::syscall), and touches memory of this process
    // only where the call says so: the IPC buffer, to which no reference ever exists (`buffer`), and what the unsafe
    // stubs below are told to change.
    unsafe {
        asm!(
            "syscall",
            inout("rax") number => status,
            inout("rdi") a => x,
            inout("rsi") b => y,
            inout("rdx") c => z,
            inout("r10") d => s,
            inout("r8") e => t,
            inout("r9") f => u,
            inout("r12") g => v,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    Returned {
        status,
        results: [x, y, z],
        words: [s, t, u, v],
    }
}

/// One stub. The calls that can break this process's own memory safety are named here, and are unsafe.
macro_rules! stub {
    ($number:literal call $($rest:tt)*) => {};
    ($number:literal receive $($rest:tt)*) => {};
    ($number:literal reply($($rest:tt)*) $($more:tt)*) => {};
    ($number:literal reply_receive $($rest:tt)*) => {};
    ($number:literal map $($rest:tt)*) => { stub!(@unsafe $number map $($rest)*); };
    ($number:literal unmap $($rest:tt)*) => { stub!(@unsafe $number unmap $($rest)*); };
    ($number:literal protect $($rest:tt)*) => { stub!(@unsafe $number protect $($rest)*); };
    ($number:literal thread_create $($rest:tt)*) => { stub!(@unsafe $number thread_create $($rest)*); };
    (@unsafe $number:literal $name:ident($($arg:ident: $arg_type:ty),*) -> ($($ret:ident: $ret_type:ty),*) $text:literal) => {
        #[doc = $text]
        ///
        /// # Errors
        /// As `docs/abi.md` says.
        ///
        /// # Safety
        /// If the process is the caller's own, no memory that its code relies on loses a right or its contents, and a
        /// thread is given code that may run with that stack, argument and buffer.
        #[inline]
        pub unsafe fn $name($($arg: $arg_type),*) -> Result<stub!(@type $($ret_type),*), Error> {
            stub!(@body $number ($($arg)*) ($($ret_type),*))
        }
    };
    ($number:literal $name:ident($($arg:ident: $arg_type:ty),*) -> ($($ret:ident: $ret_type:ty),*) $text:literal) => {
        #[doc = $text]
        ///
        /// # Errors
        /// As `docs/abi.md` says.
        #[inline]
        pub fn $name($($arg: $arg_type),*) -> Result<stub!(@type $($ret_type),*), Error> {
            stub!(@body $number ($($arg)*) ($($ret_type),*))
        }
    };
    (@body $number:literal ($($arg:ident)*) ($($ret_type:ty),*)) => {{
        let mut arguments = [0; 7];
        for (slot, value) in arguments.iter_mut().zip([$(Register::to_raw($arg)),*] as [u64; _]) {
            *slot = value;
        }
        let [a, b, c, d, e, f, g] = arguments;
        let returned = enter($number, [a, b, c], [d, e, f, g]);
        returned.check()?;
        stub!(@results returned $($ret_type),*)
    }};
    (@type) => { () };
    (@type $a:ty) => { $a };
    (@type $($type:ty),*) => { ($($type),*) };
    (@results $returned:ident) => { Ok(()) };
    (@results $returned:ident $a:ty) => { $returned.result::<$a>(0) };
    (@results $returned:ident $a:ty, $b:ty) => { Ok(($returned.result::<$a>(0)?, $returned.result::<$b>(1)?)) };
    (@results $returned:ident $a:ty, $b:ty, $c:ty) => {
        Ok(($returned.result::<$a>(0)?, $returned.result::<$b>(1)?, $returned.result::<$c>(2)?))
    };
}

macro_rules! stubs {
    ($($number:literal $name:ident($($arg:ident: $arg_type:ty),*) -> ($($ret:ident: $ret_type:ty),*) $text:literal;)*) => {
        $(stub! { $number $name($($arg: $arg_type),*) -> ($($ret: $ret_type),*) $text })*
    };
}
ipc::for_each_syscall!(stubs);

/// The time-stamp counter of this CPU.
#[inline]
#[must_use]
pub fn rdtsc() -> u64 {
    // SAFETY: the kernel leaves CR4.TSD clear, so the instruction is allowed, and it only reads.
    unsafe { core::arch::x86_64::_rdtsc() }
}
