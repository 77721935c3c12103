//! The @name@ server on the machine: its endpoint, and the loop that serves it.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
sysroot::entry!(server::main);

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
mod server {
    use ::@name@::@Name@;
    use ipc::abi::NEVER;
    use ipc::proto::{Message, @name@};
    use sysroot::{Event, ExitCode, Port, println, startup};

    /// The endpoint, as this program's entry in system.toml has it.
    const ENDPOINT: &str = "serve:@name@";

    /// Serves until the kernel lets it no longer.
    pub fn main() -> ExitCode {
        let Some(endpoint) = startup::handle(ENDPOINT) else {
            println!("was not given {ENDPOINT}");
            return ExitCode::FAILURE;
        };
        let mut port = Port::new(endpoint);
        let mut message = Message::new();
        let mut server = @Name@::default();
        loop {
            match port.receive(NEVER, &mut message) {
                Event::Call { badge } => {
                    port.serve(badge, &mut message, &mut server, @name@::dispatch);
                }
                Event::Closed { .. } | Event::Notified(_) | Event::TimedOut => {}
                Event::Failed(error) => {
                    println!("{error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
}
