//! The sample that would be taken now, by the kernel's own code: run here, over the registers and the memory of a machine that stands
//! still.

use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use ipc::abi::profile::{DOMAINS_ALL, EVENT_CYCLES, EventSpec, SourceRequest};
use kcore::base::addr::{Frame, Tsc};
use kcore::base::cpu::{Cpu, CpuId};
use kcore::hardware::{PhysWords, Words};
use kcore::pmu::NoMonitor;
use kcore::profile::{
    CpuState, Driver, Interrupted, KernelMap, KernelWords, Machine, SampleSource, Span, Tick,
};
use object::{Object as _, ObjectSymbol as _};
use sample_ring::{AtomicU64, Geometry, Reader, Sample, Writer};

use super::super::disassembly::vector_stub;
use super::super::probe::{Ram, Registers};
use super::thread::{Current, Thread};

/// The one CPU.
const CPU: CpuId = CpuId(0);

/// Where the kernel's code is, by its symbols.
#[derive(Debug)]
pub struct Layout {
    /// As the kernel has it.
    pub map: KernelMap,
    /// The idle loop.
    pub idle: Range<u64>,
    /// The way to a program.
    pub exit: u64,
}

impl Layout {
    /// Of the kernel's file.
    ///
    /// # Errors
    /// If a symbol is missing.
    pub fn new(elf: &[u8]) -> Result<Self> {
        let file = object::File::parse(elf)?;
        let at = |name: &str| {
            let mut symbols = file.symbols();
            let found = symbols.find(|symbol| symbol.name() == Ok(name));
            let found = found.with_context(|| format!("the kernel has no `{name}`"));
            found.map(|symbol| symbol.address())
        };
        let span = |start, end| -> Result<Span> {
            Ok(Span {
                start: at(start)?,
                end: at(end)?,
            })
        };
        let map = KernelMap {
            text: span("__text_start", "__text_end")?,
            // For the life of the driver, which is that of the test.
            stubs: Vec::leak(vec![span("stubs_start", "stubs_end")?]),
            syscall: span("syscall_entry", "syscall_saved")?,
            syscall_switched: at("syscall_switched")?,
            interrupts: span("vector_stubs", "interrupt_saved")?,
        };
        Ok(Self {
            map,
            idle: at("idle")?..at("idle_end")?,
            exit: at("exit_to_user")?,
        })
    }

    /// Where a vector's stub begins.
    #[must_use]
    pub const fn vector(&self, vector: u8) -> u64 {
        vector_stub(self.map.interrupts.start, vector).start
    }
}

/// A machine at a moment.
#[derive(Debug)]
pub struct Moment<'r> {
    /// Its RAM.
    pub ram: &'r Ram,
    /// Its registers.
    pub registers: &'r Registers,
    /// Where the stub of SYSCALL puts the program's RSP.
    pub scratch: u64,
    /// The kernel's stack.
    pub stack: Range<u64>,
}

impl Moment<'_> {
    /// What a sample interrupts, while this thread runs or is worked for.
    #[must_use]
    pub fn interrupted(&self, idle: &Range<u64>, current: Current<'_>) -> Interrupted {
        let registers = self.registers;
        Interrupted {
            rip: registers.rip(),
            rsp: registers.rsp(),
            rbp: registers.rbp(),
            rflags: registers.rflags(),
            rcx: registers.rcx(),
            scratch: self.scratch,
            entered: current.0.map_or(0, Thread::entered),
            user: registers.is_user(),
            idle: idle.contains(&registers.rip()),
        }
    }
}

/// A frame of RAM.
#[derive(Clone, Copy)]
pub struct RamWords<'r> {
    ram: &'r Ram,
    frame: Frame,
}

impl Words for RamWords<'_> {
    fn word(self, index: usize) -> u64 {
        let at = self.frame.start().0 + index as u64 % 512 * 8;
        self.ram.word(at).unwrap_or(0)
    }
}

impl PhysWords for Moment<'_> {
    type Words<'a>
        = RamWords<'a>
    where
        Self: 'a;

    fn words(&self, frame: Frame) -> Option<RamWords<'_>> {
        self.ram.word(frame.start().0)?;
        let ram = self.ram;
        Some(RamWords { ram, frame })
    }
}

/// The kernel's stack.
#[derive(Clone, Copy)]
pub struct StackWords<'r> {
    ram: &'r Ram,
    root: u64,
    span: Span,
}

impl KernelWords for StackWords<'_> {
    fn span(self) -> Span {
        self.span
    }
    fn word(self, at: u64) -> Option<u64> {
        let there = at.is_multiple_of(8) && self.span.contains(at);
        there.then(|| self.ram.word_at(self.root, at)).flatten()
    }
}

impl Machine for Moment<'_> {
    type KernelWords<'a>
        = StackWords<'a>
    where
        Self: 'a;
    type Monitor = NoMonitor;

    fn tsc(&self) -> Tsc {
        Tsc(1)
    }
    fn space(&self) -> Frame {
        Frame((self.registers.cr3() >> 12) as u32)
    }
    fn kernel_stack(&self, _: CpuId, rsp: u64) -> Option<StackWords<'_>> {
        let (start, end) = (self.stack.start, self.stack.end);
        (start..=end).contains(&rsp).then_some(StackWords {
            ram: self.ram,
            root: self.registers.cr3(),
            span: Span { start, end },
        })
    }
    fn monitor(&self) -> &NoMonitor {
        &NoMonitor
    }
}

/// The kernel's driver, with a ring of its own.
pub struct Sampler {
    driver: Driver,
    reader: Reader<'static>,
}

impl Sampler {
    /// For a kernel that is laid out so.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn new(map: KernelMap) -> Result<Self> {
        let geometry = Geometry::KERNEL;
        let words: Vec<AtomicU64> = (0..geometry.words()).map(|_| AtomicU64::new(0)).collect();
        // The driver keeps what it is given for ever; there is one for each test.
        let words: &'static [AtomicU64] = Vec::leak(words);
        let ring = Writer::format(words, geometry).context("the ring is too small")?;
        let cpus = Vec::leak(vec![CpuState::new(CPU, ring)]);
        let tick: &'static dyn SampleSource = Box::leak(Box::new(Tick { frequency: 100 }));
        let driver = Driver::new(cpus, Vec::leak(vec![tick]), map);
        let driver = driver.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let spec = EventSpec {
            event: EVENT_CYCLES,
            domains: DOMAINS_ALL,
            ..EventSpec::default()
        };
        let started = driver.start(&Cpu::new(CPU), 0, SourceRequest::Tick, &[spec]);
        started.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let reader = Reader::open(words.into(), geometry)?;
        Ok(Self { driver, reader })
    }

    /// The sample of a moment at which this is interrupted.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn sample(
        &mut self,
        at: &Interrupted,
        machine: &impl Machine,
        current: Current<'_>,
    ) -> Result<Sample> {
        loop {
            // The first tick arms, and takes none.
            let _ = self.driver.on_tick(CPU, at, 0, machine, current);
            let samples: Result<Vec<Sample>, _> = self.reader.drain()?.collect();
            let samples = samples?;
            ensure!(samples.len() <= 1, "one tick took several samples");
            if let Some(&sample) = samples.first() {
                return Ok(sample);
            }
        }
    }
}
