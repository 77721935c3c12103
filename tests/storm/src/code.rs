//! The code of the storm's processes, and what a chain of frames through it can be: [`Code::judge`] knows each instruction's.

use core::arch::global_asm;
use core::mem::offset_of;
use core::ops::Range;

use ipc::abi::info::InfoPage;
use ipc::abi::layout::INFO_PAGE;
use ipc::abi::{Rights, Syscall};

/// Where a client maps its spare pages, and how many.
pub const SPARE: u64 = 0x3000_0000_0000;
/// See [`SPARE`].
pub const SPARE_PAGES: u64 = 2;
/// Calls of `client_works` within each other.
const DEPTH: u64 = 6;
/// Rounds of a loop that works.
const WORK: u64 = 2000;
/// Nanoseconds that a client waits: about as long as a call takes that has to wait for a server.
const MOMENT: u64 = 50_000;
/// Bytes from one of the functions that serve to the next; there are eight.
const SERVE_BYTES: u64 = 32;
const SERVES: u64 = 8;

global_asm!(
    include_str!("code.s"),
    SPARE = const SPARE,
    SPARE_PAGES = const SPARE_PAGES,
    READ_WRITE = const Rights::READ.union(Rights::WRITE).bits(),
    DEPTH = const DEPTH,
    WORK = const WORK,
    MOMENT = const MOMENT,
    INFO_PAGE = const INFO_PAGE,
    TSC_BOOT = const offset_of!(InfoPage, tsc_boot),
    TSC_MULT = const offset_of!(InfoPage, tsc_mult),
    NOTIFICATION_CREATE = const Syscall::notification_create as u64,
    TIMER_SET = const Syscall::timer_set as u64,
    WAIT = const Syscall::wait as u64,
    MAP = const Syscall::map as u64,
    UNMAP = const Syscall::unmap as u64,
    CALL = const Syscall::call as u64,
    RECEIVE = const Syscall::receive as u64,
    REPLY_RECEIVE = const Syscall::reply_receive as u64,
    options(att_syntax)
);

/// The labels of `code.s`, as offsets from its beginning.
macro_rules! labels {
    ($($name:ident)*) => {
        unsafe extern "C" {
            static storm_code: u8;
            $(static $name: u8;)*
        }
        /// The offsets.
        #[derive(Clone, Copy, Debug)]
        struct Labels {
            $($name: u64,)*
        }
        impl Labels {
            fn new() -> Self {
                let start = &raw const storm_code as u64;
                Self { $($name: &raw const $name as u64 - start,)* }
            }
        }
    };
}

labels! {
    storm_code_end
    client client_end client_after_round
    client_round client_round_end round_after_maps round_after_calls round_after_waits round_after_works
    client_maps client_maps_end
    client_calls client_calls_end client_called
    client_waits client_waits_end
    client_works client_works_end works_after_works
    server server_end server_after
    relay relay_end relay_after
    serve pass
}

/// The code, to be copied.
#[must_use]
pub fn bytes() -> &'static [u8] {
    let len = Labels::new().storm_code_end as usize;
    // SAFETY: from the first to the last label of constants.
    unsafe { core::slice::from_raw_parts(&raw const storm_code, len) }
}

/// Numbers of the functions; those that serve follow.
const CLIENT: usize = 0;
const ROUND: usize = 1;
const MAPS: usize = 2;
const CALLS: usize = 3;
const WAITS: usize = 4;
const WORKS: usize = 5;
const SERVER: usize = 6;
const RELAY: usize = 7;
const SERVE: usize = 8;
const PASS: usize = SERVE + SERVES as usize;
const FUNCTIONS: usize = PASS + SERVES as usize;

/// Set of functions.
type Set = u32;
/// Those without a caller.
const OUTERMOST: Set = 1 << CLIENT | 1 << SERVER | 1 << RELAY;
/// Those that serve, and those that pass a call on.
const SERVING: Set = ((1 << SERVES) - 1) << SERVE;
/// See [`SERVING`].
const PASSING: Set = ((1 << SERVES) - 1) << PASS;

/// Bytes of the two instructions with which a function begins.
const ENTER: u64 = 4;
/// Bytes from a function that passes a call on to where it waits for the answer: load, move, clear, load, SYSCALL.
const PASSED: u64 = ENTER + 5 + 3 + 2 + 7 + 2;

