//! The keys of this working tree's remote shell: a file that is made once, and that nobody but its owner can read. The boot archive has it
//! for the guest; the client reads it here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context as _, Result};
use remote_shell::{Key, Role};

use crate::workspace::Workspace;

/// Only the owner reads and writes.
const PRIVATE: u32 = 0o600;

/// The file, which is made if it is not there.
///
/// # Errors
/// If it can neither be found nor made.
pub fn file(workspace: &Workspace) -> Result<PathBuf> {
    made(&workspace.target).context("the keys of the remote shell cannot be made")
}

/// Makes the file under another name first, and gives it its own only if that is free: who comes second takes the first one's keys.
fn made(directory: &Path) -> io::Result<PathBuf> {
    let path = directory.join("remote.keys");
    if path.try_exists()? {
        return Ok(path);
    }
    fs::create_dir_all(directory)?;
    let temporary = path.with_extension(process::id().to_string());
    write_private(&temporary, random_keys()?.as_bytes())?;
    let linked = fs::hard_link(&temporary, &path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(path),
    }
}

/// Writes a file that only its owner can read, from its first byte on.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    // The mode is that of a new file; one that is there keeps its own.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(path)?;
    file.write_all(content)
}

/// A key of each role, in the format that the guest reads.
fn random_keys() -> io::Result<String> {
    let mut random = File::open("/dev/urandom")?;
    let mut text = String::new();
    for role in [Role::Control, Role::Observe] {
        let mut bytes = [0; 32];
        random.read_exact(&mut bytes)?;
        let key = Key::new(bytes).to_hex();
        text.push_str(&format!("{role} {key}\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use remote_shell::KeyRing;
    use std::os::unix::fs::PermissionsExt as _;

    /// An empty directory below that of the builds, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let target = Workspace::find().unwrap().target;
            let path = target.join(format!("{name}-{}", process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// What others than the owner may do with a file.
    fn others(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o077
    }

    #[test]
    fn keys_are_made_once_and_are_their_owners_alone() {
        let scratch = Scratch::new("keys-once");
        let path = made(&scratch.0).unwrap();
        let first = fs::read_to_string(&path).unwrap();
        assert_eq!(others(&path), 0);
        assert_eq!(made(&scratch.0).unwrap(), path);
        assert_eq!(fs::read_to_string(&path).unwrap(), first);
        let files = fs::read_dir(&scratch.0).unwrap();
        assert_eq!(files.count(), 1, "something is left beside it");
    }

    #[test]
    fn each_role_has_a_key_of_its_own() {
        let text = random_keys().unwrap();
        let ring = KeyRing::parse(text.as_bytes()).unwrap();
        let keys = [Role::Control, Role::Observe].map(|role| ring.key(role).unwrap());
        assert_ne!(keys[0], keys[1]);
        assert_ne!(text, random_keys().unwrap());
    }

    #[test]
    fn a_file_that_others_could_read_is_replaced_by_one_that_they_cannot() {
        let scratch = Scratch::new("keys-private");
        let path = scratch.0.join("file");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(others(&path), 0);
    }
}
