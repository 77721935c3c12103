//! The simulated machine: RAM, time that the test advances, interrupts that wait until the test delivers them, and a translation
//! cache for each CPU that keeps what it has seen until the kernel flushes it.

use super::nmis;
use crate::base::addr::{Frame, Nanos, PhysAddr, Tsc, UserAddr};
use crate::base::cpu::CpuId;
use crate::boot::memory::Range;
use crate::hardware::{Hardware, PhysMemory, PhysWords};
use crate::mem::fake::FakeMemory;
use crate::mem::paging::Tables;
use crate::pmu::NoMonitor;
use crate::profile::{self, Span};
use ipc::abi::PowerAction;
use ipc::abi::exit::{CrashReport, ExitReason};
use ipc::abi::inspect::{StackInfo, StackKind};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Number of the first frame of RAM.
pub const FIRST: u32 = 0x100;
/// Registers that are the kernel's own.
pub const CONTROLLER: Range = Range {
    start: 0xfee0_0000,
    end: 0xfee0_1000,
};
/// CPUs it can have.
const CPUS: usize = 8;
/// Interrupt lines of the machine.
pub const LINES: u32 = 24;
/// The one of them that is the kernel's.
pub const KEPT: u32 = 2;
/// A line's bit in a word; none if it has too high a number.
fn line_bit(line: u32) -> u64 {
    1_u64.checked_shl(line).unwrap_or(0)
}
/// Bytes of each stack.
pub const STACK: u64 = 8192;
/// What an absent port reads.
const NO_PORT: u32 = 0xffff_ffff;

thread_local! {
    /// The CPU that this host thread plays just now: what a real CPU knows by itself.
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// What one CPU has besides the kernel's state of it.
#[derive(Default)]
struct Core {
    /// Root of the space that is loaded; 0 if none.
    root: AtomicU32,
    /// When its one-shot timer goes off; `u64::MAX` if it is off.
    timer: AtomicU64,
    /// Translations it has cached: page to frame, and whether it may write.
    cached: Mutex<BTreeMap<u64, (Frame, bool)>>,
}

/// Where a CPU can be met in the middle of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It takes up a thread: its FS base is being set.
    Switch,
    /// It loads the space of a process.
    Load,
}

/// How long a CPU may take to come to a point.
const PATIENCE: Duration = Duration::from_secs(60);

/// What makes a CPU stop at a point: it says that it is there, and waits to be let go.
struct Stop {
    point: Point,
    says: Sender<()>,
    waits: Receiver<()>,
}

/// The other side of a [`Stop`].
pub struct Meeting {
    came: Receiver<()>,
    go_on: Sender<()>,
}

impl Meeting {
    /// Waits until it is there, does something else, and lets it go on.
    pub fn hold(self, act: impl FnOnce()) {
        self.came
            .recv_timeout(PATIENCE)
            .expect("no CPU comes to this point");
        act();
        self.go_on.send(()).expect("the CPU waits");
    }
}

/// The machine.
pub struct Machine {
    memory: FakeMemory,
    now: AtomicU64,
    /// How long a look at the clock takes.
    look: AtomicU64,
    /// CPUs that were kicked and have not entered since.
    kicked: AtomicU64,
    /// CPUs that were sent an NMI and have not taken it.
    nmis: AtomicU64,
    unmasked: AtomicU64,
    cores: Vec<Core>,
    /// Cores that are there.
    cpus: AtomicU32,
    last_port: AtomicU64,
    /// Where the next CPU stops that comes there.
    meeting: Mutex<Option<Stop>>,
}

impl Machine {
    /// A machine with this many frames of RAM.
    pub fn new(frames: usize) -> Self {
        Self {
            memory: FakeMemory::from(FIRST, frames),
            now: AtomicU64::new(1000),
            look: AtomicU64::new(0),
            kicked: AtomicU64::new(0),
            nmis: AtomicU64::new(0),
            unmasked: AtomicU64::new(0),
            cores: (0..CPUS).map(|_| Core::default()).collect(),
            cpus: AtomicU32::new(0),
            last_port: AtomicU64::new(0),
            meeting: Mutex::new(None),
        }
    }

    /// The machine as after power-on, with this many CPUs; RAM holds what it held.
    pub fn reset(&self, cpus: usize) {
        self.cpus.store(cpus as u32, SeqCst);
        self.now.store(1000, SeqCst);
        self.look.store(0, SeqCst);
        self.kicked.store(0, SeqCst);
        self.unmasked.store(0, SeqCst);
        for core in &self.cores {
            core.root.store(0, SeqCst);
            core.timer.store(u64::MAX, SeqCst);
            core.cached.lock().unwrap().clear();
        }
    }

