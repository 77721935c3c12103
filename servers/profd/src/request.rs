//! The arguments of `profile`: `[ms] [pid|all] [chains] [depth N] [source pmu|timer|tick] [by-client] [folded] [-v]`.
//!
//! The shell parses them with this, so that a request which reaches profd is one that can be run. What cannot be
//! understood is refused with one line that names the argument and what is allowed.

mod guess;

use alloc::string::String;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use guess::guess;
use ipc::proto::profd::{CHAINS_MAX, DEPTH_MAX, Rendering, Request, Source, WINDOW_MAX_MS};

/// How the command is written.
pub const USAGE: &str =
    "profile [ms] [pid|all] [chains] [depth N] [source S] [by-client] [folded] [-v]";

/// Chains that are printed of each account, if their number is not said.
const CHAINS_OF_ACCOUNT: u16 = 3;

/// Longest part of an argument that an error repeats, in characters.
const WORD_MAX: usize = 16;

/// The word that stands for every process.
const ALL: &str = "all";

/// The sources, by what is typed for them.
const SOURCES: &str = "pmu, timer or tick";

/// The argument that was not understood, as far as it can be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(String);

impl Word {
    fn new(argument: &str) -> Self {
        let printable = |character: char| {
            if character.is_control() {
                '?'
            } else {
                character
            }
        };
        let mut word: String = argument.chars().take(WORD_MAX).map(printable).collect();
        if argument.chars().nth(WORD_MAX).is_some() {
            word.push_str("..");
        }
        Self(word)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

/// Which argument is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// The window is no number of milliseconds, or out of range.
    Window(Word),
    /// Neither a process id nor `all`.
    Pid(Word),
    /// The number of chains is none, or out of range.
    Chains(Word),
    /// The depth is no number, or out of range, or missing.
    Depth(Option<Word>),
    /// There is no source of that name, or the name is missing.
    Source(Option<Word>),
    /// An option that there is not.
    Option(Word),
    /// A word that there is not.
    Word(Word),
    /// A word that there is not, and how the one is written that was probably meant.
    Mistyped(Word, &'static str),
    /// Given twice.
    Twice(Word),
    /// The first argument too many.
    TooMany(Word),
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window(word) => write!(f, "window {word}: 1 to {WINDOW_MAX_MS} milliseconds"),
            Self::Pid(word) => write!(f, "process {word}: a pid from 1 to {}, or all", u32::MAX),
            Self::Chains(word) => write!(f, "chains {word}: 1 to {CHAINS_MAX}"),
            Self::Depth(Some(word)) => write!(f, "depth {word}: 1 to {DEPTH_MAX} frames"),
            Self::Depth(None) => write!(f, "depth: a number is missing, 1 to {DEPTH_MAX} frames"),
            Self::Source(Some(word)) => write!(f, "source {word}: {SOURCES}"),
            Self::Source(None) => write!(f, "source: a name is missing, {SOURCES}"),
            Self::Option(word) => write!(f, "option {word}: there is only -v"),
            Self::Word(word) => {
                write!(
                    f,
                    "word {word}: all, depth, source, by-client, folded or -v"
                )
            }
            Self::Mistyped(word, meant) => {
                write!(f, "word {word}: probably {meant}; see `help profile`")
            }
            Self::Twice(word) => write!(f, "{word} is given twice: once is enough"),
            Self::TooMany(word) => {
                write!(f, "too many arguments from {word} on; see `help profile`")
            }
        }
    }
}

impl core::error::Error for ArgumentError {}

/// Reads the arguments. Words come in any order among themselves, and numbers in theirs.
///
/// # Errors
/// The first argument that is not understood.
pub fn parse(arguments: &[&str]) -> Result<Request, ArgumentError> {
    let mut parsed = Parsed::default();
    let mut rest = arguments.iter().copied();
    while let Some(argument) = rest.next() {
        parsed.argument(argument, &mut rest)?;
    }
    Ok(parsed.request())
}

/// What was given so far; `None`: not given.
#[derive(Default)]
struct Parsed {
    window: Option<u16>,
    pid: Option<Option<u32>>,
    chains: Option<u16>,
    depth: Option<u8>,
    source: Option<Source>,
    by_client: Option<()>,
    folded: Option<()>,
    verbose: Option<()>,
}

