//! What the boot command line says of the remote shell: `udpshell=5555`, and `udpshell-open` to have it without a key.
//!
//! Nothing said is no remote shell. What is said and wrong is none either, and a line that says what is allowed: a shell that is
//! open where it was to be keyed would be worse than none.

use core::fmt;
use core::num::NonZero;

use remote_shell::{KeyRing, LineError, ServerMode};

const PORT: &str = "udpshell=";
const OPEN: &str = "udpshell-open";

/// What a system has of a remote shell.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// None.
    Off,
    /// One at this UDP port.
    At(NonZero<u16>, Access),
}

/// Who gets in.
#[derive(Debug, PartialEq, Eq)]
pub enum Access {
    /// Every host with a private address.
    Open,
    /// Who has one of these keys.
    Keyed(KeyRing),
}

impl Access {
    /// The same for the protocol.
    #[must_use]
    pub fn into_mode(self) -> ServerMode {
        match self {
            Self::Open => ServerMode::Open,
            Self::Keyed(keys) => ServerMode::Keyed(keys),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open to every private address",
            Self::Keyed(_) => "for who has a key",
        })
    }
}

/// Why there is no remote shell although one was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake<'a> {
    /// Not a port.
    Port(&'a str),
    /// The port is there twice.
    Twice,
    /// `udpshell-open` without a port.
    OpenAlone,
    /// There are no keys, and nobody asked for an open one.
    NoKeys,
    /// The file of the keys is wrong.
    Keys(LineError),
}

impl fmt::Display for Mistake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(word) => write!(f, "{PORT}{word}: must be a port, 1 to 65535"),
            Self::Twice => write!(f, "{PORT} is there twice: once is allowed"),
            Self::OpenAlone => write!(f, "{OPEN} needs a port, such as {PORT}5555"),
            Self::NoKeys => write!(
                f,
                "{PORT} needs a file etc/remote.keys in the boot archive, or {OPEN} for a shell without keys"
            ),
            Self::Keys(error) => write!(f, "etc/remote.keys: {error}"),
        }
    }
}

/// Reads the words of a command line; `keys` is the key file of the boot archive, if it has one.
///
/// # Errors
/// The first mistake.
pub fn read<'a>(line: &'a str, keys: Option<&[u8]>) -> Result<Wanted, Mistake<'a>> {
    let words = || line.split(' ');
    let open = words().any(|word| word == OPEN);
    let mut ports = words().filter_map(|word| word.strip_prefix(PORT));
    let port = match (ports.next(), ports.next(), open) {
        (_, Some(_), _) => return Err(Mistake::Twice),
        (None, None, true) => return Err(Mistake::OpenAlone),
        (None, None, false) => return Ok(Wanted::Off),
        (Some(word), None, _) => port(word).ok_or(Mistake::Port(word))?,
    };
    let access = match (open, keys) {
        (true, _) => Access::Open,
        (false, None) => return Err(Mistake::NoKeys),
        (false, Some(file)) => Access::Keyed(KeyRing::parse(file).map_err(Mistake::Keys)?),
    };
    Ok(Wanted::At(port, access))
}

fn port(word: &str) -> Option<NonZero<u16>> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str = "control 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn mistake(line: &str, keys: Option<&str>) -> String {
        read(line, keys.map(str::as_bytes)).unwrap_err().to_string()
    }

    #[test]
    fn nothing_said_is_none() {
        for line in ["", "verbose ip=10.0.2.15/24", "xudpshell=5555"] {
            assert_eq!(read(line, Some(KEYS.as_bytes())), Ok(Wanted::Off));
        }
    }

    #[test]
    fn keys_are_the_default_and_open_is_asked_for() {
        let keys = KeyRing::parse(KEYS.as_bytes()).unwrap();
        let at = |port, access| Ok(Wanted::At(NonZero::new(port).unwrap(), access));
        let file = Some(KEYS.as_bytes());
        assert_eq!(
            read("verbose udpshell=5555", file),
            at(5555, Access::Keyed(keys))
        );
        let open = "udpshell-open udpshell=65535";
        assert_eq!(read(open, file), at(65535, Access::Open));
        assert_eq!(read(open, None), at(65535, Access::Open));
    }

    #[test]
    fn what_is_wrong_leaves_it_off_and_says_what_is_allowed() {
        for word in ["", "0", "65536", "99999", "+1", "-1", "5555x", "0x10"] {
            assert_eq!(
                mistake(&format!("udpshell={word}"), Some(KEYS)),
                format!("udpshell={word}: must be a port, 1 to 65535")
            );
        }
        assert_eq!(
            mistake("udpshell=1 udpshell=1", Some(KEYS)),
            "udpshell= is there twice: once is allowed"
        );
        assert_eq!(
            mistake("udpshell-open", Some(KEYS)),
            "udpshell-open needs a port, such as udpshell=5555"
        );
        assert_eq!(
            mistake("udpshell=1", None),
            "udpshell= needs a file etc/remote.keys in the boot archive, or udpshell-open for a shell without keys"
        );
        assert_eq!(
            mistake("udpshell=1", Some("control 00")),
            "etc/remote.keys: line 1: a key is 64 hexadecimal digits, not 2"
        );
    }
}
