//! The other end of a machine's Ethernet cable: whole frames, each behind its length in four bytes, as QEMU's `-netdev socket` has
//! them (`net/socket.c`). Nothing is lost on it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::test::Verdict;

/// More than any frame of the machine's has.
const FRAME_MAX: usize = 2048;

/// A cable that no machine is at yet.
pub struct Plug(TcpListener);

impl Plug {
    /// One at a port of the loopback interface that the host chooses.
    pub fn new() -> Result<Self> {
        Ok(Self(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?))
    }
    pub fn port(&self) -> Result<u16> {
        Ok(self.0.local_addr()?.port())
    }
    /// The cable of the machine that has booted at it.
    pub fn cable(self) -> Result<Cable> {
        let (stream, _) = self.0.accept()?;
        stream.set_nodelay(true)?;
        let came = Vec::new();
        Ok(Cable { stream, came })
    }
}

/// The end of a cable.
pub struct Cable {
    stream: TcpStream,
    /// What came and was not given on: frames, the last of them perhaps in part.
    came: Vec<u8>,
}

impl Cable {
    pub fn send(&mut self, frame: &[u8]) -> Verdict {
        let length = u32::try_from(frame.len())?.to_be_bytes();
        self.stream.write_all(&[&length, frame].concat())?;
        Ok(())
    }

    /// The next frame that comes within this time.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>> {
        self.stream.set_read_timeout(Some(wait))?;
        loop {
            if let Some((length, rest)) = self.came.split_first_chunk() {
                let length = u32::from_be_bytes(*length) as usize;
                ensure!(length <= FRAME_MAX, "a frame of {length} bytes");
                if let Some(frame) = rest.get(..length) {
                    let frame = frame.to_vec();
                    self.came.drain(..4 + length);
                    return Ok(Some(frame));
                }
            }
            let mut buffer = [0; FRAME_MAX];
            match self.stream.read(&mut buffer) {
                Ok(0) => bail!("the machine has ended"),
                Ok(count) => self.came.extend_from_slice(&buffer[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(None),
                    _ => return Err(error.into()),
                },
            }
        }
    }
}
