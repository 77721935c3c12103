//! What came of the datagrams that reached the server, by name.

/// Counters since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Sessions that were opened, lines of text included.
    pub opened: u64,
    /// Pings that were answered.
    pub pings: u64,
    /// Challenges that were sent.
    pub challenges: u64,
    /// Datagrams dropped because they are neither a packet of this protocol nor, in the open mode, a line of text.
    pub malformed: u64,
    /// Dropped because the server is of the other mode.
    pub wrong_mode: u64,
    /// Hellos dropped because no key made them, and frames that are damaged or forged.
    pub unauthenticated: u64,
    /// Dropped in the open mode because the peer's address is not a private one.
    pub not_private: u64,
    /// Frames dropped because there is no such session with this peer.
    pub no_session: u64,
    /// Frames dropped because they were taken before, or are too old to know.
    pub replayed: u64,
    /// Hellos and lines dropped because there were too many in a short time.
    pub throttled: u64,
    /// Hellos refused because the client speaks another version.
    pub other_version: u64,
    /// Hellos, and first frames, refused because there was no room for another session.
    pub busy: u64,
    /// Sessions that ended because nothing was heard of their peers.
    pub lost: u64,
}
