//! What a program is given when it starts: the startup page, and where its loader puts things.
//!
//! The kernel loads init, init loads the rest; both use this module, and every program reads with it. Names are how a program
//! finds the handles that it was given, and those are all the authority it has.
//!
//! # Layout of the page
//! Little-endian, packed. Strings are UTF-8. A [`StartupHeader`]; then the name and the arguments, each as 2 bytes of length and the
//! text; then the handles, each as 4 bytes of handle, 2 bytes of length and the name.
//!
//! # How a first thread starts
//! RIP is the image's entry, RSP [`STACK_BASE`] plus the stack's size, RDI [`STARTUP_PAGE`]. Its IPC buffer is mapped at
//! [`IPC_BUFFER`]; FS base is `IPC_BUFFER + CONTROL_OFFSET`, where the loader has written the [`ControlBlock`].
//!
//! # What the kernel gives init
//! The handles `system`, `profiler` and `bootfs` (all rights, EXECUTE and not WRITE on the last), `process` and `thread`
//! (its own).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Handle;
use super::layout::PAGE_SIZE;

/// Where the startup page is mapped, read-only.
pub const STARTUP_PAGE: u64 = 0x20_0000;
/// Where the first thread's IPC buffer is mapped.
pub const IPC_BUFFER: u64 = STARTUP_PAGE + PAGE_SIZE;
/// Page below the first thread's stack, which stays unmapped: a stack that overflows faults here.
pub const STACK_GUARD: u64 = IPC_BUFFER + PAGE_SIZE;
/// Lowest address of the first thread's stack.
pub const STACK_BASE: u64 = STACK_GUARD + PAGE_SIZE;
/// Largest stack of a first thread, in bytes: up to where programs are linked, less an unmapped page.
pub const STACK_MAX: u64 = super::layout::PROGRAM_BASE - PAGE_SIZE - STACK_BASE;
/// Offset of the [`ControlBlock`] in the page of the IPC buffer: its end, behind the handle slots. The kernel never writes there.
pub const CONTROL_OFFSET: u64 = PAGE_SIZE - size_of::<ControlBlock>() as u64;

/// What a startup page begins with.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StartupHeader {
    /// Bytes of the page that are used, these included.
    pub used: u32,
    /// [`ABI_VERSION`](super::ABI_VERSION) of the loader.
    pub version: u32,
    /// First address of the heap: the page after the image and one that stays unmapped.
    pub heap_base: u64,
    /// Bytes of address space for the heap; what is above it is the program's to map.
    pub heap_bytes: u64,
    /// Process id.
    pub pid: u32,
    /// Number of arguments.
    pub args: u16,
    /// Number of handles.
    pub handles: u16,
}

/// What FS base points at, in every thread.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ControlBlock {
    /// Its own address, because FS base itself cannot be read.
    pub this: u64,
    /// Address of the thread's IPC buffer.
    pub buffer: u64,
}

impl ControlBlock {
    /// That of a thread whose IPC buffer is at `buffer`.
    #[must_use]
    pub const fn new(buffer: u64) -> Self {
        Self {
            this: buffer + CONTROL_OFFSET,
            buffer,
        }
    }
}

/// Names of handles that mean the same to every program.
pub mod names {
    /// Endpoint that speaks `stream`: where the program's output goes.
    pub const STDOUT: &str = "stdout";
    /// System handle that may only write to the kernel log.
    pub const LOG: &str = "log";
    /// System handle, with the rights that the program's entry names.
    pub const SYSTEM: &str = "system";
    /// Control of the profiling driver.
    pub const PROFILER: &str = "profiler";
    /// The boot archive, as a memory object.
    pub const BOOTFS: &str = "bootfs";
    /// The program's own process.
    pub const PROCESS: &str = "process";
    /// The program's first thread, to bind a notification to it.
    pub const THREAD: &str = "thread";
    /// Notification of the interrupts that the program was given: bit 0 is the first interrupt of its entry, bit 1 the next, and
    /// behind them are those of its PCI function. The other bits are free for its own timers.
    pub const NOTIFICATION: &str = "notification";
    /// Before the name of an endpoint that the program serves. Without it, the name is one that it may call.
    pub const SERVE: &str = "serve:";
    /// Before the first I/O port of a range, as hexadecimal digits.
    pub const PORTS: &str = "ports:";
    /// Before the number of an interrupt line.
    pub const INTERRUPT: &str = "irq:";
    /// Before the physical address of device memory, as hexadecimal digits.
    pub const DEVICE: &str = "device:";
    /// Endpoint that speaks `pci`: the configuration of the PCI function that the program drives.
    pub const PCI: &str = "pci";
    /// Before the number of a base address register, a colon, and an offset as hexadecimal digits: the pages from there on.
    pub const PCI_BAR: &str = "pci:bar";
    /// Before the number of a message-signalled interrupt of the function.
    pub const PCI_VECTOR: &str = "pci:vector";
    /// The function's wired interrupt, where it has no messages.
    pub const PCI_LINE: &str = "pci:line";
    /// Memory for the function to read and write, in a row.
    pub const PCI_DMA: &str = "pci:dma";
}

