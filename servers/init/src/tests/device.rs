//! A program that drives a PCI function: what it gets, and what becomes of the function.

use ipc::proto::pci::{self, PciError};
use ipc::proto::system::PciFunction;

use super::*;
use crate::pci::Config;
use crate::pci::fake::{FakeBus, FakeFunction, at};

/// Badge of the driver's handle: the third entry.
const BADGE: u64 = (1 << 32) + 2;
const MASTER: u32 = pci::BUS_MASTER;

fn system() -> SystemConfig {
    let mut config = config();
    config.programs[2] = Program {
        name: "driver".into(),
        image: "bin/driver".into(),
        start: ipc::proto::system::Start::Boot,
        interrupts: vec![4],
        pci: Some(PciFunction {
            vendor: 0x1af4,
            devices: vec![0x1041, 0x1000],
            vectors: 2,
            dma_kib: 64,
        }),
        on_death: OnDeath::Restart,
        ..program("driver")
    };
    config.programs[1].interrupts.clear();
    config
}

/// Runs a test on a system that has booted, on a machine with these functions: init is 1, console 2, the driver 3.
fn on_bus(bus: FakeBus, test: impl FnOnce(&mut Bench<'_>, &Shared)) {
    let bytes = archive(&["bin/init", "bin/console", "bin/driver"].map(|name| (name, image())));
    let machine = FakeMachine::new();
    let ledger = Rc::clone(&machine.0);
    ledger.borrow_mut().bus = bus;
    let init = Supervisor::new(machine, Bootfs::parse(&bytes).unwrap(), system()).unwrap();
    let mut bench = Bench {
        init,
        desk: Desk::default(),
        badge: BADGE,
    };
    bench.init.boot();
    test(&mut bench, &ledger);
    drop(bench);
    assert_eq!(ledger.borrow().open, 0, "a handle was never closed");
}

fn given(ledger: &Shared, pid: u32) -> Vec<(String, Rights)> {
    let mut ledger = ledger.borrow_mut();
    let process = ledger.process(pid);
    let page = StartupPage::read(&process.startup).unwrap();
    let rights = process.given.iter().map(|given| given.rights);
    page.handles()
        .map(|(name, _)| name.to_owned())
        .zip(rights)
        .collect()
}

impl Bench<'_> {
    /// The driver, writing to its function's command register.
    fn command(&mut self, change: impl Fn(u32) -> u32) -> Result<(), CallError<PciError>> {
        let mut client = pci::Client::new(Function(self));
        let command = client.read(&pci::COMMAND)?;
        client.write(&(pci::COMMAND, change(command)))
    }
}

/// The way of a driver's calls about its function.
struct Function<'a, 'b>(&'a mut Bench<'b>);

impl Transport for Function<'_, '_> {
    type Handle = FakeHandle;

    fn call(&mut self, message: &mut Message<FakeHandle>) -> Result<(), Error> {
        let bench = &mut *self.0;
        match pci::dispatch(&mut bench.init, &mut bench.desk, bench.badge, message) {
            Disposition::Reply => Ok(()),
            Disposition::Parked => Err(Error::TimedOut),
        }
    }
}

#[test]
fn a_driver_gets_its_function_and_no_more() {
    on_bus(FakeBus::with(FakeFunction::network_card()), |_, ledger| {
        let given = given(ledger, 3);
        let given: Vec<_> = given
            .iter()
            .map(|(name, rights)| (name.as_str(), *rights))
            .collect();
        let read_write = Rights::READ | Rights::WRITE;
        assert_eq!(
            given[1..given.len() - 1],
            [
                ("irq:4", Rights::MANAGE),
                ("pci", Rights::CALL),
                ("pci:bar4:0", read_write),
                ("pci:vector0", Rights::MANAGE),
                ("pci:vector1", Rights::MANAGE),
                ("pci:dma", read_write),
            ]
        );
        // The line has the first bit; the messages those behind it.
        let ledger = ledger.borrow();
        let data: Vec<_> = ledger.bus.stored[0].1.chunks(4).map(|it| it[2]).collect();
        assert_eq!(data, [0x41, 0x42, 0]);
    });
}

