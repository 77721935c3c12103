//! A kernel for the tests, hostile on purpose: any operation can be made to fail, every handle is counted, and processes end
//! when the test says so.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use ipc::abi::exit::{CrashReport, ExitReason, ProcessStatus};
use ipc::abi::{Error, Handle, Rights};
use ipc::proto::system::{OnDeath, Program, Start, SystemConfig};

use crate::machine::{FirstThread, Machine, Pages};

/// ELF files.
pub mod elf {
    /// A segment.
    #[derive(Clone, Copy)]
    pub struct Load {
        pub address: u64,
        pub flags: u32,
        pub in_file: u64,
        pub in_memory: u64,
    }

    /// A file with these segments, each on a page of its own, and a build-id note.
    pub fn file(entry: u64, loads: &[Load]) -> Vec<u8> {
        let mut out = vec![0; 0x1000];
        out[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(16, &[2, 0, 62, 0, 1, 0, 0, 0]);
        put(24, &entry.to_le_bytes());
        put(32, &64_u64.to_le_bytes());
        put(52, &[64, 0, 56, 0, loads.len() as u8 + 1, 0, 64, 0]);
        let mut offset = 0x1000;
        let mut header = |index: usize, kind: u32, flags: u32, words: [u64; 5]| {
            let at = 64 + index * 56;
            put(at, &kind.to_le_bytes());
            put(at + 4, &flags.to_le_bytes());
            let [offset, address, in_file, in_memory, align] = words;
            for (index, word) in [offset, address, address, in_file, in_memory, align]
                .iter()
                .enumerate()
            {
                put(at + 8 + index * 8, &word.to_le_bytes());
            }
        };
        for (index, load) in loads.iter().enumerate() {
            header(
                index,
                1,
                load.flags,
                [offset, load.address, load.in_file, load.in_memory, 0x1000],
            );
            offset += load.in_file.next_multiple_of(0x1000);
        }
        header(loads.len(), 4, 4, [0xf00, 0, 36, 36, 4]);
        put(0xf00, b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0\xb1\xb2");
        let end = usize::try_from(offset).unwrap();
        out.resize(end, 0xcc);
        out
    }
}

/// An archive with these files.
pub fn archive(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    use ipc::bootfs::{HEADER_SIZE, MAGIC, TRAILER};
    fn push(out: &mut Vec<u8>, name: &str, data: &[u8]) {
        out.extend_from_slice(MAGIC);
        for field in ipc::bootfs::fields(name, data) {
            out.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    let mut out = Vec::new();
    for (name, data) in files {
        let headers = (HEADER_SIZE + "pad/0".len() + 1).next_multiple_of(4)
            + (HEADER_SIZE + name.len() + 1).next_multiple_of(4);
        let filler = (out.len() + headers).next_multiple_of(4096) - out.len() - headers;
        push(&mut out, "pad/0", &vec![0; filler]);
        push(&mut out, name, data);
    }
    push(&mut out, TRAILER, &[]);
    out
}

/// An entry that has nothing.
pub fn program(name: &str) -> Program {
    Program {
        name: name.into(),
        image: String::new(),
        start: Start::Demand,
        priority: 3,
        memory_kib: 512,
        stack_kib: 64,
        serves: Vec::new(),
        calls: Vec::new(),
        ports: Vec::new(),
        interrupts: Vec::new(),
        device_memory: Vec::new(),
        profiler: false,
        bootfs: false,
        log: false,
        system: Vec::new(),
        on_death: OnDeath::Leave,
    }
}

/// init, a console that is restarted, a shell without which nothing works, and the default.
pub fn config() -> SystemConfig {
    let server = |name: &str, on_death| Program {
        image: format!("bin/{name}"),
        start: Start::Boot,
        serves: vec![name.into()],
        on_death,
        ..program(name)
    };
    let console = Program {
        interrupts: vec![4],
        log: true,
        ..server("console", OnDeath::Restart)
    };
    let shell = Program {
        calls: vec!["init".into(), "console".into()],
        ..server("shell", OnDeath::Halt)
    };
    let init = server("init", OnDeath::Halt);
    SystemConfig {
        programs: vec![init, console, shell, program("default")],
    }
}

/// What the kernel knows.
#[derive(Default)]
pub struct Ledger {
    /// Handles that are open in init.
    pub open: usize,
    /// Handles that may receive, by endpoint; there is no endpoint 0.
    ears: Vec<usize>,
    /// Operations so far.
    pub operations: usize,
    /// The operation that fails, counted from 0.
    pub fail_at: Option<usize>,
    /// Processes by id, from 1; the first is init.
    pub processes: Vec<FakeProcess>,
    /// What was logged.
    pub log: Vec<String>,
    /// Endpoints that were flushed.
    pub flushed: usize,
    /// Signals to subscribers.
    pub signals: usize,
    /// Whether init ended the system.
    pub halted: bool,
    /// A process that ends while an endpoint is flushed.
    pub ends_at_flush: Option<u32>,
    /// Time, in nanoseconds.
    pub now: u64,
}

/// A process, as the kernel sees it.
#[derive(Clone, Default)]
pub struct FakeProcess {
    pub name: String,
    pub status: ProcessStatus,
    pub started: bool,
    pub maps: Vec<(u64, u64, Rights)>,
    /// Handles that it was given.
    pub given: Vec<Given>,
    pub startup: Vec<u8>,
    pub priority: u8,
}

/// A handle in a process.
#[derive(Clone, Copy)]
pub struct Given {
    rights: Rights,
    /// The endpoint that it names; 0 if it is to something else.
    pub endpoint: usize,
}

impl Ledger {
    /// Whether nobody may receive at an endpoint: then every call there fails at once.
    pub fn is_dead(&self, endpoint: usize) -> bool {
        self.ears[endpoint] == 0
    }
    pub fn process(&mut self, pid: u32) -> &mut FakeProcess {
        &mut self.processes[pid as usize - 1]
    }
    /// Ends a process; its memory is back.
    pub fn end(&mut self, pid: u32, reason: ExitReason, code: u64) {
        for given in core::mem::take(&mut self.process(pid).given) {
            self.ears[given.endpoint] -= ears(given.rights);
        }
        let process = self.process(pid);
        process.status.reason = reason as u64;
        process.status.code = code;
        process.status.reclaimed = 1;
        process.status.crash = CrashReport {
            kind: 1,
            ..CrashReport::default()
        };
    }
}

/// What every handle that the kernel makes can be.
const SHARE: Rights = Rights::DUPLICATE.union(Rights::TRANSFER);

/// Refuses as the kernel does: a right that is asked for must be there.
fn has(rights: Rights, needed: Rights) -> Result<(), Error> {
    if rights.contains(needed) {
        Ok(())
    } else {
        Err(Error::MissingRight)
    }
}

/// How many ears of an endpoint a handle with these rights is.
fn ears(rights: Rights) -> usize {
    rights.contains(Rights::RECEIVE).into()
}

/// An open handle of init.
pub struct FakeHandle {
    ledger: Rc<RefCell<Ledger>>,
    /// Process that a thread's handle belongs to.
    pid: u32,
    /// The endpoint that it names; 0 if it is to something else.
    endpoint: usize,
    rights: Rights,
}

impl fmt::Debug for FakeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("handle")
    }
}

impl Drop for FakeHandle {
    fn drop(&mut self) {
        let mut ledger = self.ledger.borrow_mut();
        ledger.open -= 1;
        ledger.ears[self.endpoint] -= ears(self.rights);
    }
}

impl FakeHandle {
    pub fn new(ledger: &Rc<RefCell<Ledger>>, rights: Rights) -> Self {
        Self::to_endpoint(ledger, rights, 0)
    }

    fn to_endpoint(ledger: &Rc<RefCell<Ledger>>, rights: Rights, endpoint: usize) -> Self {
        let mut open = ledger.borrow_mut();
        open.open += 1;
        open.ears[endpoint] += ears(rights);
        drop(open);
        Self {
            ledger: Rc::clone(ledger),
            pid: 0,
            endpoint,
            rights,
        }
    }
}

/// A process handle.
pub struct ProcessHandle {
    pid: u32,
    _open: FakeHandle,
}

/// The kernel.
pub struct FakeMachine(pub Rc<RefCell<Ledger>>);

impl FakeMachine {
    pub fn new() -> Self {
        let mut ledger = Ledger {
            ears: vec![0],
            ..Ledger::default()
        };
        ledger.processes.push(FakeProcess {
            status: ProcessStatus {
                pid: 1,
                ..ProcessStatus::default()
            },
            ..FakeProcess::default()
        });
        Self(Rc::new(RefCell::new(ledger)))
    }

    fn step(&mut self) -> Result<(), Error> {
        let mut ledger = self.0.borrow_mut();
        let operation = ledger.operations;
        ledger.operations += 1;
        if ledger.fail_at == Some(operation) {
            return Err(Error::OutOfMemory);
        }
        Ok(())
    }

    fn handle(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.step()?;
        Ok(FakeHandle::new(&self.0, rights))
    }
}

impl Machine for FakeMachine {
    type Handle = FakeHandle;
    type Process = ProcessHandle;

    fn create_process(
        &mut self,
        name: &str,
        quota_pages: u64,
        _: u32,
    ) -> Result<(ProcessHandle, u32), Error> {
        let handle = self.handle(SHARE)?;
        let mut ledger = self.0.borrow_mut();
        let pid = ledger.processes.len() as u32 + 1;
        ledger.processes.push(FakeProcess {
            name: name.into(),
            status: ProcessStatus {
                pid: pid.into(),
                quota_pages,
                ..ProcessStatus::default()
            },
            ..FakeProcess::default()
        });
        Ok((ProcessHandle { pid, _open: handle }, pid))
    }

    fn create_memory(
        &mut self,
        process: &ProcessHandle,
        pages: u64,
        offset: u64,
        content: &[u8],
    ) -> Result<FakeHandle, Error> {
        assert!(offset + content.len() as u64 <= pages * 4096);
        let handle = self.handle(SHARE)?;
        // The last memory that is made, and written from its beginning, is the startup page.
        if offset == 0 {
            self.0.borrow_mut().process(process.pid).startup = content.to_vec();
        }
        Ok(handle)
    }

    fn map(
        &mut self,
        process: &ProcessHandle,
        _: Pages<'_, FakeHandle>,
        address: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), Error> {
        self.step()?;
        let mut ledger = self.0.borrow_mut();
        let maps = &mut ledger.process(process.pid).maps;
        let end = address + pages * 4096;
        let overlaps =
            |&(other, pages, _): &(u64, u64, Rights)| other < end && address < other + pages * 4096;
        assert!(!maps.iter().any(overlaps), "{address:#x} is mapped already");
        maps.push((address, pages, rights));
        Ok(())
    }

    fn create_thread(
        &mut self,
        process: &ProcessHandle,
        first: FirstThread,
        _: &FakeHandle,
    ) -> Result<FakeHandle, Error> {
        self.0.borrow_mut().process(process.pid).priority = first.priority;
        let mut thread = self.handle(SHARE | Rights::MANAGE | Rights::INSPECT)?;
        thread.pid = process.pid;
        Ok(thread)
    }

    fn start(&mut self, thread: &FakeHandle) -> Result<(), Error> {
        self.step()?;
        self.0.borrow_mut().process(thread.pid).started = true;
        Ok(())
    }

    fn give(
        &mut self,
        process: &ProcessHandle,
        handle: FakeHandle,
        rights: Rights,
    ) -> Result<Handle, Error> {
        self.step()?;
        has(handle.rights, rights | Rights::TRANSFER)?;
        let mut ledger = self.0.borrow_mut();
        let endpoint = handle.endpoint;
        ledger.ears[endpoint] += ears(rights);
        let given = &mut ledger.process(process.pid).given;
        given.push(Given { rights, endpoint });
        Ok(Handle::new(given.len() as u32, 1))
    }

    fn own_status(&mut self) -> Result<ProcessStatus, Error> {
        Ok(self.0.borrow_mut().process(1).status)
    }

    fn status(&mut self, process: &ProcessHandle) -> Result<ProcessStatus, Error> {
        Ok(self.0.borrow_mut().process(process.pid).status)
    }

    fn kill(&mut self, process: &ProcessHandle) -> Result<(), Error> {
        let mut ledger = self.0.borrow_mut();
        ledger.end(process.pid, ExitReason::Killed, 137);
        Ok(())
    }

    fn duplicate(&mut self, handle: &FakeHandle, rights: Rights) -> Result<FakeHandle, Error> {
        has(handle.rights, rights | Rights::DUPLICATE)?;
        self.step()?;
        Ok(FakeHandle::to_endpoint(&self.0, rights, handle.endpoint))
    }
    fn mint(&mut self, endpoint: &FakeHandle, badge: u64) -> Result<FakeHandle, Error> {
        assert_ne!(badge, 0);
        has(endpoint.rights, Rights::MINT)?;
        self.step()?;
        let rights = SHARE | Rights::CALL;
        Ok(FakeHandle::to_endpoint(&self.0, rights, endpoint.endpoint))
    }
    fn create_endpoint(&mut self) -> Result<FakeHandle, Error> {
        self.step()?;
        let mut ledger = self.0.borrow_mut();
        ledger.ears.push(0);
        let endpoint = ledger.ears.len() - 1;
        drop(ledger);
        let rights = SHARE | Rights::CALL | Rights::RECEIVE | Rights::MINT;
        Ok(FakeHandle::to_endpoint(&self.0, rights, endpoint))
    }
    fn create_notification(&mut self) -> Result<FakeHandle, Error> {
        self.handle(SHARE | Rights::SIGNAL | Rights::WAIT)
    }
    fn system(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.handle(rights)
    }
    fn profiler(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.handle(rights)
    }
    fn bootfs(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.handle(rights)
    }
    fn interrupt(
        &mut self,
        _: u32,
        notification: &FakeHandle,
        _: u32,
    ) -> Result<FakeHandle, Error> {
        has(notification.rights, Rights::SIGNAL)?;
        self.handle(SHARE | Rights::MANAGE)
    }
    fn ports(&mut self, _: u16, _: u16) -> Result<FakeHandle, Error> {
        self.handle(SHARE | Rights::READ | Rights::WRITE)
    }
    fn device(&mut self, _: u64, _: u64) -> Result<FakeHandle, Error> {
        self.handle(SHARE | Rights::READ | Rights::WRITE)
    }

    fn flush(&mut self, _: &FakeHandle) -> bool {
        let mut ledger = self.0.borrow_mut();
        ledger.flushed += 1;
        let ends = ledger.ends_at_flush.take();
        if let Some(pid) = ends {
            ledger.end(pid, ExitReason::Exited, 0);
        }
        ends.is_some()
    }
    fn signal(&mut self, _: &FakeHandle) {
        self.0.borrow_mut().signals += 1;
    }
    fn now(&self) -> u64 {
        self.0.borrow().now
    }
    fn tsc(&self) -> u64 {
        self.0.borrow().now * 3
    }
    fn log(&mut self, line: fmt::Arguments<'_>) {
        self.0.borrow_mut().log.push(line.to_string());
    }
    fn halt(&mut self) {
        self.0.borrow_mut().halted = true;
    }
}
