//! Handles that are owned: dropping one closes it.

use core::mem::ManuallyDrop;

use ipc::abi::{Error, Handle, ObjectType, Rights};

use crate::syscall;

/// A handle of this process that nobody else will close.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnedHandle(Handle);

impl OwnedHandle {
    /// Takes charge of a handle that the kernel just gave out.
    #[must_use]
    pub const fn new(handle: Handle) -> Self {
        Self(handle)
    }
    /// Its number. Whoever keeps it past the owner names nothing.
    #[must_use]
    pub const fn raw(&self) -> Handle {
        self.0
    }
    /// Gives up ownership without closing.
    #[must_use]
    pub fn into_raw(self) -> Handle {
        ManuallyDrop::new(self).0
    }
    /// Another handle to the same object, with some of its rights.
    ///
    /// # Errors
    /// `MissingRight` without DUPLICATE or for a right that this handle lacks, `LimitReached` if the table is full.
    pub fn duplicate(&self, rights: Rights) -> Result<Self, Error> {
        duplicate(self.0, rights)
    }
    /// What it names: type, rights, badge.
    ///
    /// # Errors
    /// `Unsupported` if the kernel knows types that this program does not.
    pub fn info(&self) -> Result<(ObjectType, Rights, u64), Error> {
        let (kind, rights, badge) = syscall::handle_info(self.0)?;
        let kind = u8::try_from(kind).ok().and_then(ObjectType::from_raw);
        Ok((kind.ok_or(Error::Unsupported)?, rights, badge))
    }
}

impl Drop for OwnedHandle {
    fn drop(&mut self) {
        // It can only fail if the handle was moved away in a message whose call failed later: then it is gone already.
        let _ = syscall::handle_close(self.0);
    }
}

/// Another handle to what `handle` names, with some of its rights.
///
/// # Errors
/// `MissingRight` without DUPLICATE or for a right that `handle` lacks, `LimitReached` if the table is full.
pub fn duplicate(handle: Handle, rights: Rights) -> Result<OwnedHandle, Error> {
    syscall::handle_duplicate(handle, rights).map(OwnedHandle)
}

/// A handle to an endpoint with a badge, by which its server will know the caller.
///
/// # Errors
/// `MissingRight` without MINT, `LimitReached` if the table is full.
pub fn mint(endpoint: Handle, badge: u64, rights: Rights) -> Result<OwnedHandle, Error> {
    syscall::handle_mint(endpoint, badge, rights).map(OwnedHandle)
}
