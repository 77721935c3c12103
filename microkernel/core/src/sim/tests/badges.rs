//! Badges tell a server who calls, and when the last who could has gone.

use super::*;
use ipc::abi::Delivery;

impl Pair {
    /// A badge of the server's, given to the client.
    fn badge(&mut self, value: u64) -> Handle {
        let rights = Rights::CALL | Rights::DUPLICATE | Rights::TRANSFER;
        let minted = [raw(self.ear), value, rights.bits().into()];
        let minted = self.sim.make(self.server, Syscall::handle_mint, &minted);
        // Through the first program, which the server does not know: the test moves it there.
        self.sim.attach(self.server, 0, minted, Rights::all(), true);
        self.serving();
        let answer = [Tag::new(0, 0, 1).raw()];
        self.sim
            .issue(self.server, Syscall::reply, &answer)
            .results();
        self.sim.attached(self.client, 0).0
    }
}

#[test]
fn a_call_carries_the_badge_of_its_handle() {
    let mut pair = Pair::new(4);
    let badge = pair.badge(0xfeed_0000_0001);
    for server_first in [true, false] {
        if server_first {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        let call = [raw(badge), tag(1), NEVER];
        assert_eq!(
            pair.sim.issue(pair.client, Syscall::call, &call),
            Outcome::Blocked
        );
        if !server_first {
            pair.receive(NEVER);
        }
        assert_eq!(pair.sim.outcome(pair.server).results()[0], 0xfeed_0000_0001);
        pair.reply(0).results();
    }
    let info = pair
        .sim
        .issue(pair.client, Syscall::handle_info, &[raw(badge)]);
    assert_eq!(info.results()[2], 0xfeed_0000_0001);
    pair.end();
}

#[test]
fn the_last_handle_of_a_badge_tells_the_server() {
    for waits in [true, false] {
        let mut pair = Pair::new(4);
        let (first, second) = (pair.badge(5), pair.badge(6));
        let rights = u64::from(Rights::CALL.bits());
        let copy = [raw(first), rights];
        let copy = pair.sim.make(pair.client, Syscall::handle_duplicate, &copy);
        if waits {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        pair.sim.close(pair.client, first);
        if waits {
            assert_eq!(pair.sim.outcome(pair.server), Outcome::Blocked);
        }
        pair.sim.close(pair.client, copy);
        let told = [5, 0, Delivery::BadgeClosed as u64];
        if !waits {
            pair.receive(0);
        }
        assert_eq!(pair.sim.outcome(pair.server).results(), told);
        pair.sim.close(pair.client, second);
        assert_eq!(pair.receive(0).results()[0], 6);
        assert_eq!(pair.receive(0).error(), Error::TimedOut);
        pair.end();
    }
}

#[test]
fn a_client_that_dies_closes_its_badges() {
    let mut pair = Pair::new(4);
    pair.badge(9);
    let calls = pair.calls;
    pair.kill(calls);
    pair.sim.ticks(6);
    let told = pair.receive(0).results();
    assert_eq!(told, [9, 0, Delivery::BadgeClosed as u64]);
    pair.end();
}

#[test]
fn badges_that_nobody_hears_of_are_freed_with_their_endpoint() {
    let mut pair = Pair::new(4);
    let badge = pair.badge(9);
    pair.badge(10);
    pair.sim.close(pair.client, badge);
    pair.sim.close(pair.server, pair.ear);
    pair.sim.ticks(3);
    pair.end();
}

#[test]
fn only_calling_can_be_minted_and_zero_is_no_badge() {
    let mut pair = Pair::new(4);
    for (value, rights, error) in [
        (0, Rights::CALL, Error::BadArgument),
        (1, Rights::RECEIVE, Error::BadArgument),
        (1, Rights::MINT, Error::BadArgument),
    ] {
        let minted = [raw(pair.ear), value, rights.bits().into()];
        let refused = pair.sim.issue(pair.server, Syscall::handle_mint, &minted);
        assert_eq!(refused.error(), error);
    }
    let minted = [raw(pair.mouth), 1, Rights::CALL.bits().into()];
    let refused = pair.sim.issue(pair.client, Syscall::handle_mint, &minted);
    assert_eq!(refused.error(), Error::MissingRight);
    pair.end();
}