impl Parsed {
    fn argument<'a>(
        &mut self,
        argument: &'a str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), ArgumentError> {
        let word = || Word::new(argument);
        match argument {
            "depth" => {
                let given = rest.next();
                let wrong = || ArgumentError::Depth(given.map(Word::new));
                let depth = given
                    .and_then(|given| number(given, 1..=DEPTH_MAX))
                    .ok_or_else(wrong)?;
                once(&mut self.depth, depth, word)
            }
            "source" => {
                let given = rest.next();
                let wrong = || ArgumentError::Source(given.map(Word::new));
                let source = given.and_then(source).ok_or_else(wrong)?;
                once(&mut self.source, source, word)
            }
            "by-client" => once(&mut self.by_client, (), word),
            "folded" => once(&mut self.folded, (), word),
            "-v" => once(&mut self.verbose, (), word),
            _ if argument == ALL || is_numeric(argument) => self.place(argument),
            _ => Err(self.unknown(argument)),
        }
    }

    /// Takes a number, or `all`, for the first of the three that was not given yet.
    fn place(&mut self, argument: &str) -> Result<(), ArgumentError> {
        let word = || Word::new(argument);
        if self.window.is_none() {
            let window = number(argument, 1..=WINDOW_MAX_MS);
            self.window = Some(window.ok_or_else(|| ArgumentError::Window(word()))?);
        } else if self.pid.is_none() {
            let pid = number(argument, 1..=u32::MAX);
            if pid.is_none() && argument != ALL {
                return Err(ArgumentError::Pid(word()));
            }
            self.pid = Some(pid);
        } else if self.chains.is_none() {
            let chains = number(argument, 1..=CHAINS_MAX);
            self.chains = Some(chains.ok_or_else(|| ArgumentError::Chains(word()))?);
        } else {
            return Err(ArgumentError::TooMany(word()));
        }
        Ok(())
    }

    /// What is wrong with a word that there is not.
    fn unknown(&self, argument: &str) -> ArgumentError {
        let word = Word::new(argument);
        match guess(argument) {
            Some(meant) => ArgumentError::Mistyped(word, meant),
            None if argument.starts_with('-') => ArgumentError::Option(word),
            // The name of a process, perhaps.
            None if self.window.is_some() && self.pid.is_none() => ArgumentError::Pid(word),
            None => ArgumentError::Word(word),
        }
    }

    fn request(self) -> Request {
        let default = Request::default();
        let rendering = match (self.folded, self.verbose) {
            (Some(()), _) => Rendering::Folded,
            (None, Some(())) => Rendering::Verbose,
            (None, None) => Rendering::Report,
        };
        // Folded stacks are read by other tools, which want all of them.
        let chains = match (self.folded, self.by_client) {
            (Some(()), _) => CHAINS_MAX,
            (None, Some(())) => CHAINS_OF_ACCOUNT,
            (None, None) => default.chains,
        };
        Request {
            window_ms: self.window.unwrap_or(default.window_ms),
            pid: self.pid.flatten(),
            chains: self.chains.unwrap_or(chains),
            depth: self.depth.unwrap_or(default.depth),
            source: self.source.unwrap_or_default(),
            by_client: self.by_client.is_some(),
            rendering,
        }
    }
}

/// Whether every number is within its range. profd asks this of a request that came from another program.
#[must_use]
pub fn is_valid(request: &Request) -> bool {
    (1..=WINDOW_MAX_MS).contains(&request.window_ms)
        && request.pid != Some(0)
        && (1..=CHAINS_MAX).contains(&request.chains)
        && (1..=DEPTH_MAX).contains(&request.depth)
}

/// A number in decimal digits alone, as arguments of commands have it.
#[must_use]
pub fn number<N: FromStr + PartialOrd>(argument: &str, range: RangeInclusive<N>) -> Option<N> {
    let digits = !argument.is_empty() && argument.bytes().all(|byte| byte.is_ascii_digit());
    argument
        .parse()
        .ok()
        .filter(|number| digits && range.contains(number))
}

/// Whether this is meant to be a number, if perhaps none that is allowed.
fn is_numeric(argument: &str) -> bool {
    let unsigned = argument.strip_prefix(['+', '-']).unwrap_or(argument);
    unsigned.starts_with(|first: char| first.is_ascii_digit())
}

/// The source of a name, also of the one that the report prints.
fn source(name: &str) -> Option<Source> {
    match name {
        "pmu" | "pmu/nmi" => Some(Source::Pmu),
        "timer" | "timer/nmi" => Some(Source::Timer),
        "tick" => Some(Source::Tick),
        _ => None,
    }
}

fn once<T>(place: &mut Option<T>, value: T, word: impl Fn() -> Word) -> Result<(), ArgumentError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(ArgumentError::Twice(word())),
    }
}

#[cfg(test)]
mod tests;
