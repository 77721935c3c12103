//! Other processes: making one, filling it and starting it.
//!
//! The calls that are unsafe on one's own address space are safe here, because a [`Process`] is only ever made anew, and so
//! never the caller's own.

use ipc::abi::exit::ProcessStatus;
use ipc::abi::{Error, Handle, Rights};

use crate::{OwnedHandle, record, syscall};

/// A process that this program made.
#[derive(Debug)]
pub struct Process(OwnedHandle);

/// How the first thread of a process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstThread {
    /// RIP.
    pub entry: u64,
    /// RSP.
    pub stack: u64,
    /// RDI.
    pub argument: u64,
    /// FS base.
    pub base: u64,
}

impl Process {
    /// Makes an empty process; its end signals `bits` of the notification. The quota is taken from the caller's.
    ///
    /// # Errors
    /// See the call `process_create`.
    pub fn create(
        system: Handle,
        name: &str,
        quota_pages: u64,
        image: u32,
        notification: Handle,
        bits: u64,
    ) -> Result<Self, Error> {
        record::process_create(system, name, quota_pages, image, notification, bits)
            .map(|process| Self(OwnedHandle::new(process)))
    }

    /// Makes a memory object of zeroed pages at its expense.
    ///
    /// # Errors
    /// See the call `memory_create`.
    pub fn memory(&self, pages: u64) -> Result<OwnedHandle, Error> {
        syscall::memory_create(self.0.raw(), pages, 0).map(OwnedHandle::new)
    }

    /// Maps pages of a memory object into it.
    ///
    /// # Errors
    /// See the call `map`.
    pub fn map(
        &self,
        memory: Handle,
        address: u64,
        first: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), Error> {
        // SAFETY: the process is not the caller's own.
        unsafe { syscall::map(self.0.raw(), memory, address, first, pages, rights) }
    }

    /// Makes a held thread in it, whose IPC buffer is the first page of `buffer`.
    ///
    /// # Errors
    /// See the call `thread_create`.
    pub fn thread(&self, first: FirstThread, buffer: Handle) -> Result<OwnedHandle, Error> {
        // SAFETY: the process is not the caller's own.
        let thread = unsafe {
            syscall::thread_create(
                self.0.raw(),
                first.entry,
                first.stack,
                first.argument,
                first.base,
                buffer,
            )
        };
        thread.map(OwnedHandle::new)
    }

    /// Moves a handle into it, with some of its rights; the number that it has there.
    ///
    /// # Errors
    /// See the call `handle_give`. The handle is closed then.
    pub fn give(&self, handle: OwnedHandle, rights: Rights) -> Result<Handle, Error> {
        let there = syscall::handle_give(self.0.raw(), handle.raw(), rights)?;
        let _ = handle.into_raw();
        Ok(there)
    }

    /// Its state.
    ///
    /// # Errors
    /// See the call `process_status`.
    pub fn status(&self) -> Result<ProcessStatus, Error> {
        record::process_status(self.0.raw())
    }

    /// Ends it.
    ///
    /// # Errors
    /// See the call `process_kill`.
    pub fn kill(&self, code: u64) -> Result<(), Error> {
        syscall::process_kill(self.0.raw(), code)
    }
}
