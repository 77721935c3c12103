//! The messages of profd: what a profile is asked for, and what the answer is; and what the processors are.
//!
//! A start is answered when its window has closed, so the call is parked meanwhile; a stop, or a second start, is answered
//! at once. The caller numbers its profiles: a stop ends the one that it names, and may come before its start. The result
//! is too large for a message: it travels as a memory object, and the reply says which of its bytes are the folded
//! profile and which are its text.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::Text;
use super::init::Name;
use crate::abi::monitor;
use crate::abi::profile::SourceRequest;

/// Longest window, in milliseconds. The driver has no such limit; it keeps a shell from being held for long.
pub const WINDOW_MAX_MS: u16 = 2000;
/// Most chains a report prints.
pub const CHAINS_MAX: u16 = 512;
/// Most frames of a printed chain, its leaf included: all that a sample record has room for.
pub const DEPTH_MAX: u8 = 48;
/// Longest name of a session, in bytes.
pub const SESSION_MAX: usize = 16;

/// Which of its users a program asks for, such as the console's.
pub type SessionName = Text<SESSION_MAX>;

/// Which source is asked for; the wire form of [`SourceRequest`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Source {
    /// The best that works.
    #[default]
    Best,
    /// A performance counter.
    Pmu,
    /// An NMI from a timer.
    Timer,
    /// The timer tick.
    Tick,
}

impl From<Source> for SourceRequest {
    fn from(source: Source) -> Self {
        match source {
            Source::Best => Self::Best,
            Source::Pmu => Self::Pmu,
            Source::Timer => Self::Timer,
            Source::Tick => Self::Tick,
        }
    }
}

/// How the text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Rendering {
    /// The report a person reads: 80 columns, long names shortened.
    #[default]
    Report,
    /// The report with nothing shortened and every counter shown.
    Verbose,
    /// One chain a line, root first, frames joined by `;`, then the count.
    Folded,
}

/// One profile, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Request {
    /// Window in milliseconds, 1 to [`WINDOW_MAX_MS`].
    pub window_ms: u16,
    /// Only samples that this process took, or by client, those in which it took part; `None`: all.
    pub pid: Option<u32>,
    /// Chains to print, by client of each account; 1 to [`CHAINS_MAX`].
    pub chains: u16,
    /// Frames of a chain to fold and print, the leaf included, 1 to [`DEPTH_MAX`].
    pub depth: u8,
    /// Source to use.
    pub source: Source,
    /// Told by the client on whose behalf it was.
    pub by_client: bool,
    /// How the text is written.
    pub rendering: Rendering,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            window_ms: 1000,
            pid: None,
            chains: 8,
            depth: 8,
            source: Source::Best,
            by_client: false,
            rendering: Rendering::Report,
        }
    }
}

/// Asks for a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Start {
    /// What to measure and print.
    pub request: Request,
    /// Number of this profile among the caller's; it uses each once.
    pub number: u64,
    /// For whom, as a refusal tells others.
    pub session: SessionName,
}

/// Who runs a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Holder {
    /// The process that asked.
    pub pid: u32,
    /// Its name; empty if profd was not told.
    pub program: Name,
    /// For which of its sessions.
    pub session: SessionName,
}

impl core::fmt::Display for Holder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self {
            pid,
            program,
            session,
        } = self;
        match program.as_str() {
            "" => write!(f, "session {session} of pid {pid}"),
            program => write!(f, "session {session} of {program} (pid {pid})"),
        }
    }
}

/// Longest name of a place, in bytes; longer ones are cut.
pub const PLACE_MAX: usize = 160;

/// Asks for the name of a place in a process's code, or in the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Spot {
    /// The process; one that ended a short while ago is still known.
    pub pid: u32,
    /// The address.
    pub address: u64,
    /// It is a return address: the place is the call before it.
    pub is_return: bool,
}