    /// What this host thread does from here on, it does as this CPU.
    pub fn play(&self, cpu: CpuId) {
        HERE.set(cpu.0);
    }
    fn core(&self) -> &Core {
        &self.cores[HERE.get() as usize]
    }

    /// The next CPU that comes to this point stops there.
    pub fn meet(&self, point: Point) -> Meeting {
        let ((says, came), (go_on, waits)) = (channel(), channel());
        *self.meeting.lock().unwrap() = Some(Stop { point, says, waits });
        Meeting { came, go_on }
    }
    fn come_to(&self, point: Point) {
        let mut meeting = self.meeting.lock().unwrap();
        if let Some(stop) = meeting.take_if(|stop| stop.point == point) {
            drop(meeting);
            // Nobody is there any more if the test has failed.
            if stop.says.send(()).is_ok() {
                let _ = stop.waits.recv();
            }
        }
    }

    /// The kernel asks for something: an NMI may come.
    fn point(&self) {
        nmis::point(CpuId(HERE.get()));
    }

    /// Every look at the clock takes this long from here on.
    pub fn slow_down(&self, nanos: u64) {
        self.look.store(nanos, SeqCst);
    }
    fn look(&self) -> u64 {
        self.now.fetch_add(self.look.load(SeqCst), SeqCst)
    }

    /// Lets time pass.
    pub fn advance(&self, nanos: u64) {
        self.now.fetch_add(nanos, SeqCst);
    }
    /// Whether a kick of this CPU waits; it is taken.
    pub fn take_kick(&self, cpu: CpuId) -> bool {
        self.kicked.fetch_and(!cpu.bit(), SeqCst) & cpu.bit() != 0
    }
    /// CPUs with a kick that waits.
    pub fn kicks(&self) -> u64 {
        self.kicked.load(SeqCst)
    }
    /// Whether this CPU's timer has gone off; then it is off.
    pub fn take_timer(&self, cpu: CpuId) -> bool {
        let timer = &self.cores[cpu.index()].timer;
        let due = timer.load(SeqCst) <= self.now.load(SeqCst);
        if due {
            timer.store(u64::MAX, SeqCst);
        }
        due
    }
    /// When a CPU's timer goes off.
    pub fn timer(&self, cpu: CpuId) -> u64 {
        self.cores[cpu.index()].timer.load(SeqCst)
    }
    /// Root of the space that a CPU has loaded.
    pub fn root(&self, cpu: CpuId) -> u32 {
        self.cores[cpu.index()].root.load(SeqCst)
    }
    /// Whether an interrupt line is unmasked.
    pub fn is_unmasked(&self, line: u32) -> bool {
        self.unmasked.load(SeqCst) >> line & 1 == 1
    }
    /// Frames that a CPU may still reach through its translation cache.
    pub fn reachable(&self, cpu: CpuId) -> Vec<(u64, Frame)> {
        let cached = self.cores[cpu.index()].cached.lock().unwrap();
        cached
            .iter()
            .map(|(&page, &(frame, _))| (page, frame))
            .collect()
    }

    /// What a user instruction of this CPU finds at an address: from the cache if it can, else through the tables.
    pub fn touch(&self, cpu: CpuId, address: u64, write: bool) -> Option<PhysAddr> {
        let core = &self.cores[cpu.index()];
        let (page, offset) = (address & !0xfff, address & 0xfff);
        let mut cached = core.cached.lock().unwrap();
        let (frame, writable) = match cached.get(&page) {
            Some(&found) => found,
            None => {
                let root = Frame(core.root.load(SeqCst));
                assert_ne!(root.0, 0, "user code without a space");
                let found = Tables::at(root).translate(self, UserAddr(address))?;
                let found = (found.at.frame(), found.writable);
                cached.insert(page, found);
                found
            }
        };
        (writable || !write).then(|| frame.start().offset(offset))
    }
}

impl PhysWords for Machine {
    type Words<'a> = &'a [AtomicU64; 512];

    fn words(&self, frame: Frame) -> Option<&[AtomicU64; 512]> {
        self.point();
        self.memory.words(frame)
    }
}

impl PhysMemory for Machine {
    fn read(&self, at: PhysAddr) -> u64 {
        self.point();
        self.memory.read(at)
    }
    fn write(&self, at: PhysAddr, value: u64) {
        self.point();
        self.memory.write(at, value);
    }
    fn copy(&self, from: PhysAddr, to: PhysAddr, bytes: usize) {
        self.point();
        assert!(
            from.0.abs_diff(to.0) >= bytes as u64,
            "the ranges of a copy overlap"
        );
        self.memory.copy(from, to, bytes);
    }
    fn zero(&self, frame: Frame) {
        self.point();
        self.memory.zero(frame);
    }
    fn read_bytes(&self, from: PhysAddr, to: &mut [u8]) {
        self.point();
        self.memory.read_bytes(from, to);
    }
    fn write_bytes(&self, to: PhysAddr, from: &[u8]) {
        self.point();
        self.memory.write_bytes(to, from);
    }
}

