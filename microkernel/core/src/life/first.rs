//! The first program. The kernel loads init and no other; init loads the rest. This runs once, on the boot CPU, before any program
//! does: it is the only code that makes the calls of a program in a program's stead, and it does not return an error to
//! one but says why the system cannot start.

use crate::account::Account;
use crate::base::addr::{Frame, UserAddr};
use crate::base::pool::Ref;
use crate::calls::Stop;
use crate::elf::{Program, Segment};
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::life::create::Start;
use crate::mem::frame_list::FrameList;
use crate::mem::page::{Access, Pages};
use crate::object::memory::Backing;
use crate::object::{Memory, Object, ThreadId};
use crate::space::Mapping;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::layout::{NAME_MAX, PAGE_SIZE, USER_END};
use ipc::abi::startup::{
    CONTROL_OFFSET, ControlBlock, IPC_BUFFER, STACK_BASE, STARTUP_PAGE, Startup, StartupError,
    names,
};
use ipc::abi::{Handle, Rights};
use ipc::bootfs::Bootfs;
use zerocopy::IntoBytes;

/// Name of the program, and of its file.
const NAME: &str = "init";
const FILE: &str = "bin/init";
/// Its priority: the highest, so that it can give any.
const PRIORITY: u8 = ipc::abi::layout::PRIORITY_MAX;
/// Pages of its stack.
const STACK_PAGES: u64 = 16;
/// Its heap may grow to this many bytes of address space.
const HEAP_BYTES: u64 = 1 << 30;

/// Why init cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The boot module is not an archive.
    Archive(ipc::bootfs::Error),
    /// The archive holds no init.
    Missing,
    /// Its file is damaged, or no program.
    Program(crate::elf::Error),
    /// There is too little of something, most likely memory.
    Resources(ipc::abi::Error),
    /// Its startup page cannot be written.
    Startup(StartupError),
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Archive(error) => write!(f, "the boot archive is damaged: {error}"),
            Self::Missing => write!(f, "the boot archive holds no {FILE}"),
            Self::Program(error) => write!(f, "{FILE}: {error}"),
            Self::Resources(error) => write!(f, "{FILE} cannot be loaded: {error}"),
            Self::Startup(_) => write!(f, "{FILE}: its startup page cannot be written"),
        }
    }
}

impl From<ipc::abi::Error> for Failure {
    fn from(error: ipc::abi::Error) -> Self {
        Self::Resources(error)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Self::Resources(match stop {
            Stop::Error(error) => error,
            // Nothing is on its way back yet, and nobody waits.
            _ => ipc::abi::Error::WrongState,
        })
    }
}

impl<H: Hardware> Kernel<H> {
    /// Makes init from the boot module, which lies in RAM from `base` on, and makes it ready.
    ///
    /// # Errors
    /// Says why the system cannot start.
    pub fn start_init(&self, cpu: &CpuState, base: Frame, module: &[u8]) -> Result<(), Failure> {
        let archive = Bootfs::parse(module).map_err(Failure::Archive)?;
        let file = archive.find(FILE).ok_or(Failure::Missing)?;
        file.verify().map_err(Failure::Archive)?;
        let program = Program::parse(file.data).map_err(Failure::Program)?;

        let mut name = [0; NAME_MAX];
        name[..NAME.len()].copy_from_slice(NAME.as_bytes());
        let name = zerocopy::transmute!(name);
        let quota = u64::from(self.frames.usage(&cpu.token).free);
        // Images are numbered as init does: by their place in the archive, from 1.
        let image = archive
            .files()
            .position(|other| other.name == FILE)
            .map_or(0, |place| place as u32 + 1);
        let process = self.create_process(cpu, None, quota, image, name)?;
        let slot = process.index();

        let pages = (module.len() as u64).div_ceil(PAGE_SIZE);
        let bootfs = self.new_memory(cpu, slot, Backing::Borrowed(base, None), pages)?;
        let mut end = 0;
        for segment in program.segments() {
            self.load_segment(cpu, slot, bootfs, file.offset, file.data, &segment)?;
            end = end.max(segment.pages.end());
        }
        let stack = self.new_pages(cpu, slot, STACK_PAGES)?;
        self.map_whole(cpu, slot, stack, STACK_BASE, STACK_PAGES, Access::Write)?;
        let buffer = self.new_pages(cpu, slot, 1)?;
        self.map_whole(cpu, slot, buffer, IPC_BUFFER, 1, Access::Write)?;
        let frame = self.page_of(cpu, buffer, 0)?;
        let control = ControlBlock::new(IPC_BUFFER);
        self.hw
            .write_bytes(frame.start().offset(CONTROL_OFFSET), control.as_bytes());

        let start = Start {
            entry: program.entry().0,
            stack: STACK_BASE + STACK_PAGES * PAGE_SIZE,
            argument: STARTUP_PAGE,
            base: IPC_BUFFER + CONTROL_OFFSET,
        };
        // The creation's count of the buffer becomes the thread's.
        let thread = self.create_thread(cpu, slot, start, PRIORITY, (buffer, frame.start().0))?;

        let heap_base = end + PAGE_SIZE;
        let system = Rights::LOG_WRITE
            | Rights::LOG_READ
            | Rights::INSPECT
            | Rights::DEVICES
            | Rights::POWER
            | Rights::SPAWN
            | Rights::DUPLICATE
            | Rights::TRANSFER;
        let own = Rights::MANAGE | Rights::INSPECT | Rights::DUPLICATE | Rights::TRANSFER;
        let grants = [
            (names::SYSTEM, Object::System, system),
            (
                names::PROFILER,
                Object::Profiler,
                Rights::MANAGE | Rights::DUPLICATE | Rights::TRANSFER,
            ),
            (
                names::BOOTFS,
                Object::Memory(bootfs),
                Rights::READ | Rights::EXECUTE | Rights::DUPLICATE | Rights::TRANSFER,
            ),
            (names::PROCESS, Object::Process(process), own),
            (names::THREAD, Object::Thread(thread), own),
        ];
        let mut handles = [("", Handle::NONE); 5];
        for (place, (name, object, rights)) in handles.iter_mut().zip(grants) {
            let grant = Grant { object, rights };
            // The others were counted when they were made.
            if object == Object::Process(process) {
                self.retain(cpu, &grant);
            }
            *place = (name, self.insert(cpu, self.process(slot), grant)?);
        }
        let startup = Startup {
            name: NAME,
            pid: self.process(slot).pid.load(Relaxed),
            heap_base,
            heap_bytes: HEAP_BYTES.min(USER_END / 2),
            args: &[],
            handles: &handles,
        };
        let mut page = [0; PAGE_SIZE as usize];
        startup.write(&mut page).map_err(Failure::Startup)?;
        let memory = self.new_pages(cpu, slot, 1)?;
        self.hw
            .write_bytes(self.page_of(cpu, memory, 0)?.start(), &page);
        self.map_whole(cpu, slot, memory, STARTUP_PAGE, 1, Access::Read)?;
        for memory in [stack, memory] {
            self.release_memory(cpu, memory);
        }

        let id = ThreadId(thread.index());
        if self.thread(id).claim_held() {
            self.make_ready(cpu, id);
        }
        Ok(())
    }

