//! The console between its callers and its UART: bounded buffers both ways, and calls that wait for them.
//!
//! A `write` is answered once its bytes are in the output buffer, a `read` once there is a byte to give. Calls that
//! cannot be answered yet are parked, in order. When the input buffer is full the bytes stay in the UART, which holds
//! its peer off where it can: nothing is thrown away here.

use heapless::{Deque, Vec};
use ipc::proto::stream::{CHUNK_MAX, Chunk, Flush, Read, Service, StreamError, Write};
use ipc::proto::{Call, Parked, Responder, Served};

use crate::registers::Registers;
use crate::uart::{Counters, Uart};

/// Bytes received and not yet read, at most.
const INPUT_MAX: usize = 1024;
/// Bytes written and not yet sent, at most. A single write fits, however many of its bytes are line feeds.
const OUTPUT_MAX: usize = 4 * CHUNK_MAX;
/// Calls of each kind that can be parked.
pub const PARKED_MAX: usize = 8;
/// First wait for a transmitter that says nothing, in nanoseconds: some ten times what a full FIFO takes.
const WATCH_NS: u64 = 20_000_000;
/// How often it is looked whether the last bytes have left, in nanoseconds: a little longer than a full FIFO takes.
const LEAVING_NS: u64 = 2_000_000;
/// Doublings of that wait while the transmitter does not move: at most 1.28 s.
const WATCH_DOUBLINGS: u32 = 6;
/// How long the line must be quiet before the FIFOs are turned on, in nanoseconds: many times what a peer that has more to
/// send lets pass.
const QUIET_NS: u64 = 50_000_000;

struct Writer<P: Responder> {
    call: Parked<P, Write>,
    bytes: Chunk,
}

struct Reader<P: Responder> {
    call: Parked<P, Read>,
    badge: u64,
    max: usize,
}

/// The console.
pub struct Console<R, P: Responder> {
    uart: Uart<R>,
    input: Deque<u8, INPUT_MAX>,
    output: Deque<u8, OUTPUT_MAX>,
    writers: Deque<Writer<P>, PARKED_MAX>,
    readers: Vec<Reader<P>, PARKED_MAX>,
    flushers: Vec<Parked<P, Flush>, PARKED_MAX>,
    stalls: u32,
}

impl<R: Registers, P: Responder> Console<R, P> {
    /// A console on a UART that was started; turns on the receive interrupt.
    pub fn new(mut uart: Uart<R>) -> Self {
        uart.arm(true, false);
        Self {
            uart,
            input: Deque::new(),
            output: Deque::new(),
            writers: Deque::new(),
            readers: Vec::new(),
            flushers: Vec::new(),
            stalls: 0,
        }
    }

    /// The UART's interrupt came. Afterwards the caller acknowledges it, then calls [`Self::rearm`].
    pub fn interrupt(&mut self, responder: &mut P) {
        self.uart.quiet();
        self.transfer(responder);
    }

    /// The interrupt was acknowledged: lets the UART raise it again.
    pub fn rearm(&mut self) {
        self.uart
            .arm(!self.input.is_full(), !self.output.is_empty());
    }

    /// Nothing happened for the time of [`Self::watch`]. If bytes can be sent now, their interrupt was lost, or comes behind this.
    pub fn watchdog(&mut self, responder: &mut P) {
        if self.output.is_empty() {
            self.flushed(responder);
            self.uart.settle();
            return;
        }
        self.stalls = self.stalls.saturating_add(1);
        if self.uart.has_lost_interrupt() {
            self.uart.counters.lost_interrupts += 1;
        }
        self.uart.quiet();
        self.transfer(responder);
        self.rearm();
    }

    /// How long to wait for the next event, in nanoseconds, before [`Self::watchdog`] should be called; `None`: for ever.
    /// It grows while the transmitter does not move.
    pub fn watch(&self) -> Option<u64> {
        if !self.output.is_empty() {
            return Some(WATCH_NS << self.stalls.min(WATCH_DOUBLINGS));
        }
        if !self.flushers.is_empty() {
            return Some(LEAVING_NS);
        }
        self.uart.is_unsettled().then_some(QUIET_NS)
    }

    /// The last handle with this badge is closed: its parked reads have nobody to answer to. Bytes of its writes are
    /// sent all the same.
    pub fn closed(&mut self, badge: u64) {
        self.readers.retain(|reader| reader.badge != badge);
    }

    /// What was lost or odd.
    pub fn counters(&self) -> Counters {
        self.uart.counters
    }

    /// Moves bytes both ways and answers the calls that this satisfies.
    fn transfer(&mut self, responder: &mut P) {
        self.receive();
        self.deliver(responder);
        self.send();
        while self.accept_parked(responder) {
            self.send();
        }
        self.flushed(responder);
    }