/// Which bytes of the memory object that accompanies the reply are what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Answer {
    /// Bytes of the folded profile, from the object's start.
    pub profile: u32,
    /// Where the text begins.
    pub text_start: u32,
    /// Bytes of the text, UTF-8.
    pub text: u32,
}

/// Why there is no profile. Nothing stays armed after any of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Refusal {
    /// A number of the request is out of its range: the caller did not check its arguments.
    BadRequest,
    /// A profile runs already.
    Busy {
        /// Who runs it.
        holder: Holder,
    },
    /// The source is not there, or has not shown that it works on every CPU.
    NoSource {
        /// What was asked for.
        asked: Source,
    },
    /// The process never was, or ended before profd could hear of it.
    NoProcess {
        /// What was asked for.
        pid: u32,
    },
    /// The process has ended.
    ProcessEnded {
        /// What was asked for.
        pid: u32,
    },
    /// Some CPUs did not begin to sample in time.
    NotArmed {
        /// Bit per CPU.
        cpus: u64,
        /// How long was waited, in milliseconds.
        waited_ms: u16,
    },
    /// The driver failed; the number is that of an [`crate::abi::Error`].
    Driver {
        /// Number of the error.
        error: u64,
    },
    /// Stopped before the window opened.
    Stopped,
    /// No memory for the result.
    NoMemory,
    /// No performance counter can be used.
    NoCounter {
        /// A CPU whose counter cannot.
        cpu: u8,
        /// Number of the [`Interface`](crate::abi::monitor::Interface) that it claims.
        interface: u8,
        /// Number of the [`Verdict`](crate::abi::monitor::Verdict) on that.
        verdict: u8,
    },
    /// The processors could not be asked what they are; the number is that of an [`crate::abi::Error`].
    NotSurveyed {
        /// Number of the error.
        error: u64,
    },
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::BadRequest => f.write_str("a number of the request is out of range"),
            Self::Busy { holder } => write!(f, "{holder} runs a profile"),
            Self::NoSource { asked } => {
                write!(
                    f,
                    "source {}: none that works here; tick always does",
                    SourceRequest::from(*asked).name()
                )
            }
            Self::NoProcess { pid } => {
                write!(
                    f,
                    "pid {pid}: no such process; a pid that `ps` shows, or all"
                )
            }
            Self::ProcessEnded { pid } => {
                write!(f, "pid {pid}: it has ended; a pid that `ps` shows, or all")
            }
            Self::NotArmed { cpus, waited_ms } => {
                write!(
                    f,
                    "nothing measured: no answer within {waited_ms} ms from cpu"
                )?;
                (0..u64::BITS)
                    .filter(|cpu| cpus >> cpu & 1 == 1)
                    .try_for_each(|cpu| write!(f, " {cpu}"))
            }
            Self::Driver { error } => failed(f, "the profiling driver", *error),
            Self::NotSurveyed { error } => failed(f, "the processors were not read", *error),
            Self::Stopped => f.write_str("stopped before the window opened"),
            Self::NoMemory => f.write_str("no memory for the result"),
            Self::NoCounter {
                cpu,
                interface,
                verdict,
            } => {
                write!(f, "source pmu: cpu {cpu} ")?;
                monitor::words(f, (*interface).into(), (*verdict).into())
            }
        }
    }
}

/// What failed, and with which error.
fn failed(f: &mut core::fmt::Formatter<'_>, what: &str, error: u64) -> core::fmt::Result {
    match crate::abi::Error::from_raw(error) {
        Some(error) => write!(f, "{what}: {error}"),
        None => write!(f, "{what}: error {error}"),
    }
}

impl core::error::Error for Refusal {}

