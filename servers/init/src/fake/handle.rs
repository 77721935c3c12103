//! Handles that are counted, and can do no more than their rights allow.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use ipc::abi::{Error, Rights};

use super::Ledger;

/// What every handle that the kernel makes can be.
pub(super) const SHARE: Rights = Rights::DUPLICATE.union(Rights::TRANSFER);

/// Refuses as the kernel does: a right that is asked for must be there.
pub(super) fn has(rights: Rights, needed: Rights) -> Result<(), Error> {
    if rights.contains(needed) {
        Ok(())
    } else {
        Err(Error::MissingRight)
    }
}

/// How many ears of an endpoint a handle with these rights is.
pub(super) fn ears(rights: Rights) -> usize {
    rights.contains(Rights::RECEIVE).into()
}

/// An open handle of init.
pub struct FakeHandle {
    ledger: Rc<RefCell<Ledger>>,
    /// Process that a thread's handle belongs to.
    pub(super) pid: u32,
    /// The endpoint that it names; 0 if it is to something else.
    pub(super) endpoint: usize,
    pub(super) rights: Rights,
}

impl fmt::Debug for FakeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("handle")
    }
}

impl Drop for FakeHandle {
    fn drop(&mut self) {
        let mut ledger = self.ledger.borrow_mut();
        ledger.open -= 1;
        ledger.ears[self.endpoint] -= ears(self.rights);
    }
}

impl FakeHandle {
    pub fn new(ledger: &Rc<RefCell<Ledger>>, rights: Rights) -> Self {
        Self::to_endpoint(ledger, rights, 0)
    }

    pub(super) fn to_endpoint(
        ledger: &Rc<RefCell<Ledger>>,
        rights: Rights,
        endpoint: usize,
    ) -> Self {
        let mut open = ledger.borrow_mut();
        open.open += 1;
        open.ears[endpoint] += ears(rights);
        drop(open);
        Self {
            ledger: Rc::clone(ledger),
            pid: 0,
            endpoint,
            rights,
        }
    }
}

/// A process handle.
pub struct ProcessHandle {
    pub(super) pid: u32,
    pub(super) _open: FakeHandle,
}