impl Hardware for Machine {
    fn tsc(&self) -> Tsc {
        Tsc(self.look())
    }
    fn now(&self) -> Nanos {
        self.point();
        Nanos(self.now.load(SeqCst))
    }
    fn tsc_to_nanos(&self, ticks: u64) -> u64 {
        ticks
    }
    fn time_at(&self, tsc: u64) -> Nanos {
        Nanos(tsc)
    }
    fn kick(&self, cpu: CpuId) {
        self.point();
        assert!(
            u32::from(cpu.0) < self.cpus.load(SeqCst),
            "kicked a CPU that is not there"
        );
        self.kicked.fetch_or(cpu.bit(), SeqCst);
    }
    fn nmi(&self, cpu: CpuId) {
        self.nmis.fetch_or(cpu.bit(), SeqCst);
    }
    fn set_timer(&self, deadline: Nanos) {
        self.point();
        self.core().timer.store(deadline.0, SeqCst);
    }
    fn load_space(&self, root: Option<Frame>) {
        self.point();
        self.core()
            .root
            .store(root.map_or(0, |root| root.0), SeqCst);
        self.flush_all();
        if root.is_some() {
            self.come_to(Point::Load);
        }
    }
    fn flush_page(&self, address: u64) {
        self.point();
        self.core()
            .cached
            .lock()
            .unwrap()
            .remove(&(address & !0xfff));
    }
    fn flush_all(&self) {
        self.point();
        self.core().cached.lock().unwrap().clear();
    }
    fn kernel_entry(&self, index: usize) -> u64 {
        index as u64 * 8
    }
    fn set_fs_base(&self, _: u64) {
        self.point();
        self.come_to(Point::Switch);
    }
    fn mask(&self, line: u32) {
        self.unmasked.fetch_and(!line_bit(line), SeqCst);
    }
    fn unmask(&self, line: u32) {
        self.unmasked.fetch_or(line_bit(line), SeqCst);
    }
    fn is_device(&self, range: Range) -> bool {
        let ram = |address: u64| self.is_ram(PhysAddr(address).frame());
        !range.overlaps(CONTROLLER)
            && !(range.start..range.end)
                .step_by(4096)
                .take(1 << 16)
                .any(ram)
    }
    fn message(&self, line: u32) -> (u64, u64) {
        (CONTROLLER.start, line.into())
    }
    fn lines(&self) -> u32 {
        LINES
    }
    fn keeps(&self, line: u32) -> bool {
        line == KEPT
    }
    fn port_read(&self, port: u16, bytes: u8) -> u32 {
        let last = self.last_port.load(SeqCst);
        if last >> 40 == u64::from(port) {
            last as u32
        } else {
            NO_PORT >> (32 - 8 * u32::from(bytes))
        }
    }
    fn port_write(&self, port: u16, _: u8, value: u32) {
        self.last_port
            .store(u64::from(port) << 40 | u64::from(value), SeqCst);
    }
    fn stack(&self, cpu: CpuId, which: StackKind) -> StackInfo {
        StackInfo {
            bytes: STACK,
            used: u64::from(cpu.0) * 16 + which as u64,
        }
    }
    fn power(&self, action: PowerAction) -> ! {
        panic!("the machine's run ends: {action:?}")
    }
    fn init_ended(&self, reason: ExitReason, code: u64, _: Option<&CrashReport>) -> ! {
        panic!("the first program has ended: {reason:?}, {code}")
    }
}

/// No CPU has a stack here.
#[derive(Clone, Copy)]
pub enum NoStack {}

impl profile::KernelWords for NoStack {
    fn span(self) -> Span {
        match self {}
    }
    fn word(self, _: u64) -> Option<u64> {
        match self {}
    }
}

impl profile::Machine for Machine {
    type KernelWords<'a> = NoStack;
    type Monitor = NoMonitor;

    fn tsc(&self) -> Tsc {
        Hardware::tsc(self)
    }
    fn kernel_stack(&self, _: CpuId, _: u64) -> Option<NoStack> {
        None
    }
    fn space(&self) -> Frame {
        Frame(self.core().root.load(SeqCst))
    }
    fn monitor(&self) -> &NoMonitor {
        &NoMonitor
    }
}
