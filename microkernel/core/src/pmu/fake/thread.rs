//! The hostile monitor as the sampling path reaches it: one for each thread, because each plays a CPU.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;

use super::FakeMonitor;
use crate::pmu::bus::MonitorBus;
use crate::pmu::msr::Msr;

thread_local! {
    static INSTALLED: RefCell<Option<Rc<FakeMonitor>>> = const { RefCell::new(None) };
    static BETWEEN: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Makes this the monitor of the CPU that this thread plays; `between` happens before and after each access of the kernel's to it.
pub fn install(monitor: Rc<FakeMonitor>, between: fn()) {
    INSTALLED.set(Some(monitor));
    BETWEEN.set(Some(between));
}

/// What happens between two accesses.
pub fn pause() {
    let between = BETWEEN.get().expect("no counter is offered");
    between();
}

/// The monitor of the CPU that this thread plays, as the sampling path reaches it.
pub struct ThreadMonitor;

impl ThreadMonitor {
    fn access<T>(&self, access: impl FnOnce(&FakeMonitor) -> T) -> T {
        let monitor = INSTALLED.with_borrow(|monitor| monitor.clone());
        pause();
        let result = access(&monitor.expect("no counter is offered"));
        pause();
        result
    }
}

impl MonitorBus for ThreadMonitor {
    type Fault = Infallible;

    fn read(&self, msr: Msr) -> Result<u64, Infallible> {
        let read = self.access(|monitor| monitor.read_now(msr));
        Ok(read.expect("nothing faults in the sampling path"))
    }
    fn write(&self, msr: Msr, value: u64) -> Result<(), Infallible> {
        let written = self.access(|monitor| monitor.write_now(msr, value));
        written.expect("nothing faults in the sampling path");
        Ok(())
    }
    fn deliver(&self, unmasked: bool) {
        self.access(|monitor| monitor.deliver_now(unmasked));
    }
}
