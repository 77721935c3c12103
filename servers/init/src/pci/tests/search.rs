//! Which functions are found.

use crate::pci::fake::{FakeBus, FakeFunction, at};
use crate::pci::{Address, BRIDGE, bus};

/// A bridge that leads to a bus.
fn bridge(to: u8) -> FakeFunction {
    let mut bridge = FakeFunction::new(0x8086, 0x244e);
    bridge.words[2] = 0x0604_0000;
    bridge.words[3] = 1 << 16;
    bridge.words[usize::from(BRIDGE / 4)] = u32::from(to) << 8;
    bridge
}

fn find(bus: &mut FakeBus, vendor: u16) -> Option<Address> {
    bus::find(bus, |its, _| its == vendor)
}

#[test]
fn a_machine_without_functions_has_none() {
    let mut bus = FakeBus::default();
    assert_eq!(find(&mut bus, 0x1af4), None);
    assert_eq!(
        bus.reads, 32,
        "only the first function of each device is asked for"
    );
}

#[test]
fn zeros_are_no_function() {
    let mut bus = FakeBus::default();
    bus.functions.insert(at(3), FakeFunction::new(0, 0));
    assert_eq!(find(&mut bus, 0), None);
}

#[test]
fn further_functions_are_looked_for_only_where_the_first_says_so() {
    let second = Address {
        function: 5,
        ..at(3)
    };
    for (several, found) in [(0, None), (1 << 23, Some(second))] {
        let mut bus = FakeBus::with(FakeFunction::new(1, 1));
        bus.functions.get_mut(&at(3)).unwrap().words[3] = several;
        bus.functions.insert(second, FakeFunction::new(0x1af4, 1));
        assert_eq!(find(&mut bus, 0x1af4), found);
    }
}

#[test]
fn bridges_are_followed_and_each_bus_looked_at_once() {
    let mut bus = FakeBus::with(bridge(7));
    let behind = |bus, device| Address { bus, ..at(device) };
    bus.functions.insert(behind(7, 1), bridge(9));
    // Those lead back.
    bus.functions.insert(behind(7, 2), bridge(7));
    bus.functions.insert(behind(9, 0), bridge(0));
    assert_eq!(find(&mut bus, 0x1af4), None);
    assert!(bus.reads < 150, "{} reads", bus.reads);
    let card = behind(9, 31);
    bus.functions.insert(card, FakeFunction::network_card());
    assert_eq!(find(&mut bus, 0x1af4), Some(card));
}

#[test]
fn bridges_to_every_bus_end() {
    let mut bus = FakeBus::default();
    for number in 0..=255_u8 {
        let place = Address {
            bus: number,
            ..at(0)
        };
        bus.functions.insert(place, bridge(number.wrapping_add(1)));
    }
    assert_eq!(find(&mut bus, 0x1af4), None);
    assert!(bus.reads < 256 * 40, "{} reads", bus.reads);
}

#[test]
fn each_function_of_the_host_bridge_is_of_a_bus() {
    let mut bus = FakeBus::with(FakeFunction::new(1, 1));
    bus.functions.get_mut(&at(0)).unwrap().words[3] = 1 << 23;
    let mut second = FakeFunction::new(0x8086, 1);
    second.words[2] = 0x0600_0000;
    let place = Address {
        function: 4,
        ..at(0)
    };
    bus.functions.insert(place, second);
    let card = Address { bus: 4, ..at(2) };
    bus.functions.insert(card, FakeFunction::network_card());
    assert_eq!(find(&mut bus, 0x1af4), Some(card));
}
