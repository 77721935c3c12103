//! The fixed ACPI description table: the power management timer, reset, and power off (ACPI 6.5, 5.2.9).

use super::{PhysRead, Table, field, open, word};
use crate::boot::tsc::Reference;

/// Counts in a second of the power management timer (4.8.3.3).
const PM_TIMER_HZ: u64 = 3_579_545;
/// Most bytes of the differentiated table searched for the name of the off state.
const SEARCH_MAX: u32 = 256 << 10;

/// What the kernel uses of the table. Anything may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fadt {
    /// I/O port of the power management timer, and what kind of clock it is.
    pub pm_timer: Option<(u16, Reference)>,
    /// I/O port and value that restart the machine.
    pub reset: Option<(u16, u8)>,
    /// Control ports and what to write there to switch the machine off.
    pub off: Option<Off>,
}

/// How the machine is switched off (4.8.3.2): the type for state S5, then the bit that says "now".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Off {
    /// The first control port and its value.
    pub a: (u16, u16),
    /// The second, where there is one.
    pub b: Option<(u16, u16)>,
}

/// Reads the table.
pub fn parse(memory: &impl PhysRead, table: Table) -> Fadt {
    let number = |offset| field::<4>(memory, table, offset).map(u32::from_le_bytes);
    let flags = number(112).unwrap_or(0);
    Fadt {
        pm_timer: number(76).and_then(port).map(|port| {
            let bits = if flags & 1 << 8 == 0 { 24 } else { 32 };
            (
                port,
                Reference {
                    hz: PM_TIMER_HZ,
                    bits,
                },
            )
        }),
        reset: reset(memory, table, flags),
        off: off(memory, table),
    }
}

fn port(number: u32) -> Option<u16> {
    u16::try_from(number).ok().filter(|&port| port != 0)
}

fn reset(memory: &impl PhysRead, table: Table, flags: u32) -> Option<(u16, u8)> {
    const IN_PORTS: u8 = 1;
    if flags & 1 << 10 == 0 {
        return None;
    }
    let register: [u8; 12] = field(memory, table, 116)?;
    let [value] = field(memory, table, 128)?;
    let address = u32::try_from(word(&register, 4)).ok().and_then(port)?;
    (register[0] == IN_PORTS).then_some((address, value))
}

fn off(memory: &impl PhysRead, table: Table) -> Option<Off> {
    const SLEEP_NOW: u16 = 1 << 13;
    let number = |offset| field::<4>(memory, table, offset).map(u32::from_le_bytes);
    let dsdt = field::<8>(memory, table, 140)
        .map(u64::from_le_bytes)
        .filter(|&at| at != 0)
        .or_else(|| number(40).map(u64::from))?;
    let (a, b) = sleep_types(memory, open(memory, dsdt)?)?;
    let value = |sleep_type: u8| SLEEP_NOW | u16::from(sleep_type) << 10;
    Some(Off {
        a: (number(64).and_then(port)?, value(a)),
        b: number(68).and_then(port).map(|port| (port, value(b))),
    })
}

/// The sleep types of state S5, from the package named `_S5_`. Only the plain form that firmware uses is read: a name
/// (0x08), a package (0x12) with a one-byte length, a count, and byte constants (20.2.5.4).
fn sleep_types(memory: &impl PhysRead, dsdt: Table) -> Option<(u8, u8)> {
    let start = super::HEADER_SIZE;
    let end = dsdt.bytes.min(SEARCH_MAX);
    let mut window = [0u8; 64];
    // Windows overlap, so that the package is whole in one of them.
    for offset in (start..end).step_by(32) {
        let part = window.get_mut(..(end - offset).min(64) as usize)?;
        if !memory.read(dsdt.at + u64::from(offset), part) {
            return None;
        }
        let name = part.windows(7).position(|w| w.starts_with(b"\x08_S5_\x12"));
        if let Some(types) = name.and_then(|at| package(part.get(at + 6..)?)) {
            return Some(types);
        }
    }
    None
}

/// The first two constants of a package, from its length byte on.
fn package(bytes: &[u8]) -> Option<(u8, u8)> {
    let (&length, rest) = bytes.split_first()?;
    let (&count, rest) = rest.split_first()?;
    if length >> 6 != 0 || count < 2 {
        return None;
    }
    let (a, rest) = constant(rest)?;
    let (b, _) = constant(rest)?;
    Some((a & 7, b & 7))
}

fn constant(bytes: &[u8]) -> Option<(u8, &[u8])> {
    match bytes {
        [0x0a, value, rest @ ..] => Some((*value, rest)),
        [value @ (0 | 1), rest @ ..] => Some((*value, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tables;
    use super::super::testing::{firmware, table};
    use super::*;

    fn body(flags: u32, dsdt: u64) -> Vec<u8> {
        let mut body = vec![0; 244 - 36];
        let mut put =
            |at: usize, bytes: &[u8]| body[at - 36..at - 36 + bytes.len()].copy_from_slice(bytes);
        put(64, &0x604u32.to_le_bytes());
        put(76, &0x608u32.to_le_bytes());
        put(112, &flags.to_le_bytes());
        put(116, &[1, 8, 0, 1]);
        put(120, &0xcf9u64.to_le_bytes());
        put(128, &[0xf]);
        put(140, &dsdt.to_le_bytes());
        body
    }

    fn parsed(body: &[u8], dsdt: &[u8]) -> Fadt {
        let memory = firmware(2, vec![table(b"FACP", body), table(b"DSDT", dsdt)]);
        parse(
            &memory,
            Tables::find(&memory, None).unwrap().get(b"FACP").unwrap(),
        )
    }

    const S5: &[u8] = b"\x08_S5_\x12\x06\x04\x0a\x05\x0a\x02\x00\x00";

    #[test]
    fn everything_is_found_wherever_the_name_lies() {
        for before in 0..100 {
            let mut dsdt = vec![0x5f; before];
            dsdt.extend(S5);
            let fadt = parsed(&body(1 << 10 | 1 << 8, 0x1_0000_1000), &dsdt);
            assert_eq!(
                fadt.pm_timer,
                Some((
                    0x608,
                    Reference {
                        hz: 3_579_545,
                        bits: 32
                    }
                ))
            );
            assert_eq!(fadt.reset, Some((0xcf9, 0xf)));
            assert_eq!(
                fadt.off,
                Some(Off {
                    a: (0x604, 5 << 10 | 1 << 13),
                    b: None
                }),
                "{before}"
            );
        }
    }

    #[test]
    fn what_is_not_there_is_not_invented() {
        let short = parsed(&body(1 << 10, 0)[..44], S5);
        assert_eq!((short.reset, short.off), (None, None));
        assert_eq!(
            short.pm_timer.map(|(port, clock)| (port, clock.bits)),
            Some((0x608, 24))
        );
        let none = parsed(
            &body(0, 0x1_0000_1000),
            b"\x08_S5_\x12\x46\x04\x0a\x05\x0a\x02",
        );
        assert_eq!((none.reset, none.off), (None, None));
        for cut in 0..12 {
            let fadt = parsed(&body(0, 0x1_0000_1000), &S5[..cut]);
            assert_eq!(fadt.off, None, "{cut}");
        }
    }
}