/// What is wrong with a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An address that is not in the code of this process.
    Elsewhere(u64),
    /// A return address, as an offset, that is none or not that of the function above.
    Caller(u64),
    /// It is said to be complete and does not end at an outermost function.
    Short,
}

/// A call: the offset after it, who calls, and whom it may call.
#[derive(Clone, Copy, Debug)]
struct Call {
    after: u64,
    caller: usize,
    callees: Set,
}

/// The code at an address, to judge chains by.
#[derive(Clone, Debug)]
pub struct Code {
    functions: [Range<u64>; FUNCTIONS],
    calls: [Call; 8],
    called: u64,
    len: u64,
}

impl Default for Code {
    fn default() -> Self {
        Self::new()
    }
}

impl Code {
    /// As `code.s` has it.
    #[must_use]
    pub fn new() -> Self {
        let at = Labels::new();
        let function = |index: usize| match index {
            CLIENT => at.client..at.client_end,
            ROUND => at.client_round..at.client_round_end,
            MAPS => at.client_maps..at.client_maps_end,
            CALLS => at.client_calls..at.client_calls_end,
            WAITS => at.client_waits..at.client_waits_end,
            WORKS => at.client_works..at.client_works_end,
            SERVER => at.server..at.server_end,
            RELAY => at.relay..at.relay_end,
            index => {
                let (first, of) = match index {
                    PASS.. => (at.pass, index - PASS),
                    _ => (at.serve, index - SERVE),
                };
                let start = first + of as u64 * SERVE_BYTES;
                start..start + SERVE_BYTES
            }
        };
        let call = |after, caller, callees| Call {
            after,
            caller,
            callees,
        };
        Self {
            functions: core::array::from_fn(function),
            calls: [
                call(at.client_after_round, CLIENT, 1 << ROUND),
                call(at.round_after_maps, ROUND, 1 << MAPS),
                call(at.round_after_calls, ROUND, 1 << CALLS),
                call(at.round_after_waits, ROUND, 1 << WAITS),
                call(at.round_after_works, ROUND, 1 << WORKS),
                call(at.works_after_works, WORKS, 1 << WORKS),
                call(at.server_after, SERVER, SERVING),
                call(at.relay_after, RELAY, PASSING),
            ],
            called: at.client_called,
            len: at.storm_code_end,
        }
    }

    /// Offset at which a client begins, a server, and one in the middle.
    #[must_use]
    pub fn entries(&self) -> [u64; 3] {
        [CLIENT, SERVER, RELAY].map(|index| self.functions[index].start)
    }

    /// Whether a process that is at an offset may be in a call that is served.
    #[must_use]
    pub fn is_called(&self, offset: u64) -> bool {
        let passes = self.function(offset).filter(|&index| index >= PASS);
        let passed = passes.map(|index| self.functions[index].start + PASSED);
        offset == passed.unwrap_or(self.called)
    }

    /// For which badge, of eight, a function works that an offset is in.
    #[must_use]
    pub fn serves(&self, offset: u64) -> Option<u64> {
        let index = self.function(offset)?.checked_sub(SERVE)?;
        Some(index as u64 % SERVES)
    }

    fn function(&self, offset: u64) -> Option<usize> {
        self.functions
            .iter()
            .position(|function| function.contains(&offset))
    }

    /// Who calls one of these functions.
    fn callers(&self, of: Set) -> Set {
        let calls = self.calls.iter().filter(|call| call.callees & of != 0);
        calls.fold(0, |set, call| set | 1 << call.caller)
    }

