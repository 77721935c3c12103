//! The figures that the guest measures, each with the name by which the guest, the table and the budgets know it.

/// One figure, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// A system call that does nothing.
    Null,
    /// Call and reply between two processes.
    Call,
    /// The same with four words each way.
    CallWords,
    /// The same with a deadline.
    CallDeadline,
    /// The same with 256 bytes to the server.
    CallPayload,
    /// The same with a handle to the server.
    CallHandle,
    /// A signal for which nobody waits.
    Signal,
    /// A signal to a waiter of higher priority, until it waits again.
    SignalWake,
    /// Two threads that yield to each other, once there and back.
    Yield,
    /// A timer tick while no profile is on.
    Tick,
    /// A timer tick that takes a sample of eight frames.
    TickSample,
    /// A sample of eight frames by NMI.
    NmiSample,
    /// What each further address space adds to that.
    NmiClient,
    /// A sample of eight frames by a performance counter. Not one of [`Figure::ALL`]: there is one for each kind of counter.
    CounterSample,
    /// A datagram of 64 bytes that a program answers. Not one of [`Figure::ALL`]: somebody outside must send it.
    Echo,
    /// The longest of the kernel's steps that free a large object.
    LongPath,
    /// The same while samples are taken as fast as they can be asked for.
    LongPathSampled,
    /// A report for which every image must be read first.
    ReportCold,
    /// The same with every image read.
    ReportWarm,
    /// A program, from the request to start it to the answer that it has ended.
    Process,
    /// The longest time with interrupts off since boot.
    LongestEntry,
}

impl Figure {
    /// Every figure of a machine without counters, in the order of the table.
    pub const ALL: [Self; 19] = [
        Self::Null,
        Self::Call,
        Self::CallWords,
        Self::CallDeadline,
        Self::CallPayload,
        Self::CallHandle,
        Self::Signal,
        Self::SignalWake,
        Self::Yield,
        Self::Tick,
        Self::TickSample,
        Self::NmiSample,
        Self::NmiClient,
        Self::ReportCold,
        Self::ReportWarm,
        Self::Process,
        Self::LongPath,
        Self::LongPathSampled,
        Self::LongestEntry,
    ];

    /// Its name, which never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Call => "call",
            Self::CallWords => "call-4-words",
            Self::CallDeadline => "call-deadline",
            Self::CallPayload => "call-256-bytes",
            Self::CallHandle => "call-handle",
            Self::Signal => "signal",
            Self::SignalWake => "signal-wake",
            Self::Yield => "yield",
            Self::Tick => "tick",
            Self::TickSample => "tick-sample",
            Self::NmiSample => "nmi-sample",
            Self::NmiClient => "nmi-client",
            Self::CounterSample => "counter-sample",
            Self::Echo => "answer-64-bytes",
            Self::LongPath => "long-path",
            Self::LongPathSampled => "long-path-sampled",
            Self::ReportCold => "report-cold",
            Self::ReportWarm => "report-warm",
            Self::Process => "process",
            Self::LongestEntry => "longest-entry",
        }
    }

    /// What is measured, for the table.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Null => "null system call",
            Self::Call => "call, reply, no words",
            Self::CallWords => "call, reply, 4 words",
            Self::CallDeadline => "call, reply, deadline",
            Self::CallPayload => "call, reply, 256 bytes",
            Self::CallHandle => "call, reply, a handle",
            Self::Signal => "signal, nobody waits",
            Self::SignalWake => "signal, wake, wait, back",
            Self::Yield => "yield, there and back",
            Self::Tick => "tick, no profile",
            Self::TickSample => "tick, sample of 8 frames",
            Self::NmiSample => "NMI, sample of 8 frames",
            Self::NmiClient => "NMI, each client",
            Self::CounterSample => "counter, sample of 8 frames",
            Self::Echo => "UDP echo, 64 bytes",
            Self::LongPath => "a long kernel path",
            Self::LongPathSampled => "the same in a storm",
            Self::ReportCold => "report, symbols cold",
            Self::ReportWarm => "report, symbols warm",
            Self::Process => "process, start to end",
            Self::LongestEntry => "longest interrupts-off",
        }
    }

    /// What others need for it, measured the same way.
    #[must_use]
    pub const fn peer(self) -> Option<&'static str> {
        match self {
            Self::Null => Some("seL4 91"),
            Self::Call => Some("seL4 415"),
            Self::CallWords => Some("seL4 457"),
            Self::Signal => Some("seL4 331"),
            Self::SignalWake => Some("seL4 860"),
            Self::Yield => Some("seL4 495"),
            Self::TickSample => Some("Linux 2,742-4,283"),
            Self::ReportCold | Self::ReportWarm => Some("perf 725,000,000"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, figure) in Figure::ALL.iter().enumerate() {
            let mut others = Figure::ALL[..index].iter();
            assert!(others.all(|other| other.name() != figure.name()));
        }
    }
}
