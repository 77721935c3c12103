"""Sonde in gdb: `gdb -x target/image/gdb.py -ex 'target remote 127.0.0.1:1234'`.

Loads the kernel's symbols at once. Programs all lie at the same address, so those of one program are loaded at a time, and
what tells programs apart is the address space that a CPU has on: the startup page in it has the program's name, its
constants the build-id of its file. The builder writes the numbers above this text.
"""

import os
import struct

import gdb

IMAGE = os.path.dirname(os.path.abspath(__file__))
SYMBOLS = os.path.join(IMAGE, "symbols")
# A note's header (System V ABI, "Note Section"), and its owner: what comes before the 20 bytes of a build-id.
BUILD_ID_NOTE = struct.pack("<III4s", 4, 20, 3, b"GNU\0")


def quoted(path):
    """A path as gdb's commands take it."""
    return '"%s"' % path


def read(address, length):
    """Memory as the selected CPU sees it; None where nothing is mapped."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, length))
    except gdb.MemoryError:
        return None


class Program:
    """What the selected CPU has its address space of."""

    def __init__(self, page):
        """From a startup page: `ipc/src/abi/startup.rs`."""
        (self.heap_base,) = struct.unpack_from("<Q", page, HEAP_OFFSET)
        (self.pid,) = struct.unpack_from("<I", page, PID_OFFSET)
        (arguments,) = struct.unpack_from("<H", page, ARGS_OFFSET)
        words, at = [], TEXTS_OFFSET
        for _ in range(1 + arguments):
            (length,) = struct.unpack_from("<H", page, at)
            words.append(page[at + 2 : at + 2 + length].decode(errors="replace"))
            at += 2 + length
        self.name = words[0]
        self.line = " ".join(words)

    @staticmethod
    def current():
        """None in the kernel's own address space: idle, or starting."""
        page = read(STARTUP_PAGE, PAGE_SIZE)
        if page is None or struct.unpack_from("<I", page, VERSION_OFFSET) != (ABI_VERSION,):
            return None
        return Program(page)

    def symbol_file(self):
        """The whole file of its image."""
        for page in range(PROGRAM_BASE, self.heap_base, PAGE_SIZE):
            note = read(page, len(BUILD_ID_NOTE) + 20) or b""
            if note.startswith(BUILD_ID_NOTE):
                build_id = note[len(BUILD_ID_NOTE) :].hex()
                return os.path.join(SYMBOLS, ".build-id", build_id[:2], build_id[2:] + ".debug")
        raise gdb.GdbError("%s has no build-id" % self.name)


class Loaded:
    """The file whose symbols are loaded for programs."""

    path = None

    @classmethod
    def load(cls, path):
        """Loads those of this file in place of the others."""
        path = os.path.realpath(path)
        if path == cls.path:
            return
        if not os.path.exists(path):
            raise gdb.GdbError("there is no %s: the machine runs another build" % path)
        if cls.path:
            gdb.execute("remove-symbol-file " + quoted(cls.path))
        cls.path = None
        gdb.execute("add-symbol-file " + quoted(path), to_string=True)
        cls.path = path


def file_of(name):
    """The whole file of a program in the boot archive."""
    directory = os.path.join(SYMBOLS, "bin")
    if name not in os.listdir(directory):
        raise gdb.GdbError("no program `%s`: %s" % (name, ", ".join(sorted(os.listdir(directory)))))
    return os.path.join(directory, name)


class Sonde(gdb.Command):
    """Programs on Sonde: which ones run, their symbols, and breakpoints in one of them."""

    def __init__(self):
        super().__init__("sonde", gdb.COMMAND_USER, prefix=True)


class Cpus(gdb.Command):
    """Which program each CPU has the address space of, and where the CPU is: sonde cpus

A CPU is a thread to gdb: `thread 2` selects the second one. Names of functions are shown where their symbols are loaded. Two that run
the same program differ in CR3, so `break share_a if $cr3 == 0x44f000` stops in one of them.
"""

    def __init__(self):
        super().__init__("sonde cpus", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        selected = gdb.selected_thread()
        if selected is None:
            raise gdb.GdbError("not connected: target remote 127.0.0.1:1234")
        for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num):
            thread.switch()
            gdb.write("%s %2d  %s\n" % ("*" if thread.num == selected.num else " ", thread.num, self.describe()))
        selected.switch()

    @staticmethod
    def describe():
        program = Program.current()
        frame = gdb.newest_frame()
        is_user = int(gdb.parse_and_eval("$cs")) & 3 == 3
        place = "%#x" % frame.pc()
        is_known = not is_user or program and os.path.realpath(program.symbol_file()) == Loaded.path
        if is_known and frame.name():
            place += " " + frame.name()
        mode = "user" if is_user else "kernel"
        root = int(gdb.parse_and_eval("$cr3"))
        what = "pid %d %s" % (program.pid, program.line) if program else "no program"
        return "%-6s  %s, cr3 %#x, at %s" % (mode, what, root, place)


class Symbols(gdb.Command):
    """Load the symbols of a program, in place of those of another: sonde program [NAME]

Without a name, those of the program whose address space the selected CPU has. The kernel's are always loaded.
"""

    def __init__(self):
        super().__init__("sonde program", gdb.COMMAND_FILES)

    def invoke(self, argument, _from_tty):
        if argument:
            Loaded.load(file_of(argument))
        else:
            program = Program.current()
            if program is None:
                raise gdb.GdbError("the selected CPU has no program: sonde program NAME, or another CPU (sonde cpus)")
            Loaded.load(program.symbol_file())


class ProgramBreakpoint(gdb.Breakpoint):
    """Stops in one program only. By hardware, because the program need not be there yet."""

    def __init__(self, program, location):
        super().__init__(location, type=gdb.BP_HARDWARE_BREAKPOINT)
        self.program = program

    def stop(self):
        program = Program.current()
        return program is not None and program.name == self.program


class Break(gdb.Command):
    """Break in one program: sonde break NAME LOCATION

A breakpoint is an address, and every program has code there; this one stops only where NAME runs. Loads its symbols. In the
kernel, a plain `break` does.
"""

    def __init__(self):
        super().__init__("sonde break", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument, _from_tty):
        words = argument.split(None, 1)
        if len(words) != 2:
            raise gdb.GdbError("sonde break NAME LOCATION, as in: sonde break shares share_a")
        Loaded.load(file_of(words[0]))
        ProgramBreakpoint(*words)


gdb.execute("set debug-file-directory " + SYMBOLS)
gdb.execute("set breakpoint pending off")
gdb.execute("file " + quoted(os.path.join(IMAGE, "kernel")))
for command in (Sonde, Cpus, Symbols, Break):
    command()
