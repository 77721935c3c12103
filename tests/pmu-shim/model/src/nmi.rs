//! The NMIs of a CPU: one waits at most, and while a handler runs none is taken, until its IRET is done (SDM volume 3A,
//! "Handling Multiple NMIs").
//!
//! The hypervisor instructions that the shim uses tell of an IRET only before it is executed (AMD64 manual volume 2, "Instruction
//! Intercepts"), so that one instruction is stepped then.

/// How far the handler is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Handler {
    /// None runs.
    #[default]
    Idle,
    /// One runs; the next IRET is its end.
    Runs,
    /// Its IRET is about to be executed.
    Leaves,
}

/// What a CPU has to be told when it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// It takes an NMI.
    pub inject: bool,
    /// It is stopped at an IRET.
    pub stop_at_iret: bool,
    /// It is stopped after one instruction.
    pub step: bool,
}

/// The NMIs of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nmis {
    waits: bool,
    handler: Handler,
}

impl Nmis {
    /// One came. If another waits, they are one.
    pub const fn raise(&mut self) {
        self.waits = true;
    }

    /// Whether one would be taken.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.waits && self.handler == Handler::Idle
    }

    /// The CPU goes on. If it is `busy` with another event, an NMI waits.
    pub fn enter(&mut self, busy: bool) -> Entry {
        let inject = self.is_due() && !busy;
        if inject {
            self.waits = false;
            self.handler = Handler::Runs;
        }
        Entry {
            inject,
            stop_at_iret: self.handler == Handler::Runs,
            step: self.handler == Handler::Leaves,
        }
    }

    /// It stopped at an IRET.
    pub const fn at_iret(&mut self) {
        self.handler = Handler::Leaves;
    }

    /// It has done one instruction.
    pub const fn stepped(&mut self) {
        self.handler = Handler::Idle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Entry = Entry {
        inject: false,
        stop_at_iret: false,
        step: false,
    };

    #[test]
    fn one_is_taken_and_the_next_waits_for_the_end_of_the_iret() {
        let mut nmis = Nmis::default();
        assert_eq!(nmis.enter(false), NOTHING);
        nmis.raise();
        let runs = Entry {
            stop_at_iret: true,
            ..NOTHING
        };
        assert_eq!(
            nmis.enter(false),
            Entry {
                inject: true,
                ..runs
            }
        );
        nmis.raise();
        nmis.raise();
        assert_eq!(nmis.enter(false), runs);
        nmis.at_iret();
        let leaves = Entry {
            step: true,
            ..NOTHING
        };
        assert_eq!(nmis.enter(false), leaves);
        // Something else stops it before the IRET is done.
        assert_eq!(nmis.enter(false), leaves);
        nmis.stepped();
        assert_eq!(
            nmis.enter(false),
            Entry {
                inject: true,
                ..runs
            }
        );
        nmis.at_iret();
        nmis.stepped();
        assert_eq!(nmis.enter(false), NOTHING);
    }

    #[test]
    fn it_waits_for_another_event() {
        let mut nmis = Nmis::default();
        nmis.raise();
        assert_eq!(nmis.enter(true), NOTHING);
        assert!(nmis.is_due());
        assert!(nmis.enter(false).inject);
    }
}