/// What goes into a startup page.
#[derive(Clone, Copy, Debug)]
pub struct Startup<'a> {
    /// Name of the program.
    pub name: &'a str,
    /// Its process id.
    pub pid: u32,
    /// First address of the heap.
    pub heap_base: u64,
    /// Bytes of address space for it.
    pub heap_bytes: u64,
    /// Arguments, without the program's name.
    pub args: &'a [&'a str],
    /// Handles of the program's own table, by name.
    pub handles: &'a [(&'a str, Handle)],
}

/// Why a startup page cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartupError {
    /// Writing: arguments and handles do not fit the page.
    TooLarge,
    /// Reading: the loader was built for another ABI.
    Version(u32),
    /// Reading: the bytes are not those of a startup page.
    Damaged,
}

impl Startup<'_> {
    /// Writes the page and returns the bytes used.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn write(&self, page: &mut [u8]) -> Result<usize, StartupError> {
        let mut header = StartupHeader {
            used: 0,
            version: super::ABI_VERSION,
            heap_base: self.heap_base,
            heap_bytes: self.heap_bytes,
            pid: self.pid,
            args: short(self.args.len())?,
            handles: short(self.handles.len())?,
        };
        let mut out = Writer { page, used: 0 };
        out.bytes(header.as_bytes())?;
        out.text(self.name)?;
        for arg in self.args {
            out.text(arg)?;
        }
        for (name, handle) in self.handles {
            out.bytes(&handle.raw().to_le_bytes())?;
            out.text(name)?;
        }
        let used = out.used;
        header.used = u32::try_from(used).map_err(|_| StartupError::TooLarge)?;
        Writer { page, used: 0 }.bytes(header.as_bytes())?;
        Ok(used)
    }
}

struct Writer<'a> {
    page: &'a mut [u8],
    used: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), StartupError> {
        let rest = self.page.get_mut(self.used..).unwrap_or_default();
        let place = rest.get_mut(..bytes.len()).ok_or(StartupError::TooLarge)?;
        place.copy_from_slice(bytes);
        self.used += bytes.len();
        Ok(())
    }
    fn text(&mut self, text: &str) -> Result<(), StartupError> {
        self.bytes(&short(text.len())?.to_le_bytes())?;
        self.bytes(text.as_bytes())
    }
}

/// A length or a number of things, as the page has it.
fn short(length: usize) -> Result<u16, StartupError> {
    u16::try_from(length).map_err(|_| StartupError::TooLarge)
}

/// A startup page that was read and found whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartupPage<'a> {
    /// Name of the program.
    pub name: &'a str,
    /// Its process id.
    pub pid: u32,
    /// First address of the heap.
    pub heap_base: u64,
    /// Bytes of address space for it.
    pub heap_bytes: u64,
    args: Records<'a>,
    handles: Records<'a>,
}

impl<'a> StartupPage<'a> {
    /// Reads a page.
    ///
    /// # Errors
    /// `Version` or `Damaged`.
    pub fn read(page: &'a [u8]) -> Result<Self, StartupError> {
        let (header, _) =
            StartupHeader::read_from_prefix(page).map_err(|_| StartupError::Damaged)?;
        if header.version != super::ABI_VERSION {
            return Err(StartupError::Version(header.version));
        }
        let behind = size_of::<StartupHeader>()..header.used as usize;
        let mut bytes = Reader(page.get(behind).ok_or(StartupError::Damaged)?);
        let name = bytes.text()?;
        Ok(Self {
            name,
            pid: header.pid,
            heap_base: header.heap_base,
            heap_bytes: header.heap_bytes,
            args: bytes.records(header.args, 0)?,
            handles: bytes.records(header.handles, size_of::<Handle>())?,
        })
    }

    /// The arguments, in order.
    pub fn args(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.args.map(|(_, text)| text)
    }

