//! Interrupt lines that programs have taken: an interrupt masks its line and signals bits; the program unmasks it when it has
//! served the device.

use crate::base::pool::Ref;
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::{Notification, Object};
use crate::sched::load::add;
use crate::trace::Event;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::trace::{InterruptKind, TraceKind};

/// Who takes which line.
#[derive(Debug)]
pub struct Lines(&'static mut [Option<Line>]);

/// A line that is taken.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Counted.
    pub(crate) notification: Ref<Notification>,
    pub(crate) bits: u64,
    /// Process that took it.
    pub(crate) pid: u32,
    /// Process that acknowledged it last; 0 if none has.
    pub(crate) driver: u32,
    /// Handles to it.
    pub(crate) handles: u32,
}

impl Lines {
    /// A place for each line.
    #[must_use]
    pub const fn new(places: &'static mut [Option<Line>]) -> Self {
        Self(places)
    }
    /// The place of a line, if it can be taken at all.
    pub(crate) fn place(&mut self, line: u32) -> Option<&mut Option<Line>> {
        self.0.get_mut(line as usize)
    }
    /// The first line from this one on that nobody has taken.
    pub(crate) fn free(&self, from: u32) -> Option<u32> {
        (from..)
            .zip(self.0.iter().skip(from as usize))
            .find_map(|(line, taken)| taken.is_none().then_some(line))
    }
}

impl<H: Hardware> Kernel<H> {
    /// Something interrupted this CPU: what every interrupt begins with. `line` is the one that it came by, or 0.
    pub fn interrupted(&self, cpu: &CpuState, kind: InterruptKind, line: u32) {
        self.entered(cpu);
        add(&cpu.load.interrupts[kind as usize], 1);
        if kind == InterruptKind::Line
            && let Some(count) = self.line_counts.get(line as usize)
        {
            count.fetch_add(1, Relaxed);
        }
        if self.is_tracing() {
            let event = cpu
                .current()
                .map_or(Event::new(TraceKind::Interrupt), |id| {
                    self.event(TraceKind::Interrupt, id)
                });
            self.record(cpu, event.detail(kind as u32).words(line.into(), 0));
        }
    }

    /// A device interrupt is to be delivered.
    pub fn interrupt(&self, cpu: &CpuState, line: u32) {
        self.entered(cpu);
        self.hw.mask(line);
        let taken = self.lines.lock(&cpu.token).place(line).copied().flatten();
        if let Some(Line {
            notification, bits, ..
        }) = taken
        {
            self.set_bits(cpu, notification, bits);
        }
    }

    /// Counts one more handle to a line.
    pub(crate) fn retain_line(&self, cpu: &CpuState, line: u32) {
        if let Some(Some(taken)) = self.lines.lock(&cpu.token).place(line) {
            taken.handles += 1;
        }
    }

    /// Gives back a handle to a line; with the last the line is masked and free.
    pub(crate) fn release_line(&self, cpu: &CpuState, line: u32) {
        let gone = {
            let mut lines = self.lines.lock(&cpu.token);
            let Some(place) = lines.place(line) else {
                return;
            };
            match place {
                Some(taken) if taken.handles > 1 => {
                    taken.handles -= 1;
                    None
                }
                _ => {
                    self.hw.mask(line);
                    place.take()
                }
            }
        };
        if let Some(Line { notification, .. }) = gone {
            self.release(cpu, &Grant::keeping(Object::Notification(notification)));
        }
    }
}
