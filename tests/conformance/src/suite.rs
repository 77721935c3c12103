//! Makes the calls, compares each answer with what the document says, and keeps count.

use core::fmt;

use ipc::abi::{Error, Syscall};
use sysroot::{print, println};

use crate::buffer;
use crate::raw::{self, Registers, Returned};
use crate::spec::{Arguments, Want};
use crate::table;

/// Numbers that no call has are counted behind those that one has.
const ROWS: usize = Syscall::ALL.len() + 1;
/// What `r12` holds, which only messages carry.
pub const LAST_WORD: u64 = 0x12_12_12;
/// Columns of the table before the errors, and those of a line.
const INDENT: usize = 36;
const COLUMNS: usize = 80;

/// The cases of one call.
#[derive(Clone, Copy)]
struct Row {
    cases: u32,
    passed: u32,
    /// Bit per error that was answered.
    errors: u64,
}

/// The count.
pub struct Suite {
    rows: [Row; ROWS],
}

impl Suite {
    /// Nothing tried yet.
    pub const fn new() -> Self {
        let row = Row {
            cases: 0,
            passed: 0,
            errors: 0,
        };
        Self { rows: [row; ROWS] }
    }

    /// Makes a call from the first thread. Its status must be what is wanted; if it fails, no register and no byte of the buffer may
    /// change, and if it succeeds, no register but those of its results.
    pub fn check(
        &mut self,
        what: Syscall,
        case: impl fmt::Display,
        arguments: &Arguments,
        want: Want,
    ) -> Returned {
        self.check_case(what, format_args!("{case}"), arguments, want)
    }

    fn check_case(
        &mut self,
        what: Syscall,
        case: fmt::Arguments<'_>,
        arguments: &Arguments,
        want: Want,
    ) -> Returned {
        let (before, sent, returned) = make(what as u64, arguments);
        let answer = answer(&returned);
        let fault = if answer != Some(want) {
            Some("")
        } else if want.is_err() && buffer::read() != before {
            Some(": it changed the buffer")
        } else if kept(what, &sent, &returned, want) {
            None
        } else {
            Some(": it changed a register that is no result")
        };
        let ok = fault.is_none();
        if !ok {
            println!(
                "FAIL {} ({case}) of {sent:x?}: {}, documented {}{}",
                what.name(),
                Answer(returned.status),
                Wanted(want),
                fault.unwrap_or_default()
            );
        }
        self.count(what as usize, answer, ok);
        returned
    }

    /// Makes a call with a number that no call has.
    pub fn check_unknown(&mut self, number: u64) {
        let (_, sent, returned) = make(number, &[1, 2, 3, 4, 5, 6]);
        let ok = answer(&returned) == Some(Err(Error::BadSyscall)) && returned.registers == sent;
        if !ok {
            println!(
                "FAIL call number {number:#x}: {}, documented BadSyscall",
                Answer(returned.status)
            );
        }
        self.count(ROWS - 1, answer(&returned), ok);
    }

    /// Counts what a call answered that another thread made, or one that had more than one right answer.
    pub fn record(
        &mut self,
        what: Syscall,
        case: impl fmt::Display,
        answer: Want,
        allowed: &[Want],
    ) {
        let ok = allowed.contains(&answer);
        if !ok {
            print!(
                "FAIL {} ({case}): {}, documented",
                what.name(),
                Wanted(answer)
            );
            for want in allowed {
                print!(" {}", Wanted(*want));
            }
            println!();
        }
        self.count(what as usize, Some(answer), ok);
    }

    /// Counts something that must hold after a call.
    pub fn holds(&mut self, what: Syscall, case: impl fmt::Display, ok: bool) {
        if !ok {
            println!("FAIL {} ({case}): it does not hold", what.name());
        }
        self.count(what as usize, None, ok);
    }