    /// Answers the flushes if everything has left.
    fn flushed(&mut self, responder: &mut P) {
        if self.flushers.is_empty() || !self.is_drained() {
            return;
        }
        for call in core::mem::take(&mut self.flushers) {
            // Who is gone needs no answer.
            let _ = call.answer(responder, &());
        }
    }

    /// Whether nothing that was written is still here. A writer is parked only behind a full buffer.
    fn is_drained(&mut self) -> bool {
        self.output.is_empty() && self.writers.is_empty() && self.uart.is_idle()
    }

    fn receive(&mut self) {
        let input = &mut self.input;
        let room = input.capacity() - input.len();
        self.uart.receive(room, |byte| {
            // At most `room` bytes come.
            let _ = input.push_back(byte);
        });
    }

    fn send(&mut self) {
        let output = &mut self.output;
        if self.uart.transmit(|| output.pop_front()) > 0 {
            self.stalls = 0;
        }
    }

    /// Gives received bytes to the readers that wait. The bytes for one that is gone go to the next.
    fn deliver(&mut self, responder: &mut P) {
        while !self.input.is_empty() && !self.readers.is_empty() {
            let reader = self.readers.remove(0);
            let bytes = self.peek(reader.max);
            if reader.call.answer(responder, &bytes).is_ok() {
                self.consume(bytes.len());
            }
        }
    }

    /// The first bytes of the input, at most `max` and at most a chunk.
    fn peek(&self, max: usize) -> Chunk {
        let mut bytes = Chunk::new();
        let (front, back) = self.input.as_slices();
        for part in [front, back] {
            let room = max.min(CHUNK_MAX) - bytes.len();
            // What is cut to the room fits.
            let _ = bytes.extend(&part[..part.len().min(room)]);
        }
        bytes
    }

    fn consume(&mut self, count: usize) {
        for _ in 0..count {
            self.input.pop_front();
        }
    }

    /// Takes the parked writes whose bytes fit by now, in order, each whole; says whether it took any.
    fn accept_parked(&mut self, responder: &mut P) -> bool {
        let mut any = false;
        while let Some(writer) = self.writers.front() {
            if !accept(&mut self.output, &writer.bytes) {
                break;
            }
            if let Some(writer) = self.writers.pop_front() {
                // A writer that is gone has nothing to hear; its bytes are sent.
                let _ = writer.call.answer(responder, &());
            }
            any = true;
        }
        any
    }
}

/// Appends bytes as they go out on the line, a return before each line feed: all, or none if there is no room.
fn accept(output: &mut Deque<u8, OUTPUT_MAX>, bytes: &[u8]) -> bool {
    let feeds = bytes.iter().filter(|&&byte| byte == b'\n').count();
    if bytes.len() + feeds > output.capacity() - output.len() {
        return false;
    }
    for &byte in bytes {
        // There is room for all of them.
        if byte == b'\n' {
            let _ = output.push_back(b'\r');
        }
        let _ = output.push_back(byte);
    }
    true
}

impl<R: Registers, P: Responder> Service<P> for Console<R, P> {
    fn write(&mut self, call: Call<'_, P, Write>, bytes: Chunk) -> Served<Write, P::Handle> {
        if self.writers.is_empty() && accept(&mut self.output, &bytes) {
            self.send();
            self.rearm();
            return Ok(call.reply(()));
        }
        if self.writers.is_full() {
            return Err(StreamError::Busy);
        }
        let (call, outcome) = call.park().map_err(|_| StreamError::Busy)?;
        // There is room for it.
        let _ = self.writers.push_back(Writer { call, bytes });
        Ok(outcome)
    }

    fn read(&mut self, call: Call<'_, P, Read>, max: u16) -> Served<Read, P::Handle> {
        let max = usize::from(max);
        if max == 0 || (self.readers.is_empty() && !self.input.is_empty()) {
            let bytes = self.peek(max);
            self.consume(bytes.len());
            self.receive();
            self.rearm();
            return Ok(call.reply(bytes));
        }
        let badge = call.badge();
        if self.readers.is_full() {
            return Err(StreamError::Busy);
        }
        let (call, outcome) = call.park().map_err(|_| StreamError::Busy)?;
        // There is room for it.
        let _ = self.readers.push(Reader { call, badge, max });
        Ok(outcome)
    }

    fn flush(&mut self, call: Call<'_, P, Flush>, (): ()) -> Served<Flush, P::Handle> {
        if self.is_drained() {
            return Ok(call.reply(()));
        }
        if self.flushers.is_full() {
            return Err(StreamError::Busy);
        }
        let (call, outcome) = call.park().map_err(|_| StreamError::Busy)?;
        // There is room for it.
        let _ = self.flushers.push(call);
        Ok(outcome)
    }
}
