//! The console against the hostile UART: nothing is lost that the device did not lose, and nothing waits for ever.

use ipc::abi::Error;
use ipc::proto::stream::{self, CHUNK_MAX, Chunk, Flush, Read, Write};
use ipc::proto::{Disposition, Message, Operation, Responder};
use proptest::prelude::*;

use crate::driver::{Console, PARKED_MAX};
use crate::fake::Shared;
use crate::registers::{Register, Registers};
use crate::uart::{Absent, Counters, RECEIVE_BURST, Uart};

/// Remembers the answers to parked calls, which it knows by the number of the call. Callers in `dead` are gone.
#[derive(Default)]
struct Desk {
    serving: u32,
    answered: Vec<(u32, Message<()>)>,
    dead: Vec<u32>,
}

impl Responder for Desk {
    type Handle = ();
    type Parked = u32;
    fn park(&mut self) -> Result<u32, Error> {
        Ok(self.serving)
    }
    fn answer(&mut self, parked: u32, message: &mut Message<()>) -> Result<(), Error> {
        if self.dead.contains(&parked) {
            return Err(Error::PeerDied);
        }
        self.answered.push((parked, std::mem::take(message)));
        Ok(())
    }
}

struct Bench {
    device: Shared,
    console: Console<Shared, Desk>,
    desk: Desk,
    writes: Vec<u32>,
    reads: Vec<(u32, Vec<u8>)>,
    /// Bytes that arrive after an interrupt was served and before it is acknowledged.
    late: Vec<u8>,
}

impl Bench {
    fn new(depth: usize) -> Self {
        Self::with(Shared::new(depth))
    }
    fn with(device: Shared) -> Self {
        let uart = Uart::start(device.clone()).expect("the fake is a UART");
        Self {
            console: Console::new(uart),
            device,
            desk: Desk::default(),
            writes: Vec::new(),
            reads: Vec::new(),
            late: Vec::new(),
        }
    }
    /// Makes call number `call`; `false` if it was refused.
    fn call<O: Operation>(&mut self, call: u32, badge: u64, request: &O::Request) -> bool {
        let mut message = Message::new();
        message.put(O::NUMBER, request).expect("it fits");
        self.desk.serving = call;
        let disposition = stream::dispatch(&mut self.console, &mut self.desk, badge, &mut message);
        let answered = disposition == Disposition::Reply;
        if answered && message.op == 0 {
            self.note(O::NUMBER, call, &message);
        }
        self.collect();
        !answered || message.op == 0
    }
    fn note(&mut self, operation: u16, call: u32, message: &Message<()>) {
        if operation != Read::NUMBER {
            self.writes.push(call);
        } else {
            let bytes: Chunk = message.get().expect("a chunk");
            self.reads.push((call, bytes.to_vec()));
        }
    }
    /// Sorts what was answered late: the answer to a write or a flush is empty, that to a read never.
    fn collect(&mut self) {
        for (call, message) in std::mem::take(&mut self.desk.answered) {
            let operation = if message.bytes.is_empty() {
                Write::NUMBER
            } else {
                Read::NUMBER
            };
            self.note(operation, call, &message);
        }
    }
    fn write(&mut self, call: u32, bytes: &[u8]) -> bool {
        self.call::<Write>(call, 0, &Chunk::try_from(bytes).expect("a chunk"))
    }
    fn read(&mut self, call: u32, max: u16) -> bool {
        self.call::<Read>(call, 0, &max)
    }
    /// What main does when the interrupt's bit arrives.
    fn serve_interrupt(&mut self) -> bool {
        let taken = self.device.take_interrupt();
        if taken {
            self.console.interrupt(&mut self.desk);
            for byte in self.late.drain(..) {
                self.device.arrive(byte);
            }
            self.device.acknowledge();
            self.console.rearm();
            self.collect();
        }
        taken
    }
    fn watchdog(&mut self) {
        self.console.watchdog(&mut self.desk);
        self.collect();
    }
    /// Lets time pass until nothing moves.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.device.carry();
            if !self.serve_interrupt() {
                if self.console.watch().is_none() {
                    return;
                }
                self.watchdog();
            }
        }
        panic!("the console never came to rest");
    }
    fn sent(&self) -> Vec<u8> {
        self.device.0.borrow().sent.clone()
    }
    fn input(&self) -> Vec<u8> {
        self.reads.iter().flat_map(|(_, b)| b.clone()).collect()
    }
}

/// What `bytes` look like on the line.
fn on_the_line(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|&b| if b == b'\n' { vec![b'\r', b] } else { vec![b] })
        .collect()
}

