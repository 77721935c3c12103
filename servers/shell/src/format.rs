//! Times and sizes as text: small, exact, and one word each, so that scripts can split a line at spaces.

use core::fmt;

use ipc::abi::layout::PAGE_SIZE;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1000 * MILLISECOND;
/// Bytes in a page, in KiB.
pub const PAGE_KIB: u64 = PAGE_SIZE / 1024;
/// Longest word here: the forty digits of a percentage of 128 bits, a point, a digit and a percent sign.
const WORD_MAX: usize = 48;

/// Writes a word, padded as the format asks.
pub fn pad(f: &mut fmt::Formatter<'_>, word: fmt::Arguments<'_>) -> fmt::Result {
    let mut text = heapless::String::<WORD_MAX>::new();
    fmt::write(&mut text, word)?;
    f.pad(&text)
}

/// A time in nanoseconds as seconds with three decimals, cut: `12.345s`.
#[derive(Clone, Copy, Debug)]
pub struct Seconds(pub u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0 / MILLISECOND;
        let (whole, part) = (milliseconds / 1000, milliseconds % 1000);
        pad(f, format_args!("{whole}.{part:03}s"))
    }
}

/// A time in nanoseconds since boot as seconds with six decimals, cut: `12.345678`.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp(pub u64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = self.0 / 1000;
        let (whole, part) = (microseconds / 1_000_000, microseconds % 1_000_000);
        pad(f, format_args!("{whole}.{part:06}"))
    }
}

/// A time in nanoseconds as days, hours, minutes and seconds, the leading ones left out: `1h 2m 3.456s`.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / SECOND;
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
        if days > 0 {
            write!(f, "{days}d ")?;
        }
        if seconds >= 3600 {
            write!(f, "{hours}h ")?;
        }
        if seconds >= 60 {
            write!(f, "{minutes}m ")?;
        }
        write!(f, "{}", Seconds(self.0 % (60 * SECOND)))
    }
}

/// A name as the kernel has it, padded with zeroes. One that cannot be shown is `?`.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a>(pub &'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.iter().position(|&byte| byte == 0);
        let bytes = &self.0[..len.unwrap_or(self.0.len())];
        let shown = bytes.iter().all(u8::is_ascii_graphic) && !bytes.is_empty();
        let text = core::str::from_utf8(bytes).ok().filter(|_| shown);
        f.pad(text.unwrap_or("?"))
    }
}

/// A part of a whole in percent with one decimal, rounded to nearest: `12.3%`. Of nothing: `0.0%`.
#[derive(Clone, Copy, Debug)]
pub struct Percent(pub u64, pub u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, whole) = (u128::from(self.0), u128::from(self.1).max(1));
        let tenths = (part * 1000 + whole / 2) / whole;
        pad(f, format_args!("{}.{}%", tenths / 10, tenths % 10))
    }
}

/// TSC ticks as microseconds with one decimal, cut: `3.4us`.
#[derive(Clone, Copy, Debug)]
pub struct Microseconds {
    /// Ticks.
    pub ticks: u64,
    /// Ticks in a second.
    pub hz: u64,
}

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = u128::from(self.ticks) * 10_000_000 / u128::from(self.hz.max(1));
        write!(f, "{}.{}us", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(Seconds(0).to_string(), "0.000s");
        assert_eq!(Seconds(12_345_999_999).to_string(), "12.345s");
        assert_eq!(Seconds(u64::MAX).to_string(), "18446744073.709s");
        assert_eq!(
            format!("{:>9}|{:<8}|", Seconds(1_000_000), Seconds(0)),
            "   0.001s|0.000s  |"
        );
        assert_eq!(format!("{:>9}", Timestamp(1_999_999)), " 0.001999");
        assert_eq!(Span(59_999_999_999).to_string(), "59.999s");
        assert_eq!(Span(60 * SECOND).to_string(), "1m 0.000s");
        assert_eq!(Span(3_723_456_000_000).to_string(), "1h 2m 3.456s");
        assert_eq!(Span(86_400 * SECOND).to_string(), "1d 0h 0m 0.000s");
    }

    #[test]
    fn names_are_one_word() {
        assert_eq!(Name(b"init\0\0\0").to_string(), "init");
        assert_eq!(format!("{:<8}|", Name(b"shares")), "shares  |");
        for bad in [&b""[..], b"\0", b"a b", b"\x1b[2J", b"\xff"] {
            assert_eq!(Name(bad).to_string(), "?");
        }
    }

    #[test]
    fn parts_are_rounded_and_nothing_is_no_division() {
        assert_eq!(Percent(1, 8).to_string(), "12.5%");
        assert_eq!(Percent(2, 3).to_string(), "66.7%");
        assert_eq!(Percent(0, 0).to_string(), "0.0%");
        assert_eq!(Percent(u64::MAX, u64::MAX).to_string(), "100.0%");
        let time = Microseconds {
            ticks: 7,
            hz: 2_000_000,
        };
        assert_eq!(time.to_string(), "3.5us");
        assert_eq!(Microseconds { ticks: 1, hz: 0 }.to_string(), "1000000.0us");
    }
}
