//! A timer of the HPET that interrupts once, by an I/O APIC's line (IA-PC HPET specification 1.0a, 2.3.5, 2.3.8 and 2.3.9).

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How registers are reached, 32 bits at a time.
pub trait HpetBus {
    /// Reads the register at this offset.
    fn read(&self, offset: u64) -> u32;
    /// Writes it.
    fn write(&self, offset: u64, value: u32);
}

const CAPABILITIES: u64 = 0x000;
const CONFIGURATION: u64 = 0x010;
const COUNTER: u64 = 0x0f0;
const TIMERS: u64 = 0x100;
const TIMER_BYTES: u64 = 0x20;
/// From a timer's configuration, low half: the lines it can be wired to, a bit each, and its comparator.
const ROUTES: u64 = 0x04;
const COMPARATOR: u64 = 0x08;

/// Of the general configuration: count, and the timers 0 and 1 in the place of the old ones, whatever their routes.
const COUNT: u32 = 1 << 0;
const LEGACY: u32 = 1 << 1;
/// Of a timer: level-triggered, interrupts on, periodic, only 32 bits, route, by message.
const LEVEL: u32 = 1 << 1;
const ENABLED: u32 = 1 << 2;
const PERIODIC: u32 = 1 << 3;
const NARROW: u32 = 1 << 8;
const ROUTE_SHIFT: u32 = 9;
const ROUTE: u32 = 0x1f << ROUTE_SHIFT;
const BY_MESSAGE: u32 = 1 << 14;

/// Most timers that an HPET has.
pub const TIMERS_MAX: u64 = 32;

/// Most counts until an interrupt: less than half of what 32 bits hold, so that what has passed is told from what is to come. The
/// specification needs no such bound, since a timer compares for equality; QEMU (7.2, `hpet_calculate_diff`) takes the distance as
/// a signed number, and interrupts at once if that is not above zero.
pub const COUNTS_MAX: u64 = i32::MAX as u64;

/// Bytes of the registers of an HPET with all its timers.
pub const BYTES: u64 = TIMERS + TIMERS_MAX * TIMER_BYTES;

/// One timer of an HPET, used by one CPU.
#[derive(Debug)]
pub struct OneShot<B> {
    bus: B,
    hz: u64,
    timer: u64,
    /// Offset of its comparator.
    comparator: u64,
    line: u32,
    /// What the comparator was set to last.
    asked: AtomicU32,
}

impl<B: HpetBus> OneShot<B> {
    /// The first timer that can be wired to a line below `lines`, on the lowest such line; `hz` is the main counter's rate. `None`
    /// if there is none.
    pub fn find(bus: B, hz: u64, lines: u32) -> Option<Self> {
        let last = bus.read(CAPABILITIES) >> 8 & 0x1f;
        let wired = |timer: u64| {
            let routes = bus.read(TIMERS + timer * TIMER_BYTES + ROUTES);
            Some(routes.trailing_zeros()).filter(|&line| line < lines)
        };
        let (timer, line) = (0..=u64::from(last)).find_map(|timer| Some((timer, wired(timer)?)))?;
        Some(Self {
            bus,
            hz,
            timer,
            comparator: TIMERS + timer * TIMER_BYTES + COMPARATOR,
            line,
            asked: AtomicU32::new(0),
        })
    }

    /// The line that it interrupts by: an edge, active high.
    pub const fn line(&self) -> u32 {
        self.line
    }

    const fn register(&self, offset: u64) -> u64 {
        TIMERS + self.timer * TIMER_BYTES + offset
    }

    /// Wires it. It does not interrupt before [`OneShot::start`].
    pub fn prepare(&self) {
        let general = self.bus.read(CONFIGURATION);
        self.bus.write(CONFIGURATION, general & !LEGACY | COUNT);
        let taken = LEVEL | ENABLED | PERIODIC | ROUTE | BY_MESSAGE;
        let kept = self.bus.read(self.register(0)) & !taken;
        let wired = kept | NARROW | self.line << ROUTE_SHIFT;
        self.bus.write(self.register(0), wired);
    }

    /// Counts in so many nanoseconds, rounded up.
    pub fn counts(&self, nanos: u64) -> u64 {
        (u128::from(nanos) * u128::from(self.hz)).div_ceil(1_000_000_000) as u64
    }

    /// Interrupts once, after so many counts: at least one, at most [`COUNTS_MAX`]. In place of what was asked
    /// before.
    pub fn start(&self, counts: u64) {
        self.next(counts.clamp(1, COUNTS_MAX) as u32);
        let configuration = self.bus.read(self.register(0));
        self.bus.write(self.register(0), configuration | ENABLED);
    }

    /// The same of a timer that was started and has interrupted, for who asks for one count at least and [`COUNTS_MAX`] at most: that is
    /// not checked. Says how many counts ago it was to interrupt.
    #[inline]
    pub fn next(&self, counts: u32) -> u32 {
        let now = self.bus.read(COUNTER);
        let late = now.wrapping_sub(self.asked.load(Relaxed));
        let at = now.wrapping_add(counts);
        self.asked.store(at, Relaxed);
        self.bus.write(self.comparator, at);
        late
    }

