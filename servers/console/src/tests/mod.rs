//! The console against the hostile UART: nothing is lost that the device did not lose, and nothing waits for ever.

mod calls;
mod device;
mod order;

use ipc::abi::Error;
use ipc::proto::stream::{self, Chunk, Read, Write};
use ipc::proto::{Disposition, Message, Operation, Responder};

use crate::driver::Console;
use crate::fake::Shared;
use crate::uart::Uart;

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
