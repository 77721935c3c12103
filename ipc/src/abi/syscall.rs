//! The system calls: each one's number, name and arguments, declared once in `for_each_syscall!`. `docs/abi.md` says what each argument
//! must be, and each error of each call; a test holds it to this table.
//!
//! # Registers
//! `rax` number in, status out (0 or an [`Error`](super::Error)); arguments `rdi`, `rsi`, `rdx`, `r10`, `r8`, `r9`;
//! results `rdi`, `rsi`, `rdx`. `rcx` and `r11` are clobbered by the instruction; all others are kept.
//! The message calls also pass words in `r10`, `r8`, `r9`, `r12`, both ways ([`super::message`]).
//!
//! `buffer` in a description is the calling thread's IPC buffer.

/// Calls `$callback! { rows }` with the whole table. A row is
/// `number name(argument: Type, ..) -> (result: Type, ..) "what it does";`
#[macro_export]
macro_rules! for_each_syscall {
    ($callback:ident) => {
        $callback! {
            0 null() -> () "does nothing; its cost is the cost of entering the kernel";
            1 call(endpoint: Handle, tag: Tag, deadline: u64) -> (badge: u64, tag: Tag) "message: sends it, and waits for the reply";
            2 receive(endpoint: Handle, deadline: u64) -> (badge: u64, tag: Tag, delivery: u64) "message: drops the call served, if any, then waits for a call, for bits of the bound notification or for a closed badge; endpoint 0 waits for bits alone";
            3 reply(tag: Tag) -> () "message: answers the call served";
            4 reply_receive(endpoint: Handle, tag: Tag, deadline: u64) -> (badge: u64, tag: Tag, delivery: u64) "message: answers the call served, then receives";
            5 reply_park() -> (reply: Handle) "sets the call served aside as a handle";
            6 reply_take(reply: Handle) -> () "takes a parked call up again; the thread must serve none";
            7 signal(notification: Handle, bits: u64) -> () "sets bits and wakes who waits for them";
            8 wait(notification: Handle, deadline: u64) -> (bits: u64) "waits until a bit is set, then takes all bits";
            9 bind(notification: Handle, thread: Handle) -> () "delivers the notification's bits in the thread's receive; a thread and a notification have at most one such bond; thread 0 unbinds";
            10 timer_set(notification: Handle, bits: u64, deadline: u64) -> () "signals the bits at the deadline, once; `NEVER` cancels; a new call replaces the last";
            11 sleep(deadline: u64) -> () "waits until the deadline";
            12 yield_now() -> () "lets another ready thread of the same priority run";
            13 handle_close(handle: Handle) -> () "gives the handle up";
            14 handle_duplicate(handle: Handle, rights: Rights) -> (copy: Handle) "makes another handle with those of its rights";
            15 handle_mint(endpoint: Handle, badge: u64, rights: Rights) -> (minted: Handle) "makes an endpoint handle with a badge; badge 0 is none";
            16 handle_info(handle: Handle) -> (kind: u64, rights: Rights, badge: u64) "says what a handle names";
            17 handle_give(process: Handle, handle: Handle, rights: Rights) -> (there: Handle) "moves a handle into a process, with those of its rights; needs MANAGE on the process";
            18 endpoint_create() -> (endpoint: Handle) "makes an endpoint";
            19 notification_create() -> (notification: Handle) "makes a notification";
            20 memory_create(process: Handle, pages: u64, contiguous: u64) -> (memory: Handle) "makes a memory object of zeroed pages, charged to a process (0: the caller; else needs MANAGE); restarted until done";
            21 memory_physical(system: Handle, base: u64, pages: u64) -> (memory: Handle) "makes a memory object of device memory, uncached; never RAM or an interrupt controller";
            22 memory_part(memory: Handle, first: u64, pages: u64) -> (part: Handle) "makes a handle to some pages of a contiguous object";
            23 memory_info(memory: Handle) -> (pages: u64, base: u64) "says its pages, and its physical base if it is contiguous";
            24 map(process: Handle, memory: Handle, address: u64, first: u64, pages: u64, rights: Rights) -> () "maps pages of an object with READ, WRITE or EXECUTE rights, never both of the last two; process 0 is the caller; restarted until done";
            25 unmap(process: Handle, address: u64, pages: u64) -> () "unmaps a whole mapping, named by its address and pages; returns once no CPU can use it";
            26 protect(process: Handle, address: u64, pages: u64, rights: Rights) -> () "changes the rights of a whole mapping, to less or to what its object's handle allowed; returns once no CPU uses the old";
            27 process_create(system: Handle, quota_pages: u64, image: u64, notification: Handle, bits: u64) -> (process: Handle) "makes a process with an empty address space; the quota is taken from the caller's; its end signals the bits; its name is in the buffer";
            28 process_exit(code: u64) -> () "ends the calling process; does not return";
            29 process_kill(process: Handle, code: u64) -> () "ends a process";
            30 process_status(process: Handle) -> () "writes a ProcessStatus to the buffer; process 0 is the caller";
            31 thread_create(process: Handle, entry: u64, stack: u64, argument: u64, base: u64, buffer: Handle) -> (thread: Handle) "makes a held thread: RIP, RSP, RDI, FS base; the memory object's first page is its IPC buffer; process 0 is the caller";
            32 thread_start(thread: Handle) -> () "lets a held thread run";
            33 thread_set(thread: Handle, priority: u64, cpu: u64) -> () "sets priority (0 to 31, at most the caller's own) and CPU (`u64::MAX`: any); thread 0 is the caller";
            34 thread_exit() -> () "ends the calling thread; the last one ends the process; does not return";
            35 thread_info(thread: Handle) -> (tid: u64, state: u64, cpu_ns: u64) "says a thread's id, state and time";
            36 interrupt_create(system: Handle, line: u64, notification: Handle, bits: u64) -> (interrupt: Handle, address: u64, data: u64) "takes an interrupt line; each interrupt masks it and signals the bits; line `BY_MESSAGE` takes a free one, which a device signals by writing the data to the address";
            37 interrupt_ack(interrupt: Handle) -> () "unmasks the line";
            38 ports_create(system: Handle, first: u64, count: u64) -> (ports: Handle) "makes a handle to I/O ports";
            39 port_read(ports: Handle, offset: u64, bytes: u64) -> (value: u64) "reads 1, 2 or 4 bytes";
            40 port_write(ports: Handle, offset: u64, bytes: u64, value: u64) -> () "writes 1, 2 or 4 bytes";
            41 log_write(system: Handle, len: u64) -> () "appends the buffer's first bytes to the kernel log as lines of the caller";
            42 log_read(system: Handle, position: u64) -> (next: u64, len: u64, lost: u64) "copies log bytes from a position to the buffer; positions count bytes since boot";
            43 system_info(system: Handle, kind: u64, index: u64) -> (len: u64) "writes a record to the buffer";
            44 system_power(system: Handle, action: u64) -> () "ends or restarts the machine, as a `PowerAction` says; does not return";
            45 profiler_start(profiler: Handle, source: u64, specs: u64) -> (source: u64) "arms every CPU at its next tick; the event specifications are in the buffer";
            46 profiler_stop(profiler: Handle) -> () "disarms every CPU at its next tick";
            47 profiler_status(profiler: Handle) -> () "writes a ProfilerStatus to the buffer";
            48 profiler_cpu(profiler: Handle, cpu: u64) -> (head: u64) "writes one CPU's SampleCounters to the buffer";
            49 profiler_rings(profiler: Handle) -> (memory: Handle, bytes: u64) "makes a read-only handle to all rings, and says the bytes of one";
            50 profiler_notify(profiler: Handle, notification: Handle, bits: u64) -> () "signals the bits from the tick when the phase changes or a ring fills";
            51 trace_control(system: Handle, on: u64) -> () "1: every CPU records its events; 0: none does";
            52 trace_read(system: Handle, cpu: u64, position: u64) -> (next: u64, len: u64, lost: u64) "copies a CPU's trace records behind a position to the buffer; positions count its records since boot, and one past the last, such as `TRACE_NEWEST`, means the last";
            53 profiler_monitor(profiler: Handle, cpu: u64) -> () "writes one CPU's MonitorInfo to the buffer";
        }
    };
}

