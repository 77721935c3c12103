//! Which machine is meant: the first word, if it can only be a host, or else the one in the environment.

use std::env;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use remote_shell::PORT;

use crate::address::resolve;

/// Environment variable with `HOST[:PORT]`; `./run.sh sonde` sets it to the machine that `./run.sh` booted.
const HOST: &str = "SONDE_HOST";

/// The machine that is named, or else the one in the environment.
///
/// # Errors
/// If there is none, or nobody knows it.
pub fn machine(host: Option<&str>) -> Result<SocketAddr> {
    match host {
        Some(host) => resolve(host, Some(PORT)),
        None => {
            let host = env::var(HOST).ok().filter(|host| !host.is_empty());
            let host = host.context(
                "which machine? Say HOST, or set SONDE_HOST; `./run.sh sonde` finds the one that `./run.sh` boots",
            )?;
            resolve(&host, Some(PORT)).context(HOST)
        }
    }
}

/// Takes the host off the words: the first one is a host if it has a `.` or a `:` in it, as no command and no argument of `profile` has, or is
/// `localhost`. Another name needs its port behind it. A word with blanks in it is a whole command, whatever else it has.
pub fn split(words: &[String]) -> (Option<&str>, &[String]) {
    match words.split_first() {
        Some((first, rest)) if is_host(first) => (Some(first), rest),
        _ => (None, words),
    }
}

fn is_host(word: &str) -> bool {
    word == "localhost" || word.contains(['.', ':']) && !word.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_from_a_command() {
        let split = |words: &str| {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            let (host, rest) = split(&words);
            (host.map(str::to_owned), rest.join(" "))
        };
        let host = |host: &str| Some(host.to_owned());
        assert_eq!(split("10.0.0.1 ps"), (host("10.0.0.1"), "ps".into()));
        assert_eq!(split("box:5555 ps"), (host("box:5555"), "ps".into()));
        assert_eq!(split("::1 ps"), (host("::1"), "ps".into()));
        assert_eq!(split("localhost ps"), (host("localhost"), "ps".into()));
        assert_eq!(split("profile 1000"), (None, "profile 1000".into()));
        assert_eq!(split("box ps"), (None, "box ps".into()));
        let whole = ["ping 10.0.2.2".to_owned()];
        assert_eq!(super::split(&whole), (None, &whole[..]));
    }
}