crate::protocol! {
    error Refusal;
    /// Measures and answers with the result, which the caller maps read-only. Parked until the window has closed.
    1 Measure = measure(Start) -> Answer, handles [H; 1];
    /// Ends the window of the caller's profile with this number now; its `measure` is answered with what there is. If that has
    /// not come yet, it is refused when it comes.
    2 Stop = stop(u64) -> ();
    /// Names a place, as a report does: ``image`function+0xoffset``. None if nobody knows a name.
    3 Locate = locate(Spot) -> Option<Text<PLACE_MAX>>;
    /// Says in words what the processors are, and what they give to sample by; with true, registers and all that CPUID answers, too.
    /// The reply is the bytes of the text, UTF-8, at the start of the memory object. Parked until every CPU was asked, once.
    4 Processors = processors(bool) -> u32, handles [H; 1];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut buffer = [0; 256];
        postcard::to_slice(value, &mut buffer).unwrap().to_vec()
    }

    const LIAR: Refusal = Refusal::NoCounter {
        cpu: 0,
        interface: 2,
        verdict: 3,
    };

    #[test]
    fn wire_bytes_are_pinned() {
        let request = Request {
            window_ms: 500,
            pid: Some(12),
            source: Source::Tick,
            by_client: true,
            rendering: Rendering::Folded,
            ..Request::default()
        };
        let start = Start {
            request,
            number: 300,
            session: Text::cut("console"),
        };
        assert_eq!(
            bytes(&start),
            b"\xf4\x03\x01\x0c\x08\x08\x03\x01\x02\xac\x02\x07console"
        );
        let holder = Holder {
            pid: 300,
            program: Text::cut("shell"),
            session: Text::cut("net"),
        };
        assert_eq!(
            bytes(&Refusal::Busy { holder }),
            b"\x01\xac\x02\x05shell\x03net"
        );
        let answer = Answer {
            profile: 300,
            text_start: 300,
            text: 5,
        };
        assert_eq!(bytes(&answer), [0xac, 2, 0xac, 2, 5]);
        assert_eq!(bytes(&Refusal::NoSource { asked: Source::Pmu }), [2, 1]);
        assert_eq!(
            bytes(&Refusal::NotArmed {
                cpus: 6,
                waited_ms: 500
            }),
            [5, 6, 0xf4, 3]
        );
        assert_eq!(bytes(&Refusal::NoMemory), [8]);
        assert_eq!(bytes(&LIAR), [9, 0, 2, 3]);
        assert_eq!(bytes(&Refusal::NotSurveyed { error: 300 }), [10, 0xac, 2]);
        assert_eq!(bytes(&true), [1]);
        let spot = Spot {
            pid: 12,
            address: 300,
            is_return: true,
        };
        assert_eq!(bytes(&spot), [12, 0xac, 2, 1]);
        let operations = [
            (1, "measure"),
            (2, "stop"),
            (3, "locate"),
            (4, "processors"),
        ];
        assert_eq!(OPERATIONS, operations);
    }

    #[test]
    fn a_holder_is_named_as_its_user_knows_it() {
        let mut holder = Holder {
            pid: 4,
            program: Text::cut("shell"),
            session: Text::cut("console"),
        };
        assert_eq!(holder.to_string(), "session console of shell (pid 4)");
        holder.program = Text::new();
        assert_eq!(holder.to_string(), "session console of pid 4");
    }

    #[test]
    fn a_refusal_is_one_line_that_names_the_argument() {
        let refusal = Refusal::NotArmed {
            cpus: 0b1010,
            waited_ms: 500,
        };
        assert_eq!(
            refusal.to_string(),
            "nothing measured: no answer within 500 ms from cpu 1 3"
        );
        let refusal = Refusal::NoProcess { pid: 999_999 };
        assert_eq!(
            refusal.to_string(),
            "pid 999999: no such process; a pid that `ps` shows, or all"
        );
        let refusal = Refusal::NoSource { asked: Source::Pmu };
        assert_eq!(
            refusal.to_string(),
            "source pmu: none that works here; tick always does"
        );
        assert_eq!(
            LIAR.to_string(),
            "source pmu: cpu 0 claims AMD core counters; they do not count"
        );
    }
}
