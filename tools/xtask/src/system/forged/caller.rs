//! A client of the remote shell at the test's end of the cable.

use std::time::Instant;

use anyhow::{Result, bail, ensure};
use remote_shell::{Client, ClientEvent, DATAGRAM_MAX, Mode, Status};

use super::GATEWAY;
use super::end::End;
use super::frame;
use crate::qemu::REMOTE_SHELL_PORT;
use crate::system::remote::{exec, random};

/// One command's session, from its hello on.
pub struct Caller {
    client: Client,
    epoch: Instant,
    port: u16,
    output: Vec<u8>,
}

impl Caller {
    /// Asks for a command, from a port of its own. The port says the seed, too.
    pub fn new(end: &mut End, mode: &Mode, line: &str, port: u16) -> Result<Self> {
        end.listen_at(port);
        let client = Client::new(
            mode.clone(),
            exec(line)?,
            random(port.into()),
            remote_shell::Instant::default(),
        );
        Ok(Self {
            client,
            epoch: Instant::now(),
            port,
            output: Vec::new(),
        })
    }

    /// Takes what has come, and sends what is due; the command's output, once it has ended well and the server knows.
    pub fn turn(&mut self, end: &mut End) -> Result<Option<String>> {
        let now = remote_shell::Instant::default() + self.epoch.elapsed();
        while let Some(datagram) = end.heard() {
            self.client.receive(now, &datagram);
        }
        let mut datagram = [0; DATAGRAM_MAX];
        while let Some(length) = self.client.transmit(now, &mut datagram) {
            let ports = (self.port, REMOTE_SHELL_PORT);
            let frame = frame::datagram(GATEWAY, end.machine, ports, &datagram[..length]);
            end.send(&frame)?;
        }
        while let Some(event) = self.client.event() {
            match event {
                ClientEvent::Connected { .. } => {}
                ClientEvent::Output(_, bytes) => self.output.extend_from_slice(&bytes),
                ClientEvent::Finished(status) => ensure!(status == Status::Success, "{status:?}"),
                other => bail!("{other:?} after {}", String::from_utf8_lossy(&self.output)),
            }
        }
        if !self.client.is_over() {
            return Ok(None);
        }
        Ok(Some(String::from_utf8(std::mem::take(&mut self.output))?))
    }
}
