//! The measuring program: one figure after the other, each printed as a line `NAME least median most rounds`, in instructions.
//!
//! The report's text follows behind a line `text BYTES`, to be compared with the host's. A failure ends the program with a
//! line that says what is wrong, and no figure is worth anything then.

mod buffer;
mod counter;
mod echo;
mod failure;
mod messages;
mod nmis;
mod paths;
mod profiled;
mod programs;
mod reports;
mod rounds;
mod threads;
mod ticks;

use ipc::abi::Syscall;
use ipc::abi::startup::names;
use sysroot::{ExitCode, print, println, record, startup};

use crate::figure::Figure;
use counter::Counter;
use failure::{Failure, kernel};
pub use messages::serve;
use rounds::Rounds;

/// What asks for the sample by a performance counter, of which few machines have one, and for nothing else.
const COUNTER: &str = "counter";
/// What asks for the datagrams that somebody outside sends, and for nothing else.
const ECHO: &str = "echo";

/// Measures everything.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("{}: {failure}", startup::name());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let cpus = startup::info().cpus;
    if cpus != 1 {
        return Err(Failure::Cpus(cpus));
    }
    let counter = Counter::prove()?;
    if startup::args().any(|word| word == COUNTER) {
        return nmis::measure_counter();
    }
    if startup::args().any(|word| word == ECHO) {
        return echo::measure();
    }
    messages::measure(counter)?;
    threads::measure(counter)?;
    ticks::measure()?;
    nmis::measure()?;
    messages::end()?;
    let text = reports::measure(counter)?;
    programs::measure(counter)?;
    paths::measure()?;
    longest_entry()?;
    println!("text {}", text.len());
    print!("{text}");
    Ok(())
}

/// The kernel keeps the longest entry since boot, this program's time included.
fn longest_entry() -> Result<(), Failure> {
    let system = failure::given(names::SYSTEM)?;
    let info = record::cpu_info(system, 0).map_err(kernel(Syscall::system_info))?;
    Rounds::new([info.longest_entry]).print(Figure::LongestEntry);
    Ok(())
}