    /// The handles and their names.
    pub fn handles(&self) -> impl Iterator<Item = (&'a str, Handle)> + use<'a> {
        self.handles.map(|(head, name)| {
            let raw = head.try_into().map_or(0, u32::from_le_bytes);
            (name, Handle::from_raw(raw))
        })
    }

    /// The handle with this name.
    #[must_use]
    pub fn handle(&self, name: &str) -> Option<Handle> {
        self.handles()
            .find_map(|(other, handle)| (other == name).then_some(handle))
    }
}

/// Records that were checked: `head` bytes, then a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Records<'a> {
    bytes: Reader<'a>,
    left: u16,
    head: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = (&'a [u8], &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let head = self.bytes.take(self.head).ok()?;
        Some((head, self.bytes.text().ok()?))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], StartupError> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(StartupError::Damaged)?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], StartupError> {
        self.take(N)?.try_into().map_err(|_| StartupError::Damaged)
    }
    fn text(&mut self) -> Result<&'a str, StartupError> {
        let length = u16::from_le_bytes(self.array()?);
        core::str::from_utf8(self.take(length.into())?).map_err(|_| StartupError::Damaged)
    }
    /// Checks `count` records, and steps over them.
    fn records(&mut self, count: u16, head: usize) -> Result<Records<'a>, StartupError> {
        let records = Records {
            bytes: *self,
            left: count,
            head,
        };
        for _ in 0..count {
            self.take(head)?;
            self.text()?;
        }
        Ok(records)
    }
}

const _: () = assert!(CONTROL_OFFSET as usize >= super::message::HANDLES_END);

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLES: &[(&str, Handle)] = &[
        ("stdout", Handle::from_raw(0x1001)),
        ("init", Handle::from_raw(0x2002)),
    ];
    const STARTUP: Startup<'_> = Startup {
        name: "shares",
        pid: 5,
        heap_base: 0x41_0000,
        heap_bytes: 1 << 20,
        args: &["60", "", "é"],
        handles: HANDLES,
    };

    fn page() -> ([u8; 4096], usize) {
        let mut page = [0; 4096];
        let used = STARTUP.write(&mut page).unwrap();
        (page, used)
    }

    #[test]
    fn what_is_written_is_read() {
        let (page, _) = page();
        let read = StartupPage::read(&page).unwrap();
        assert_eq!((read.name, read.pid), ("shares", 5));
        assert_eq!(read.heap_base, 0x41_0000);
        assert_eq!(read.heap_bytes, 1 << 20);
        assert!(read.args().eq(["60", "", "é"]));
        assert!(read.handles().eq(HANDLES.iter().copied()));
        assert_eq!(read.handle("init"), Some(Handle::from_raw(0x2002)));
        assert_eq!(read.handle("ini"), None);
    }

    #[test]
    fn the_bytes_are_pinned() {
        let mut page = [0xee; 64];
        let startup = Startup {
            name: "ab",
            pid: 0x102,
            heap_base: 0x40_3000,
            heap_bytes: 0x1000,
            args: &["x"],
            handles: &[("log", Handle::from_raw(0x1003))],
        };
        let used = startup.write(&mut page).unwrap();
        let expected = [
            48, 0, 0, 0, 1, 0, 0, 0, // length, version
            0, 0x30, 0x40, 0, 0, 0, 0, 0, // heap base
            0, 0x10, 0, 0, 0, 0, 0, 0, // heap bytes
            2, 1, 0, 0, 1, 0, 1, 0, // process id, counts
            2, 0, b'a', b'b', 1, 0, b'x', // name, argument
            3, 0x10, 0, 0, 3, 0, b'l', b'o', b'g', // handle
        ];
        assert_eq!(page[..used], expected);
    }

    #[test]
    fn too_much_is_refused() {
        for room in 0..page().1 {
            assert_eq!(
                STARTUP.write(&mut [0; 4096][..room]),
                Err(StartupError::TooLarge)
            );
        }
    }

    #[test]
    fn damage_is_an_error_or_another_page_and_never_a_panic() {
        let (page, used) = page();
        for len in 0..used {
            assert!(StartupPage::read(&page[..len]).is_err());
        }
        for at in 0..used {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = page;
                damaged[at] = value;
                if let Ok(read) = StartupPage::read(&damaged) {
                    assert!(read.args().count() + read.handles().count() <= used);
                }
            }
        }
        let mut other = page;
        other[core::mem::offset_of!(StartupHeader, version)] ^= 2;
        assert_eq!(StartupPage::read(&other), Err(StartupError::Version(3)));
    }
}
