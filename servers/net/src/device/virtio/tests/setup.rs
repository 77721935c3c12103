//! From reset to working, and every way not to get there.

use ipc::proto::net::Link;
use ipc::proto::pci::PciError;
use smoltcp::wire::EthernetAddress;

use super::super::layout::{Layout, LayoutError, Structure, Window};
use super::*;
use crate::device::Nic;

#[test]
fn a_device_is_set_up_with_what_it_needs_and_no_more() {
    let (device, card) = working();
    assert_eq!(
        card.mac(),
        EthernetAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56])
    );
    assert_eq!(card.link(), Link::Up);
    let device = device.0.borrow();
    assert_eq!(device.accepted, 1 << 5 | 1 << 16 | 1 << 32);
    assert_eq!(device.status, 0b1111);
    assert_eq!(device.config_vector, 1);
    assert!(device.queues.iter().all(|queue| queue.enabled == 1));
}

#[test]
fn a_cable_that_is_pulled_is_seen() {
    let (device, card) = working();
    device.0.borrow_mut().own[6] = 0;
    assert_eq!(card.link(), Link::Down);
}

#[test]
fn a_device_that_cannot_be_set_up_is_not_driven() {
    let fault = |change: &dyn Fn(&Shared)| {
        let device = Shared::new();
        change(&device);
        open(&device, MESSAGES).err()
    };
    let stuck = |device: &Shared| device.0.borrow_mut().status_stuck = 4;
    assert_eq!(fault(&stuck), Some(Fault::Reset));
    let legacy = |device: &Shared| device.0.borrow_mut().features &= !(1 << 32);
    assert_eq!(fault(&legacy), Some(Fault::Legacy));
    let unsure = |device: &Shared| device.0.borrow_mut().status_refused = 8;
    assert_eq!(fault(&unsure), Some(Fault::Features));
    let restless = |device: &Shared| device.0.borrow_mut().is_restless = true;
    assert_eq!(fault(&restless), Some(Fault::Restless));
    let deaf = |device: &Shared| device.0.borrow_mut().refuses_vectors = true;
    assert_eq!(fault(&deaf), Some(Fault::Interrupt));
    for queue in 0..2 {
        let short = |device: &Shared| device.0.borrow_mut().queues[queue].size = N as u16 / 2;
        assert_eq!(fault(&short), Some(Fault::Queue(queue as u16)));
        let away = |device: &Shared| device.0.borrow_mut().notify[queue] = 2;
        assert_eq!(fault(&away), Some(Fault::Queue(queue as u16)));
        let far = |device: &Shared| device.0.borrow_mut().notify[queue] = u16::MAX;
        assert_eq!(fault(&far), Some(Fault::Queue(queue as u16)));
    }
    assert_eq!(fault(&|_| {}), None);
}

/// A configuration with these capabilities, each of 20 bytes, and the place behind the last.
fn configuration(list: &[[u32; 5]]) -> [u32; 64] {
    let mut words = [0; 64];
    words[1] = 1 << 20;
    words[0x34 / 4] = 0x40;
    for (index, capability) in list.iter().enumerate() {
        let first = 16 + index * 5;
        words[first..first + 5].copy_from_slice(capability);
        let next = if index + 1 < list.len() {
            (first as u32 + 5) * 4
        } else {
            0
        };
        words[first] |= next << 8;
    }
    words
}

/// A capability: kind, base address register, offset, bytes.
const fn capability(kind: u32, bar: u32, offset: u32, bytes: u32) -> [u32; 5] {
    [0x0014_0009 | kind << 24, bar, offset, bytes, 4]
}

const GOOD: [[u32; 5]; 4] = [
    capability(1, 4, 0, 0x1000),
    capability(2, 4, 0x3000, 0x1000),
    capability(3, 4, 0x1000, 0x1000),
    capability(4, 4, 0x2000, 0x1000),
];

fn read(words: &[u32; 64]) -> Result<Layout, Fault> {
    Layout::read(|offset| Ok(words[usize::from(offset / 4)]))
}

#[test]
fn capabilities_say_where_the_registers_are() {
    let layout = read(&configuration(&GOOD)).unwrap();
    let window = |offset| Window {
        bar: 4,
        offset,
        bytes: 0x1000,
    };
    assert_eq!(layout.common, window(0));
    assert_eq!((layout.notify, layout.notify_step), (window(0x3000), 4));
    assert_eq!(
        (layout.interrupt, layout.own),
        (window(0x1000), window(0x2000))
    );
    // Of two that say the same, the first counts.
    let twice = [GOOD.as_slice(), &[capability(1, 1, 0x100, 0x38)]].concat();
    assert_eq!(read(&configuration(&twice)), Ok(layout));
}

#[test]
fn what_is_missing_or_makes_no_sense_is_named() {
    let names = [
        Structure::Common,
        Structure::Notify,
        Structure::Interrupt,
        Structure::Own,
    ];
    for (index, &name) in names.iter().enumerate() {
        let mut list = GOOD;
        list[index][0] |= 7 << 24;
        let missing = Err(Fault::Layout(LayoutError::Missing(name)));
        assert_eq!(read(&configuration(&list)), missing);
        let mut list = GOOD;
        list[index][3] = 0;
        let small = Err(Fault::Layout(LayoutError::TooSmall(name)));
        assert_eq!(read(&configuration(&list)), small);
        list[index][2..4].copy_from_slice(&[0xffff_f000, 0x2000]);
        assert_eq!(read(&configuration(&list)), small);
    }
    let mut none = configuration(&GOOD);
    none[1] = 0;
    let missing = Err(Fault::Layout(LayoutError::Missing(Structure::Common)));
    assert_eq!(read(&none), missing);
    let gone = Layout::read(|_| Err(PciError::Gone));
    assert_eq!(gone, Err(Fault::Configuration(PciError::Gone)));
}

proptest::proptest! {
    #[test]
    fn any_configuration_is_read_to_an_end(words in proptest::array::uniform32(proptest::num::u32::ANY)) {
        let mut all = configuration(&GOOD);
        all[32..].copy_from_slice(&words);
        all[0x34 / 4] = words[0];
        let mut reads = 0;
        let _ = Layout::read(|offset| {
            reads += 1;
            Ok(all[usize::from(offset / 4)])
        });
        proptest::prop_assert!(reads < 100, "{reads} reads");
    }
}