    /// Maps what is only read from the archive in place, and copies what is written.
    fn load_segment(
        &self,
        cpu: &CpuState,
        slot: u32,
        bootfs: Ref<Memory>,
        file_offset: usize,
        file: &[u8],
        segment: &Segment,
    ) -> Result<(), Failure> {
        let count = segment.pages.count();
        if segment.access != Access::Write {
            let mapping = Mapping {
                pages: segment.pages,
                memory: bootfs,
                first: (file_offset + segment.offset) as u64 / PAGE_SIZE,
                allowed: segment.access.rights(),
                access: segment.access,
            };
            return self.map_to_the_end(cpu, slot, &mapping);
        }
        let memory = self.new_pages(cpu, slot, count)?;
        let bytes = &file[segment.offset..segment.offset + segment.bytes];
        for (index, part) in bytes.chunks(PAGE_SIZE as usize).enumerate() {
            self.hw
                .write_bytes(self.page_of(cpu, memory, index as u64)?.start(), part);
        }
        self.map_whole(
            cpu,
            slot,
            memory,
            segment.pages.address(),
            count,
            Access::Write,
        )?;
        self.release_memory(cpu, memory);
        Ok(())
    }

    /// A memory object of zeroed pages, all at once.
    fn new_pages(&self, cpu: &CpuState, slot: u32, count: u64) -> Result<Ref<Memory>, Failure> {
        let memory = self.new_memory(cpu, slot, Backing::Paged(FrameList::new()), count)?;
        let mut account = Account::new(self, cpu, slot);
        for _ in 0..count {
            let frame = account.take_page()?;
            if let Backing::Paged(list) = &mut self.memory(memory).pages.lock(&cpu.token).backing {
                list.push(self.hw, frame, &mut account)?;
            }
        }
        Ok(memory)
    }

    fn map_whole(
        &self,
        cpu: &CpuState,
        slot: u32,
        memory: Ref<Memory>,
        address: u64,
        count: u64,
        access: Access,
    ) -> Result<(), Failure> {
        let pages = Pages::new(UserAddr(address), count)?;
        self.map_to_the_end(
            cpu,
            slot,
            &Mapping {
                pages,
                memory,
                first: 0,
                allowed: access.rights(),
                access,
            },
        )
    }

    fn map_to_the_end(&self, cpu: &CpuState, slot: u32, mapping: &Mapping) -> Result<(), Failure> {
        loop {
            match self.map_step(cpu, slot, mapping) {
                Ok(()) => return Ok(()),
                Err(Stop::Restart) => {}
                Err(stop) => return Err(stop.into()),
            }
        }
    }
}
