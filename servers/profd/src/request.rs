//! The arguments of `profile`: `[ms] [pid|all] [chains] [depth N] [source pmu|timer|tick] [by-client] [folded] [-v]`.
//!
//! The shell parses them with this, so that a request which reaches profd is one that can be run. What cannot be
//! understood is refused with one line that names the argument and what is allowed.

use alloc::string::String;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use ipc::proto::profd::{CHAINS_MAX, DEPTH_MAX, Rendering, Request, Source, WINDOW_MAX_MS};

/// How the command is written.
pub const USAGE: &str =
    "profile [ms] [pid|all] [chains] [depth N] [source S] [by-client] [folded] [-v]";

/// Chains that are printed of each account, if their number is not said.
const CHAINS_OF_ACCOUNT: u16 = 3;

/// Longest part of an argument that an error repeats, in characters.
const WORD_MAX: usize = 20;

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
            Self::Source(Some(word)) => write!(f, "source {word}: pmu, timer or tick"),
            Self::Source(None) => write!(f, "source: a name is missing, pmu, timer or tick"),
            Self::Option(word) => write!(f, "option {word}: there is only -v"),
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
            _ if is_option(argument) => Err(ArgumentError::Option(word())),
            _ if self.window.is_none() => {
                let window = number(argument, 1..=WINDOW_MAX_MS);
                self.window = Some(window.ok_or_else(|| ArgumentError::Window(word()))?);
                Ok(())
            }
            _ if self.pid.is_none() => {
                let pid = match argument {
                    "all" => None,
                    _ => Some(
                        number(argument, 1..=u32::MAX).ok_or_else(|| ArgumentError::Pid(word()))?,
                    ),
                };
                self.pid = Some(pid);
                Ok(())
            }
            _ if self.chains.is_none() => {
                let chains = number(argument, 1..=CHAINS_MAX);
                self.chains = Some(chains.ok_or_else(|| ArgumentError::Chains(word()))?);
                Ok(())
            }
            _ => Err(ArgumentError::TooMany(word())),
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

/// Whether this is an option, if not one that there is; a number below zero is a wrong number.
fn is_option(argument: &str) -> bool {
    let rest = argument.strip_prefix('-');
    rest.is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn source(name: &str) -> Option<Source> {
    match name {
        "pmu" => Some(Source::Pmu),
        "timer" => Some(Source::Timer),
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
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn line(text: &str) -> Result<Request, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn every_argument_has_its_place_and_its_default() {
        let default = Request::default();
        assert_eq!(line(""), Ok(default));
        assert_eq!(
            (default.window_ms, default.chains, default.depth),
            (1000, 8, 8)
        );
        assert_eq!(
            line("2000 all 3"),
            Ok(Request {
                window_ms: 2000,
                chains: 3,
                ..default
            })
        );
        assert_eq!(
            line("500 12"),
            Ok(Request {
                window_ms: 500,
                pid: Some(12),
                ..default
            })
        );
        let all = line("-v 1 7 512 depth 48 source timer").unwrap();
        let expected = Request {
            window_ms: 1,
            pid: Some(7),
            chains: 512,
            depth: 48,
            source: Source::Timer,
            by_client: false,
            rendering: Rendering::Verbose,
        };
        assert_eq!(all, expected);
        assert_eq!(line("folded").unwrap().chains, CHAINS_MAX);
        assert_eq!(line("100 all 5 folded").unwrap().chains, 5);
        let by_client = line("by-client 100 7").unwrap();
        assert_eq!((by_client.by_client, by_client.chains), (true, 3));
        assert_eq!(line("folded by-client").unwrap().chains, CHAINS_MAX);
    }

    #[test]
    fn a_wrong_argument_is_named_with_what_is_allowed() {
        let refused = |text: &str| line(text).unwrap_err();
        assert_eq!(refused("0"), "window `0`: 1 to 2000 milliseconds");
        assert_eq!(refused("2001"), "window `2001`: 1 to 2000 milliseconds");
        assert_eq!(refused("x"), "window `x`: 1 to 2000 milliseconds");
        assert_eq!(refused("+5"), "window `+5`: 1 to 2000 milliseconds");
        assert_eq!(
            refused("100 x"),
            "process `x`: a pid from 1 to 4294967295, or all"
        );
        assert_eq!(
            refused("100 4294967296"),
            "process `4294967296`: a pid from 1 to 4294967295, or all"
        );
        assert_eq!(refused("100 all 0"), "chains `0`: 1 to 512");
        assert_eq!(
            refused("100 all 8 source foo"),
            "source `foo`: pmu, timer or tick"
        );
        assert_eq!(
            refused("source"),
            "source: a name is missing, pmu, timer or tick"
        );
        assert_eq!(refused("depth 49"), "depth `49`: 1 to 48 frames");
        assert_eq!(refused("-x"), "option `-x`: there is only -v");
        assert_eq!(refused("-1"), "window `-1`: 1 to 2000 milliseconds");
        assert_eq!(
            refused("folded folded"),
            "`folded` is given twice: once is enough"
        );
        assert_eq!(
            refused("by-client 5 by-client"),
            "`by-client` is given twice: once is enough"
        );
        assert_eq!(
            refused("1 all 2 3"),
            "too many arguments from `3` on; see `help profile`"
        );
    }

    /// Columns for an error, behind the name of the command.
    const COLUMNS: usize = 80 - "profile: ".len();

    proptest! {
        #[test]
        fn whatever_is_typed_gets_a_valid_request_or_one_short_line(words in prop::collection::vec("\\PC{0,40}|[0-9]{1,5}|all|depth|source|tick|by-client|folded|-v|\u{1b}\\[2J", 0..7)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match parse(&words) {
                Ok(request) => prop_assert!(is_valid(&request)),
                Err(error) => {
                    let text = error.to_string();
                    prop_assert!(!text.contains(char::is_control) && text.chars().count() <= COLUMNS, "{text}");
                }
            }
        }
    }
}
