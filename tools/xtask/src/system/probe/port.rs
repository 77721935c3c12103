//! A port of QEMU in the file system.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::super::guest::PATIENCE;

/// How often a port that is not there yet is tried.
const POLL: Duration = Duration::from_millis(5);

/// Connects to a port, whose reads time out. QEMU may have only begun: the file is there before anybody listens.
///
/// # Errors
/// If it is not there in time.
pub fn connect(socket: &Path) -> Result<UnixStream> {
    let deadline = Instant::now() + PATIENCE;
    let stream = loop {
        match UnixStream::connect(socket) {
            Err(error) if is_early(error.kind()) && Instant::now() < deadline => {
                thread::sleep(POLL)
            }
            result => break result.with_context(|| format!("no port {}", socket.display()))?,
        }
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn is_early(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_port_that_is_not_there_yet_is_waited_for() {
        let path = std::env::temp_dir().join(format!("sonde-port-{}", std::process::id()));
        // A file where nobody listens, any more or yet.
        drop(UnixListener::bind(&path).unwrap());
        let client = thread::spawn({
            let path = path.clone();
            move || connect(&path).map(drop)
        });
        thread::sleep(2 * POLL);
        fs::remove_file(&path).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        listener.accept().unwrap();
        client.join().unwrap().unwrap();
        fs::remove_file(&path).unwrap();
    }
}