#[test]
fn nothing_at_the_ports_is_said_to_be_absent() {
    let device = Shared::new(16);
    device.0.borrow_mut().absent = true;
    assert_eq!(Uart::start(device).err(), Some(Absent));
}

#[test]
fn counters_name_what_was_lost() {
    let counters = Counters {
        overruns: 2,
        lost_interrupts: 1,
        ..Counters::default()
    };
    assert_eq!(counters.to_string(), "2 overruns, 1 lost interrupts");
}

#[test]
fn line_feeds_get_a_return() {
    let mut bench = Bench::new(16);
    assert!(bench.write(1, b"a\n\nb\r\n"));
    bench.settle();
    assert_eq!(bench.sent(), b"a\r\n\r\nb\r\r\n");
    assert_eq!(bench.writes, [1]);
}

#[test]
fn a_reader_waits_and_gets_several_bytes_at_once() {
    let mut bench = Bench::new(16);
    assert!(bench.read(1, 64));
    assert!(bench.reads.is_empty());
    for byte in *b"hello" {
        bench.device.arrive(byte);
    }
    bench.settle();
    assert_eq!(bench.reads, [(1, b"hello".to_vec())]);
    for byte in *b"world" {
        bench.device.arrive(byte);
    }
    bench.settle();
    assert!(bench.read(2, 3) && bench.read(3, 64));
    assert_eq!(
        bench.reads[1..],
        [(2, b"wor".to_vec()), (3, b"ld".to_vec())]
    );
}

#[test]
fn bytes_of_a_dead_reader_go_to_the_next() {
    let mut bench = Bench::new(16);
    bench.desk.dead.push(1);
    assert!(bench.read(1, 64) && bench.read(2, 64));
    bench.device.arrive(b'x');
    bench.settle();
    assert_eq!(bench.reads, [(2, vec![b'x'])]);
}

#[test]
fn a_closed_badge_takes_its_readers_along() {
    let mut bench = Bench::new(16);
    assert!(bench.call::<Read>(1, 7, &8) && bench.call::<Read>(2, 8, &8));
    bench.console.closed(7);
    bench.device.arrive(b'x');
    bench.settle();
    assert_eq!(bench.reads, [(2, vec![b'x'])]);
}

#[test]
fn writers_are_parked_in_order_and_then_refused() {
    let mut bench = Bench::new(1);
    bench.device.0.borrow_mut().stuck_transmitter = true;
    let chunk = [b'\n'; CHUNK_MAX];
    let taken = (0..100)
        .take_while(|&call| bench.write(call, &chunk))
        .count();
    let accepted = bench.writes.len();
    assert_eq!(taken, accepted + PARKED_MAX);
    assert!(accepted >= 1 && bench.console.watch().is_some());
    bench.device.0.borrow_mut().stuck_transmitter = false;
    bench.settle();
    assert_eq!(bench.writes, (0..taken as u32).collect::<Vec<_>>());
    assert_eq!(bench.sent().len(), taken * CHUNK_MAX * 2);
}

#[test]
fn a_flush_is_answered_when_the_last_byte_has_left() {
    let mut bench = Bench::new(16);
    assert!(bench.call::<Flush>(1, 0, &()));
    assert_eq!(bench.writes, [1], "nothing to wait for");
    bench.write(2, b"last words");
    assert!(bench.call::<Flush>(3, 0, &()));
    for _ in 0..3 {
        bench.watchdog();
        assert_eq!(bench.writes, [1, 2], "the bytes are in the device still");
    }
    bench.device.carry();
    bench.watchdog();
    assert_eq!(bench.writes, [1, 2, 3]);
    assert_eq!(bench.console.watch(), None);
}