    /// Judges the frames of a process that has the code at `base`: the first is where it was, the others are return addresses.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge(&self, base: u64, frames: &[u64], is_complete: bool) -> Result<(), Wrong> {
        let offset = |address: u64| {
            let offset = address.wrapping_sub(base);
            (offset < self.len)
                .then_some(offset)
                .ok_or(Wrong::Elsewhere(address))
        };
        let Some((&first, callers)) = frames.split_first() else {
            return Err(Wrong::Short);
        };
        let at = offset(first)?;
        let function = self.function(at).ok_or(Wrong::Elsewhere(first))?;
        // Whose frame RBP points to.
        let mut framed: Set = 1 << function;
        if OUTERMOST & framed == 0 && !self.has_frame(function, at) {
            framed = self.callers(framed);
        }
        for &address in callers {
            let after = offset(address)?;
            let call = self.calls.iter().find(|call| call.after == after);
            let call = call.filter(|call| call.callees & framed != 0);
            framed = 1 << call.ok_or(Wrong::Caller(after))?.caller;
        }
        if is_complete && framed & OUTERMOST == 0 {
            return Err(Wrong::Short);
        }
        Ok(())
    }

    /// Whether RBP points to the function's own frame: behind its first two instructions, and up to its RET.
    fn has_frame(&self, function: usize, at: u64) -> bool {
        let Range { start, end } = self.functions[function];
        let ret = match function {
            PASS.. => start + PASSED + 1,
            // Push and move, load, decrement and branch, pop.
            SERVE.. => start + ENTER + 5 + 4 + 1,
            _ => end - 1,
        };
        (start + ENTER..ret).contains(&at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x1000_0000_0000;

    #[test]
    fn chains_are_right_or_wrong_by_what_calls_what() {
        let (code, at) = (Code::new(), Labels::new());
        let judge = |offsets: &[u64], complete| {
            let frames: Vec<u64> = offsets.iter().map(|offset| BASE + offset).collect();
            code.judge(BASE, &frames, complete)
        };
        let round = at.client_after_round;
        for right in [
            vec![at.client],
            vec![at.client_end - 1],
            vec![at.client_round + 4, round],
            // Before its frame is there, and after it is gone, the caller is left out.
            vec![at.client_round],
            vec![at.client_round_end - 1],
            vec![at.client_called, at.round_after_calls, round],
            vec![at.client_calls_end - 1, round],
            vec![
                at.client_works + 9,
                at.works_after_works,
                at.round_after_works,
                round,
            ],
            vec![
                at.client_works + 3,
                at.works_after_works,
                at.round_after_works,
                round,
            ],
            vec![at.client_works + 3, at.round_after_works, round],
            vec![at.serve + 64 + 13, at.server_after],
            vec![at.serve + 64 + 14],
            vec![at.pass + 64 + PASSED, at.relay_after],
            vec![at.pass + 64 + PASSED + 1],
        ] {
            assert_eq!(judge(&right, true), Ok(()), "{right:x?}");
            assert_eq!(judge(&right[..1], false), Ok(()), "{right:x?}");
        }
        let len = at.storm_code_end;
        for (wrong, what) in [
            (vec![len], Wrong::Elsewhere(BASE + len)),
            (vec![at.client, u64::MAX - BASE], Wrong::Elsewhere(u64::MAX)),
            (vec![at.client_called], Wrong::Short),
            (vec![at.client_called, at.round_after_calls], Wrong::Short),
            (vec![at.client_called, round], Wrong::Caller(round)),
            (
                vec![at.client_called, at.round_after_maps, round],
                Wrong::Caller(at.round_after_maps),
            ),
            (
                vec![at.client_called, at.round_after_calls + 1],
                Wrong::Caller(at.round_after_calls + 1),
            ),
            (vec![at.serve + 13, round], Wrong::Caller(round)),
            (vec![at.serve + 13], Wrong::Short),
            (
                vec![at.pass + PASSED, at.server_after],
                Wrong::Caller(at.server_after),
            ),
        ] {
            assert_eq!(judge(&wrong, true), Err(what), "{wrong:x?}");
        }
        assert_eq!(code.judge(BASE, &[], false), Err(Wrong::Short));
    }

    #[test]
    fn the_code_is_as_the_judge_takes_it_to_be() {
        let (code, bytes) = (Code::new(), bytes());
        const PUSH_MOVE: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
        for (index, function) in code.functions.iter().enumerate() {
            if OUTERMOST >> index & 1 == 1 {
                continue;
            }
            let start = function.start as usize;
            assert_eq!(bytes[start..start + 4], PUSH_MOVE, "{index}");
            let ret = (function.start..function.end)
                .rev()
                .find(|&at| code.has_frame(index, at))
                .unwrap() as usize;
            assert_eq!(bytes[ret..ret + 2], [0x5d, 0xc3], "{index}: pop, ret");
        }
        let at = Labels::new();
        for first in [at.serve, at.pass] {
            assert_eq!(code.serves(first + 5 * SERVE_BYTES + 31), Some(5));
        }
        assert_eq!(code.serves(at.client_called), None);
        let called: Vec<u64> = (0..at.storm_code_end)
            .filter(|&offset| code.is_called(offset))
            .collect();
        assert_eq!(called.len(), 1 + SERVES as usize);
        for end in called {
            let end = end as usize;
            assert_eq!(bytes[end - 2..end], [0x0f, 0x05], "behind a SYSCALL");
        }
    }
}
