//! The endpoints that programs serve, as init keeps them.
//!
//! init holds each open for as long as its server runs or is about to, so that callers have it before the server runs and
//! between two of its instances. Otherwise it is dead, and every call there fails at once: no call waits for a server that may
//! never come.

use alloc::string::String;
use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::proto::system::{Program, Start, SystemConfig};

use crate::machine::Machine;

/// An endpoint that some program serves.
struct Endpoint<H> {
    name: String,
    /// With RECEIVE; `None` while it is dead.
    handle: Option<H>,
}

/// Every endpoint of the configuration.
pub struct Endpoints<H>(Vec<Endpoint<H>>);

impl<H> Endpoints<H> {
    /// Opens those of the servers that start with the system; those of the others are dead until they start.
    ///
    /// # Errors
    /// The kernel has no room for them.
    pub fn new(
        config: &SystemConfig,
        machine: &mut impl Machine<Handle = H>,
    ) -> Result<Self, Error> {
        let mut endpoints = Self(Vec::new());
        for program in &config.programs {
            let served = program.serves.iter().cloned();
            let dead = served.map(|name| Endpoint { name, handle: None });
            endpoints.0.extend(dead);
            if program.start == Start::Boot {
                endpoints.open(program, machine)?;
            }
        }
        Ok(endpoints)
    }

    /// The endpoint of this name, unless it is dead.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&H> {
        let known = self.0.iter().find(|known| known.name == name);
        known.and_then(|known| known.handle.as_ref())
    }

    /// Makes those of a server anew that are dead.
    ///
    /// # Errors
    /// The kernel has no room for them.
    pub fn open(
        &mut self,
        program: &Program,
        machine: &mut impl Machine<Handle = H>,
    ) -> Result<(), Error> {
        for endpoint in self.served_by(program) {
            if endpoint.handle.is_none() {
                endpoint.handle = Some(machine.create_endpoint()?);
            }
        }
        Ok(())
    }

    /// Fails the calls that wait for a server that died. Whether the end of another process was heard of meanwhile.
    pub fn flush(&mut self, program: &Program, machine: &mut impl Machine<Handle = H>) -> bool {
        let mut heard = false;
        for endpoint in self.served_by(program) {
            if let Some(handle) = &endpoint.handle {
                heard |= machine.flush(handle);
            }
        }
        heard
    }

    /// Ends those of a server that will not run: every call there fails, those that wait as well.
    pub fn shut(&mut self, program: &Program) {
        for endpoint in self.served_by(program) {
            endpoint.handle = None;
        }
    }

    fn served_by(&mut self, program: &Program) -> impl Iterator<Item = &mut Endpoint<H>> {
        let endpoints = self.0.iter_mut();
        endpoints.filter(|endpoint| program.serves.contains(&endpoint.name))
    }
}