#[test]
fn without_its_function_a_driver_starts_all_the_same() {
    let mut broken = FakeFunction::network_card();
    broken.words[0x9c / 4] = 7;
    for (bus, lines) in [(FakeBus::default(), 0), (FakeBus::with(broken), 1)] {
        on_bus(bus, |bench, ledger| {
            let given = given(ledger, 3);
            assert!(given.iter().all(|(name, _)| !name.starts_with("pci")));
            assert!(ledger.borrow_mut().process(3).started);
            assert_eq!(ledger.borrow().log.len(), lines);
            let gone = Err(CallError::Service(PciError::Gone));
            assert_eq!(bench.command(|command| command), gone);
        });
    }
}

#[test]
fn a_wired_interrupt_is_given_unless_somebody_has_it() {
    for taken in [false, true] {
        let mut card = FakeFunction::network_card();
        card.words[0x98 / 4] &= !0xff;
        on_bus(FakeBus::with(card), |bench, ledger| {
            ledger.borrow_mut().taken_line = taken.then_some(11);
            ledger.borrow_mut().end(3, ExitReason::Killed, 0);
            bench.poll();
            ledger.borrow_mut().now += restart::FIRST_DELAY;
            bench.poll();
            assert!(ledger.borrow_mut().process(4).started);
            let given = given(ledger, 4);
            let has = |name: &str| given.iter().any(|(given, _)| given == name);
            assert_eq!(has("pci:line"), !taken);
            assert!(has("pci:dma") && !has("pci:vector0"));
        });
    }
}

#[test]
fn the_function_of_a_dead_driver_is_quiet_until_the_next_one_wants_it() {
    on_bus(
        FakeBus::with(FakeFunction::network_card()),
        |bench, ledger| {
            assert_eq!(ledger.borrow().bus.command() & MASTER, 0);
            bench.command(|command| command | MASTER).unwrap();
            assert_ne!(ledger.borrow().bus.command() & MASTER, 0);
            ledger.borrow_mut().end(3, ExitReason::Faulted, 0);
            bench.poll();
            assert_eq!(ledger.borrow().bus.command() & MASTER, 0);
            let msix = |ledger: &Shared| ledger.borrow_mut().bus.read_config(at(3), 0x98) >> 30;
            assert_eq!(msix(ledger), 0b01);
            ledger.borrow_mut().now += restart::FIRST_DELAY;
            bench.poll();
            assert!(ledger.borrow_mut().process(4).started);
            assert_eq!(msix(ledger), 0b10);
            assert_eq!(ledger.borrow().bus.command() & MASTER, 0);
            assert_eq!(given(ledger, 4).len(), given(ledger, 3).len().max(8));
            bench.command(|command| command | MASTER).unwrap();
        },
    );
}

#[test]
fn no_other_badge_reaches_the_function() {
    on_bus(FakeBus::with(FakeFunction::network_card()), |bench, _| {
        for badge in [0, 2, 3, BADGE - 1, BADGE + 1, u64::MAX] {
            bench.badge = badge;
            let gone = Err(CallError::Service(PciError::Gone));
            assert_eq!(bench.command(|command| command | MASTER), gone);
        }
        bench.badge = BADGE;
        let refused = Err(CallError::Service(PciError::NotWritable));
        assert_eq!(bench.command(|command| command ^ 2), refused);
    });
}

/// Whatever fails when the driver is launched, its function masters nothing, and the driver is tried again.
#[test]
fn a_launch_that_fails_leaves_the_function_quiet() {
    on_bus(
        FakeBus::with(FakeFunction::network_card()),
        |bench, ledger| {
            let open = ledger.borrow().open;
            let mut failures = 0;
            loop {
                let pid = ledger.borrow().processes.len() as u32;
                if failures == 0 {
                    bench.command(|command| command | MASTER).unwrap();
                    ledger.borrow_mut().end(pid, ExitReason::Killed, 0);
                    bench.poll();
                }
                let next = ledger.borrow().operations + failures;
                ledger.borrow_mut().fail_at = Some(next);
                ledger.borrow_mut().now += restart::NO_ROOM_DELAY;
                bench.poll();
                ledger.borrow_mut().fail_at = None;
                assert_eq!(ledger.borrow().bus.command() & MASTER, 0);
                if bench.names().len() == 3 {
                    break;
                }
                failures += 1;
            }
            assert!(failures > 20, "only {failures} steps can fail");
            assert_eq!(ledger.borrow().open, open);
        },
    );
}
