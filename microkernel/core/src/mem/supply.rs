//! Where tables and lists get the frames they are made of, and who pays for them.

use crate::base::addr::Frame;
use ipc::abi::Error;

/// A supply of frames on somebody's account.
pub trait Supply {
    /// A frame, charged. Its contents are not defined.
    ///
    /// # Errors
    /// `QuotaExceeded` if the account is used up, `OutOfMemory` if none is free at the moment.
    fn take(&mut self) -> Result<Frame, Error>;

    /// A frame that is no longer used, taken off the account. What other CPUs may still walk or translate through must
    /// be retired, not freed at once: that is so for page tables, and for the frames of a list whose object was mapped.
    fn give(&mut self, frame: Frame);
}
