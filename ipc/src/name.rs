//! Symbol names as a person reads them: the same in a report as in a panic.
//!
//! A mangled name is demangled without its hashes, and the image's own crates are dropped from it, wherever in it they
//! stand: the report names the image before the symbol, so `shares::share_a` of `shares` reads ``shares`share_a``. Paths
//! of `core` and of other crates stay. A name comes from a file, so what is not printable does not reach a terminal, and
//! what has no end is cut.

use alloc::string::String;
use core::fmt::Write;

/// Longest name, in bytes; a nest of generics can have thousands.
pub const NAME_MAX: usize = 1024;

/// The kernel's own crates.
pub const KERNEL_CRATES: [&str; 2] = ["kernel", "kcore"];

/// The name to print for a symbol of an image whose own crates are `own`.
#[must_use]
pub fn display_name(symbol: &[u8], own: &[&str]) -> String {
    let raw = String::from_utf8_lossy(symbol);
    let mut name = Bounded::default();
    let written = match rustc_demangle::try_demangle(&raw) {
        Ok(demangled) => write!(name, "{demangled:#}"),
        Err(_) => name.write_str(&raw),
    };
    if written.is_err() {
        name.0.push_str("..");
    }
    without_own(&name.0, own)
}

/// A string that stops growing at [`NAME_MAX`], and holds only printable ASCII and letters.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for character in text.chars() {
            if self.0.len() >= NAME_MAX {
                return Err(core::fmt::Error);
            }
            let printable =
                character.is_ascii_graphic() || character == ' ' || character.is_alphanumeric();
            self.0.push(if printable { character } else { '?' });
        }
        Ok(())
    }
}

/// Drops `krate::` wherever a path begins with one of the crates.
fn without_own(name: &str, own: &[&str]) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut rest = name;
    let mut before = ' ';
    while let Some(character) = rest.chars().next() {
        let begins = !is_identifier(before) && before != ':';
        let prefix = own
            .iter()
            .filter(|_| begins)
            .find_map(|krate| rest.strip_prefix(krate)?.strip_prefix("::"));
        if let Some(after) = prefix.filter(|after| !after.is_empty()) {
            rest = after;
            // What follows is inside the path, even if it is named like the crate.
            before = ':';
        } else {
            kept.push(character);
            before = character;
            rest = &rest[character.len_utf8()..];
        }
    }
    kept
}

fn is_identifier(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_own_crates_are_dropped_and_the_rest_stays() {
        let shares = |symbol: &str| display_name(symbol.as_bytes(), &["shares"]);
        assert_eq!(shares("_RNvCs1234_6shares7share_a"), "share_a");
        assert_eq!(shares("_ZN6shares7share_a17h0123456789abcdefE"), "share_a");
        assert_eq!(shares("_RNvNtCs1_4core3fmt5write"), "core::fmt::write");
        assert_eq!(
            shares("_RNvXCs1_6sharesNtB2_4LoopNtNtCs1_4core5clone5Clone5clone"),
            "<Loop as core::clone::Clone>::clone"
        );
        assert_eq!(shares("syscall_entry"), "syscall_entry");
        assert_eq!(
            display_name(b"_RNvNtCs1_5kcore5sched4pick", &["kernel", "kcore"]),
            "sched::pick"
        );
    }

    #[test]
    fn only_the_beginning_of_a_path_is_an_own_crate() {
        let own = |name: &str| without_own(name, &["net"]);
        assert_eq!(own("net::net::f"), "net::f");
        assert_eq!(own("core::net::f"), "core::net::f");
        assert_eq!(own("subnet::f"), "subnet::f");
        assert_eq!(own("<net::A<net::B>>::f"), "<A<B>>::f");
        assert_eq!(own("net::"), "net::");
        assert_eq!(own("network::f"), "network::f");
    }

    #[test]
    fn a_hostile_name_is_cut_and_does_not_reach_the_terminal() {
        let name = display_name(b"\x1b[2J\xff\n", &[]);
        assert_eq!(name, "?[2J??");
        let long = display_name(&[b'a'; 5000], &[]);
        assert_eq!(long.len(), NAME_MAX + 2);
        assert!(long.ends_with("a.."));
    }
}