    /// Interrupts no more. An interrupt that is on its way still comes.
    pub fn stop(&self) {
        let configuration = self.bus.read(self.register(0));
        self.bus.write(self.register(0), configuration & !ENABLED);
    }

    /// Counts since the time that was asked for; `None` if it is still to come.
    pub fn passed(&self) -> Option<u32> {
        let asked = self.asked.load(Relaxed);
        let since = self.bus.read(COUNTER).wrapping_sub(asked);
        (since.cast_signed() >= 0).then_some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;

    /// Reserved bits read as junk, unwired timers have no routes, and it is 32 bits wide.
    struct Fake {
        counter: Cell<u32>,
        registers: RefCell<HashMap<u64, u32>>,
    }

    const JUNK: u32 = 0x8000_0001;

    fn fake(routes: &[u32]) -> Fake {
        let last = routes.len() as u32 - 1;
        let mut registers = HashMap::from([(CAPABILITIES, last << 8), (CONFIGURATION, LEGACY)]);
        for (timer, &routes) in routes.iter().enumerate() {
            let at = TIMERS + timer as u64 * TIMER_BYTES;
            registers.insert(at, JUNK | LEVEL | PERIODIC | BY_MESSAGE | ROUTE);
            registers.insert(at + ROUTES, routes);
        }
        Fake {
            counter: Cell::new(u32::MAX - 10),
            registers: RefCell::new(registers),
        }
    }

    impl HpetBus for &Fake {
        fn read(&self, offset: u64) -> u32 {
            if offset == COUNTER {
                self.counter.set(self.counter.get().wrapping_add(1));
                return self.counter.get();
            }
            self.registers.borrow()[&offset]
        }
        fn write(&self, offset: u64, value: u32) {
            assert_ne!(offset, COUNTER, "the clock of others");
            if offset >= TIMERS && (offset - TIMERS).is_multiple_of(TIMER_BYTES) {
                assert_eq!(value & JUNK, JUNK, "reserved bits are kept");
            }
            self.registers.borrow_mut().insert(offset, value);
        }
    }

    #[test]
    fn the_first_timer_that_reaches_a_line_is_taken() {
        let hpet = fake(&[0, 1 << 30, 0x00ff_0104]);
        let timer = OneShot::find(&hpet, 100_000_000, 24).unwrap();
        assert_eq!((timer.timer, timer.line()), (2, 2));
        assert!(OneShot::find(&fake(&[0, 1 << 30]), 100_000_000, 24).is_none());
    }

    #[test]
    fn it_is_wired_as_an_edge_and_interrupts_only_while_started() {
        let hpet = fake(&[1 << 8]);
        let timer = OneShot::find(&hpet, 100_000_000, 24).unwrap();
        timer.prepare();
        let configuration = || hpet.registers.borrow()[&TIMERS];
        assert_eq!(configuration(), JUNK | NARROW | 8 << ROUTE_SHIFT);
        assert_eq!(hpet.registers.borrow()[&CONFIGURATION], COUNT);
        timer.start(100);
        assert_eq!(configuration() & ENABLED, ENABLED);
        timer.stop();
        assert_eq!(configuration(), JUNK | NARROW | 8 << ROUTE_SHIFT);
    }

    #[test]
    fn a_time_is_counted_over_the_wrap_and_known_to_have_passed() {
        let hpet = fake(&[1 << 8]);
        let timer = OneShot::find(&hpet, 100_000_000, 24).unwrap();
        assert_eq!((timer.counts(1000), timer.counts(1)), (100, 1));
        timer.prepare();
        timer.start(100);
        // Read once to start, at the wrap's last counts.
        let asked = (u32::MAX - 9).wrapping_add(100);
        let comparator = || hpet.registers.borrow()[&(TIMERS + COMPARATOR)];
        assert_eq!((comparator(), timer.passed()), (asked, None));
        hpet.counter.set(asked + 49);
        assert_eq!(timer.passed(), Some(50));
        assert_eq!(timer.next(1), 51);
        assert_eq!(comparator(), asked + 52);
        timer.start(0);
        assert_eq!(comparator(), asked + 53, "never now: that would be missed");
        timer.start(u64::MAX);
        assert_eq!(timer.passed(), None);
    }

    #[test]
    fn no_time_that_is_asked_for_is_taken_for_one_that_has_passed() {
        let hpet = fake(&[1 << 8]);
        let timer = OneShot::find(&hpet, 100_000_000, 24).unwrap();
        timer.prepare();
        for counts in [1, 2, COUNTS_MAX / 2, COUNTS_MAX, COUNTS_MAX + 1, u64::MAX] {
            timer.start(counts);
            let comparator = hpet.registers.borrow()[&(TIMERS + COMPARATOR)];
            // As QEMU takes it, in the count in which the timer was set.
            let distance = comparator.wrapping_sub(hpet.counter.get()).cast_signed();
            assert_eq!(distance as u64, counts.min(COUNTS_MAX), "{counts}");
            assert!(distance > 0, "{counts}");
        }
    }
}
