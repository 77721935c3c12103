//! Synchronous calls. A caller gives its CPU to the server and gets it back with the reply; nothing is copied that the message
//! does not hold, and two threads that wait for each other meet without the scheduler.

pub mod call;
pub mod donate;
pub mod receive;
pub mod reply;
pub mod signal;
pub mod transfer;