    /// Counts two values that must be equal after a call.
    pub fn equal<T: PartialEq + fmt::Debug>(
        &mut self,
        what: Syscall,
        case: impl fmt::Display,
        got: T,
        want: T,
    ) {
        let ok = got == want;
        if !ok {
            println!(
                "FAIL {} ({case}): {got:x?}, documented {want:x?}",
                what.name()
            );
        }
        self.count(what as usize, None, ok);
    }

    fn count(&mut self, row: usize, answer: Option<Want>, ok: bool) {
        let Some(row) = self.rows.get_mut(row) else {
            return;
        };
        row.cases += 1;
        row.passed += u32::from(ok);
        if let Some(Err(error)) = answer {
            row.errors |= 1 << error as u64;
        }
    }

    /// Prints the table and the verdict. False if a case failed, or a call has none.
    pub fn print(&self) -> bool {
        println!("{:<20} {:>6} {:>6}  errors", "call", "cases", "passed");
        let names = Syscall::ALL.iter().map(|what| what.name());
        let (mut cases, mut passed, mut bare) = (0, 0, 0);
        for (name, row) in names.chain(["(no call)"]).zip(&self.rows) {
            print_row(name, row);
            cases += row.cases;
            passed += row.passed;
            if row.cases == 0 {
                println!("FAIL {name}: it has no cases");
                bare += 1;
            }
        }
        println!(
            "conformance: {} calls, {cases} cases, {passed} passed",
            Syscall::ALL.len() - bare
        );
        cases == passed && bare == 0
    }
}

fn make(number: u64, arguments: &Arguments) -> ([u8; buffer::BYTES], Registers, Returned) {
    let [a, b, c, d, e, f] = *arguments;
    let sent = [a, b, c, d, e, f, LAST_WORD];
    let before = buffer::read();
    // SAFETY: the tables and cases of this program name only what its world made, and addresses of other processes or of the
    // scratch area, as `enter` asks.
    let returned = unsafe { raw::enter(number, sent) };
    (before, sent, returned)
}

/// What a call answered; none if its status is not in the table.
pub fn answer(returned: &Returned) -> Option<Want> {
    match returned.status {
        0 => Some(Ok(())),
        number => Error::from_raw(number).map(Err),
    }
}

/// Whether a call left all registers alone that carry no result.
fn kept(what: Syscall, sent: &Registers, returned: &Returned, want: Want) -> bool {
    let receives = matches!(
        what,
        Syscall::call | Syscall::receive | Syscall::reply_receive
    );
    let mut sent = *sent;
    let results = match want {
        Ok(()) if receives => return true,
        Ok(()) => table::results(what).len(),
        Err(_) => {
            if what == Syscall::call && returned.registers[1] != sent[1] {
                // While a call waits, its tag is kept as it will arrive.
                sent[1] = ipc::abi::Tag::from_raw(sent[1]).raw();
            }
            0
        }
    };
    returned.registers[results..] == sent[results..]
}

fn print_row(name: &str, row: &Row) {
    print!("{name:<20} {:>6} {:>6} ", row.cases, row.passed);
    let mut column = INDENT;
    let seen = |error: &Error| row.errors >> *error as u64 & 1 == 1;
    for error in Error::ALL.into_iter().filter(seen) {
        let mut width = Width(0);
        // Counting cannot fail.
        let _ = fmt::write(&mut width, format_args!(" {error:?}"));
        if column + width.0 > COLUMNS {
            print!("\n{:<1$}", "", INDENT - 1);
            column = INDENT;
        }
        print!(" {error:?}");
        column += width.0;
    }
    println!();
}

/// Counts the bytes of a text.
struct Width(usize);

impl fmt::Write for Width {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// A status as it is named.
struct Answer(u64);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Error::from_raw(self.0) {
            None if self.0 == 0 => f.write_str("it succeeded"),
            None => write!(f, "it answered {:#x}", self.0),
            Some(error) => write!(f, "{error:?}"),
        }
    }
}

/// What was wanted, as it is named.
struct Wanted(Want);

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(()) => f.write_str("success"),
            Err(error) => write!(f, "{error:?}"),
        }
    }
}
