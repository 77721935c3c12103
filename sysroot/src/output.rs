//! `println!` and `eprintln!`: to the program's `stdout` if it has one, else to the kernel log.

use core::fmt;

use heapless::Vec;
use ipc::abi::startup::names;
use ipc::proto::stream::{CHUNK_MAX, Chunk, Client};

use crate::{Connection, log};

/// Bytes that are gathered before they are sent.
const BUFFER: usize = 256;

const _: () = assert!(BUFFER <= CHUNK_MAX);

/// Where output goes. Lines that are written at once by several threads do not mix, up to [`BUFFER`] bytes.
struct Output {
    stdout: Option<Connection>,
    gathered: Vec<u8, BUFFER>,
}

impl Output {
    fn flush(&mut self) {
        let bytes = core::mem::take(&mut self.gathered);
        let Some(stdout) = self.stdout else {
            return log::write(&bytes);
        };
        if let Ok(chunk) = Chunk::try_from(bytes.as_slice()) {
            // Whoever read the output is gone: so is the output. A program that wants to know uses the protocol itself.
            let _ = Client::new(stdout).write(&chunk);
        }
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.gathered.is_full() {
                self.flush();
            }
            self.gathered.push(byte).map_err(|_| fmt::Error)?;
        }
        Ok(())
    }
}

/// Writes formatted text to the program's output.
pub fn print(text: fmt::Arguments<'_>) {
    write(text, "");
}

/// Writes formatted text and the end of its line to the program's output.
pub fn print_line(text: fmt::Arguments<'_>) {
    write(text, "\n");
}

fn write(text: fmt::Arguments<'_>, end: &str) {
    let mut output = Output {
        stdout: Connection::named(names::STDOUT),
        gathered: Vec::new(),
    };
    // A value whose formatting fails prints as far as it got.
    let _ = fmt::write(&mut output, text);
    let _ = fmt::Write::write_str(&mut output, end);
    output.flush();
}

/// Writes to the program's output.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print(::core::format_args!($($text)*)) };
}

/// Writes a line to the program's output.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($text:tt)*) => { $crate::output::print_line(::core::format_args!($($text)*)) };
}

/// Writes a line of diagnostics: to the program's output, as there is no other place that its user looks at.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::println!($($text)*) };
}
