//! What came of the datagrams that reached the remote shell, by name.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use crate::proto::counters::counters;

counters! {
    /// Counts since the server began. What was dropped got no answer.
    Statistics
    /// Sessions that were opened, lines of text included.
    opened => "sessions opened";
    /// Sessions that ended because nothing was heard of their peers.
    lost => "sessions lost";
    /// Pings that were answered.
    pings => "pings answered";
    /// Clients that asked whether their session is still there.
    questions => "asked for their session";
    /// Challenges that were sent.
    challenges => "challenges sent";
    /// Hellos dropped because no key made them, and frames that are damaged or forged.
    unauthenticated => "by no key of this machine";
    /// Hellos refused because the client speaks another version.
    other_version => "of another version";
    /// Dropped because the server is of the other mode.
    wrong_mode => "of the other mode";
    /// Dropped in the open mode because the peer's address is not a private one.
    not_private => "from no private address";
    /// Dropped because they are neither a packet of this protocol nor, in the open mode, a line of text.
    malformed => "of no known form";
    /// Hellos and lines dropped because there were too many in a short time.
    throttled => "too many at once";
    /// Hellos, and first frames, refused because there was no room for another session.
    busy => "without room for a session";
    /// Frames dropped because there is no such session with this peer.
    no_session => "for no session";
    /// Frames dropped because they were taken before, or are too old to know.
    replayed => "taken before";
    /// Hellos whose answers were dropped, because too many waited to be sent.
    unsent => "too many answers wait";
}