/// Builds [`Syscall`] from the table.
macro_rules! syscall_enum {
    ($($number:literal $name:ident($($arg:ident: $arg_type:ty),*) -> ($($ret:ident: $ret_type:ty),*) $text:literal;)*) => {
        /// A system call, by number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        #[expect(non_camel_case_types, reason = "a variant is named as the call it stands for")]
        pub enum Syscall { $(#[doc = $text] $name = $number,)* }

        impl Syscall {
            /// Every call, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The call with this number.
            #[must_use]
            pub const fn from_raw(raw: u64) -> Option<Self> {
                match raw { $($number => Some(Self::$name),)* _ => None }
            }
            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
            /// What it does.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
            /// The names of its arguments.
            #[must_use]
            pub const fn arguments(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$(stringify!($arg)),*],)* }
            }
            /// The names of its results.
            #[must_use]
            pub const fn results(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$(stringify!($ret)),*],)* }
            }
        }
    };
}
for_each_syscall!(syscall_enum);

/// A value that travels in a register.
pub trait Register: Sized {
    /// Its register form.
    fn to_raw(self) -> u64;
    /// From a register; `None` if no such value exists.
    fn from_raw(raw: u64) -> Option<Self>;
}

impl Register for u64 {
    fn to_raw(self) -> u64 {
        self
    }
    fn from_raw(raw: u64) -> Option<Self> {
        Some(raw)
    }
}

impl Register for super::Handle {
    fn to_raw(self) -> u64 {
        self.raw().into()
    }
    fn from_raw(raw: u64) -> Option<Self> {
        u32::try_from(raw).ok().map(Self::from_raw)
    }
}

impl Register for super::Rights {
    fn to_raw(self) -> u64 {
        self.bits().into()
    }
    fn from_raw(raw: u64) -> Option<Self> {
        Self::from_bits(u32::try_from(raw).ok()?)
    }
}

impl Register for super::Tag {
    fn to_raw(self) -> u64 {
        self.raw()
    }
    fn from_raw(raw: u64) -> Option<Self> {
        Some(Self::from_raw(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_dense_and_fits_the_registers() {
        for (number, &entry) in Syscall::ALL.iter().enumerate() {
            assert_eq!(
                Syscall::from_raw(number as u64),
                Some(entry),
                "{}",
                entry.name()
            );
            assert!(
                entry.arguments().len() <= 6 && entry.results().len() <= 3,
                "{}",
                entry.name()
            );
        }
        assert_eq!(Syscall::from_raw(Syscall::ALL.len() as u64), None);
    }
}