#[test]
fn a_stuck_transmitter_is_watched_ever_less_often() {
    let mut bench = Bench::new(16);
    bench.device.0.borrow_mut().stuck_transmitter = true;
    bench.write(1, b"x");
    let mut waits = Vec::new();
    for _ in 0..10 {
        waits.push(bench.console.watch().expect("output is pending"));
        bench.watchdog();
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!((waits[0], waits[9]), (20_000_000, 1_280_000_000));
    bench.device.0.borrow_mut().stuck_transmitter = false;
    bench.settle();
    assert_eq!(bench.sent(), b"x");
}

#[test]
fn lost_transmitter_interrupts_are_made_up_for_and_counted() {
    let mut bench = Bench::new(16);
    bench.device.0.borrow_mut().lose_every = 2;
    let text = [b'z'; 500];
    assert!(bench.write(1, &text));
    bench.settle();
    assert_eq!(bench.sent(), text);
    assert!(bench.console.counters().lost_interrupts > 0);
}

#[test]
fn a_stuck_receiver_takes_bounded_work_and_is_counted() {
    let mut bench = Bench::new(16);
    bench.device.0.borrow_mut().stuck_receiver = true;
    bench.read(1, 1000);
    bench.device.arrive(b'x');
    assert!(bench.serve_interrupt());
    assert_eq!(bench.input().len(), RECEIVE_BURST);
    assert_eq!(bench.console.counters().long_bursts, 1);
}

#[test]
fn with_no_reader_the_device_holds_its_peer_off_and_then_overruns() {
    let mut bench = Bench::new(16);
    let mut held = 0;
    while bench.device.room() > 0 {
        bench.device.arrive(held as u8);
        bench.serve_interrupt();
        held += 1;
        assert!(held < 10_000, "bounded");
    }
    bench.device.arrive(b'!');
    let mut got = 0;
    while got < held {
        bench.read(1, 100);
        bench.settle();
        assert!(bench.input().len() > got, "bytes remain");
        got = bench.input().len();
    }
    let expected: Vec<u8> = (0..held).map(|n| n as u8).collect();
    assert_eq!(bench.input(), expected);
    assert_eq!(bench.console.counters().overruns, 1);
}

#[test]
fn an_edge_that_comes_while_the_line_is_masked_is_not_missed() {
    let mut bench = Bench::new(16);
    bench.read(1, 1);
    bench.device.arrive(b'a');
    bench.late = b"b".to_vec();
    bench.settle();
    bench.read(2, 1);
    assert_eq!(bench.input(), b"ab");
}

#[test]
fn what_was_sent_before_the_console_started_is_not_lost() {
    let device = Shared::new(16);
    device.arrive(b'a');
    let mut bench = Bench::with(device.clone());
    bench.read(1, 8);
    // The next byte of a script comes as soon as there is room for it.
    for byte in *b"bc" {
        assert!(bench.serve_interrupt());
        assert_eq!(device.room(), 1, "the FIFOs are still off");
        bench.device.arrive(byte);
        bench.read(2, 8);
    }
    bench.settle();
    assert_eq!(bench.input(), b"abc");
    assert_eq!(device.room(), 16, "the line was quiet: the FIFOs are on");
}

#[test]
fn what_the_kernel_is_still_sending_is_not_lost() {
    let mut device = Shared::new(16);
    device.write(Register::Data, b'k');
    let mut bench = Bench::with(device.clone());
    assert!(bench.console.watch().is_some(), "the FIFOs are off");
    bench.watchdog();
    bench.settle();
    assert_eq!(bench.sent(), b"k");
    assert_eq!(device.room(), 16, "the FIFOs are on");
}

#[test]
fn fifos_that_are_on_are_left_alone() {
    let device = Shared::new(16);
    drop(Bench::with(device.clone()));
    for byte in *b"kept" {
        device.arrive(byte);
    }
    let mut bench = Bench::with(device);
    bench.read(1, 8);
    bench.settle();
    assert_eq!(bench.input(), b"kept");
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<u8>),
    Read(u16),
    Arrive(Vec<u8>),
    Carry,
    Interrupt,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..CHUNK_MAX)
            .prop_map(Step::Write),
        (1..200u16).prop_map(Step::Read),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Step::Arrive),
        Just(Step::Carry),
        Just(Step::Interrupt),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Whatever the order of events, all that was accepted goes out once and in order, all that the device did not
    /// lose comes in once and in order, and every write is answered.
    #[test]
    fn no_byte_is_lost_or_doubled(
        depth in prop_oneof![Just(1usize), Just(16)],
        lose_every in 0u32..4,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut bench = Bench::new(depth);
        bench.device.0.borrow_mut().lose_every = lose_every;
        let (mut written, mut arrived, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for (call, step) in steps.into_iter().enumerate() {
            let call = call as u32;
            match step {
                Step::Write(bytes) => if bench.write(call, &bytes) {
                    calls.push(call);
                    written.extend(on_the_line(&bytes));
                },
                Step::Read(max) => { bench.read(call, max); }
                Step::Arrive(bytes) => for byte in bytes {
                    if bench.device.room() > 0 {
                        arrived.push(byte);
                    }
                    bench.device.arrive(byte);
                },
                Step::Carry => bench.device.carry(),
                Step::Interrupt => { bench.serve_interrupt(); }
            }
        }
        bench.settle();
        for call in 1000..1100 {
            bench.read(call, 100);
            bench.settle();
        }
        prop_assert_eq!(bench.sent(), written);
        prop_assert_eq!(bench.input(), arrived);
        prop_assert_eq!(bench.writes, calls);
        let overrun = bench.device.0.borrow().overrun > 0;
        prop_assert_eq!(bench.console.counters().overruns > 0, overrun);
    }
}
