//! The client's end: asks for a session, and passes bytes both ways.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use snow::HandshakeState;

use crate::channel::Channel;
use crate::control::{Control, End, Purpose};
use crate::frame::{FRAME_MAX, Frame, SPAN, Stream};
use crate::hello::{Answer, Ask, Cookie, Hello, Refusal, read_challenge};
use crate::packet::{DATAGRAM_MAX, Header, Kind, VERSION};
use crate::seal::{Seal, Side};
use crate::time::Instant;
use crate::{Key, Random, Role, Status, noise};

/// An unanswered hello is sent again after this: so often that a link which loses a third each way does not matter.
const AGAIN: Duration = Duration::from_millis(150);
/// How long to go on.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client that goes waits until the server knows.
const LEAVE_MAX: Duration = Duration::from_secs(1);
/// The last acknowledgement is sent so many times: nobody is there to repeat it if it is lost.
const FAREWELLS: u8 = 3;

/// How a client proves who it is.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Not at all.
    Open,
    /// It has a key.
    Keyed(Key),
}

/// What a client learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server took it; of a session, its purpose is on the way.
    Connected {
        /// What it may do.
        role: Role,
    },
    /// The server answered a ping.
    Pong {
        /// What a session may do with this key.
        role: Role,
        /// From the last hello to its answer.
        round_trip: Duration,
    },
    /// The session's output: text of a shell, or what a command printed.
    Output(Stream, Vec<u8>),
    /// The command ended like this. All of its output came before.
    Finished(Status),
    /// The server does not take it.
    Refused(Refusal),
    /// The session ended.
    Closed(End),
    /// No answer at all for five seconds: nobody is there, or a server that does not know the key.
    Silent,
}

/// An exchange of hellos.
struct Greeting {
    ask: Ask,
    packet: Vec<u8>,
    /// Keyed: what reads the welcome.
    state: Option<Box<HandshakeState>>,
    cookie: Cookie,
    again: Instant,
    sent: Instant,
    give_up: Instant,
}

impl Greeting {
    /// Writes the hello if it is due, and gives its length.
    fn transmit(&mut self, now: Instant, datagram: &mut [u8; DATAGRAM_MAX]) -> Option<usize> {
        if now < self.again {
            return None;
        }
        self.sent = now;
        self.again = now + AGAIN;
        let length = self.packet.len();
        datagram[..length].copy_from_slice(&self.packet);
        Some(length)
    }
}

enum State {
    Greeting(Greeting),
    Connected(Seal),
    /// Frames that are still to be sent.
    Leaving(Seal, u8),
    Over,
}

/// A session, or a ping.
pub struct Client {
    mode: Mode,
    random: Random,
    token: u64,
    /// Of the protocol that its hellos claim.
    version: u8,
    state: State,
    /// Of a session of which nothing is heard: whether the server still has it.
    question: Option<Greeting>,
    channel: Channel,
    leave_by: Option<Instant>,
    events: VecDeque<Event>,
}

impl Client {
    /// Asks for a session.
    #[must_use]
    pub fn new(mode: Mode, purpose: Purpose, random: Random, now: Instant) -> Self {
        Self::of_version(VERSION, mode, purpose, random, now)
    }
    /// Asks for a session, and claims to speak this version of the protocol: to see what a server says to those of another.
    #[must_use]
    pub fn of_version(
        version: u8,
        mode: Mode,
        purpose: Purpose,
        random: Random,
        now: Instant,
    ) -> Self {
        let mut client = Self::begin(version, mode, Ask::Session, random, now);
        let open = Control::Open(purpose);
        client.channel.write_control(&open.to_bytes());
        client
    }
    /// Asks whether a server is there that takes this key.
    #[must_use]
    pub fn ping(mode: Mode, random: Random, now: Instant) -> Self {
        Self::begin(VERSION, mode, Ask::Ping, random, now)
    }

    fn begin(version: u8, mode: Mode, ask: Ask, mut random: Random, now: Instant) -> Self {
        let mut token = [0; 8];
        random(&mut token);
        let mut client = Self {
            mode,
            random,
            token: u64::from_le_bytes(token),
            version,
            state: State::Over,
            question: None,
            channel: Channel::new(now, SPAN),
            leave_by: None,
            events: VecDeque::new(),
        };
        client.greet(now, ask, Cookie::default(), now + PATIENCE);
        client
    }

    /// Has a hello sent at once, before there is a session or in one.
    fn greet(&mut self, now: Instant, ask: Ask, cookie: Cookie, give_up: Instant) {
        match (self.greeting(now, ask, cookie, give_up), ask) {
            (Some(question), Ask::Still(_)) => self.question = Some(question),
            (Some(greeting), _) => self.state = State::Greeting(greeting),
            // The algorithms do not fail on what is passed here; if they did, no session would come of it.
            (None, _) => self.end(Event::Closed(End::Failed)),
        }
    }

    /// Makes a hello.
    fn greeting(
        &mut self,
        now: Instant,
        ask: Ask,
        cookie: Cookie,
        give_up: Instant,
    ) -> Option<Greeting> {
        let hello = Hello { ask, cookie };
        let header = Header {
            version: self.version,
            ..Hello::header(matches!(self.mode, Mode::Keyed(_)), self.token)
        };
        let (packet, state) = match &self.mode {
            Mode::Open => (hello.open(&header), None),
            Mode::Keyed(key) => {
                let mut seed = noise::Seed::default();
                (self.random)(&mut seed);
                let (packet, state) = hello.keyed(&header, key, seed)?;
                (packet, Some(Box::new(state)))
            }
        };
        Some(Greeting {
            ask,
            packet,
            state,
            cookie,
            again: now,
            sent: now,
            give_up,
        })
    }

    /// The hello that waits for an answer.
    const fn asked(&mut self) -> Option<&mut Greeting> {
        match &mut self.state {
            State::Greeting(greeting) => Some(greeting),
            State::Connected(_) => self.question.as_mut(),
            State::Leaving(..) | State::Over => None,
        }
    }

    /// Takes a datagram that came from the server's address.
    pub fn receive(&mut self, now: Instant, datagram: &[u8]) {
        let Some((header, body)) = Header::parse(datagram) else {
            return;
        };
        if header.keyed != matches!(self.mode, Mode::Keyed(_)) {
            return;
        }
        match header.kind {
            Kind::Challenge | Kind::Welcome if header.number != self.token => {}
            Kind::Challenge => self.challenged(now, &header, body),
            Kind::Welcome => self.welcomed(now, &header, body),
            Kind::Frame if header.version == VERSION => self.framed(now, &header, body),
            Kind::Hello | Kind::Frame => {}
        }
    }

    fn challenged(&mut self, now: Instant, header: &Header, body: &[u8]) {
        let Some(greeting) = self.asked() else {
            return;
        };
        let Some(cookie) = read_challenge(header, body) else {
            return;
        };
        if cookie != greeting.cookie {
            let (ask, give_up) = (greeting.ask, greeting.give_up);
            self.greet(now, ask, cookie, give_up);
        }
    }

    fn welcomed(&mut self, now: Instant, header: &Header, body: &[u8]) {
        let Some(greeting) = self.asked() else {
            return;
        };
        let answer = match &mut greeting.state {
            None => Answer::read_open(header, body),
            Some(state) => Answer::read_keyed(body, state),
        };
        let Some(answer) = answer else {
            return;
        };
        match (greeting.ask, answer) {
            (Ask::Still(_), Answer::Known) => {
                self.question = None;
                self.channel.hear(now);
            }
            // Whoever is there now speaks another version, so it is another server.
            (Ask::Still(_), Answer::Unknown | Answer::Refused(Refusal::Version(_))) => {
                self.end(Event::Closed(End::Forgotten));
            }
            (Ask::Session | Ask::Ping, Answer::Refused(refusal)) => {
                self.end(Event::Refused(refusal));
            }
            (Ask::Ping, Answer::Pong(role)) => {
                let round_trip = now.since(greeting.sent);
                self.end(Event::Pong { role, round_trip });
            }
            (Ask::Session, Answer::In { role, session }) => {
                let seal = match greeting.state.take() {
                    None => Some(Seal::open(session, Side::Client)),
                    Some(done) => noise::transport(*done)
                        .ok()
                        .map(|state| Seal::keyed(session, Side::Client, state)),
                };
                let Some(seal) = seal else {
                    self.end(Event::Closed(End::Failed));
                    return;
                };
                self.state = State::Connected(seal);
                self.channel.begin(now);
                self.events.push_back(Event::Connected { role });
            }
            // It answers another question.
            _ => {}
        }
    }

    fn framed(&mut self, now: Instant, header: &Header, body: &[u8]) {
        let (State::Connected(seal) | State::Leaving(seal, _)) = &mut self.state else {
            return;
        };
        let mut buffer = [0; FRAME_MAX];
        if header.session != seal.session() {
            return;
        }
        let Ok(length) = seal.unseal(header, body, &mut buffer) else {
            return;
        };
        let Some(frame) = Frame::parse(&buffer[..length]) else {
            return;
        };
        self.question = None;
        self.channel.receive(now, &frame);
        while let State::Connected(_) = &self.state
            && let Some((stream, bytes)) = self.channel.read(now)
        {
            match stream {
                Stream::Text | Stream::Binary => {
                    self.events.push_back(Event::Output(stream, bytes));
                }
                Stream::Control => match Control::parse(&bytes) {
                    Some(Control::Finished(status)) => self.leave(Event::Finished(status)),
                    Some(Control::Ended(why)) => self.leave(Event::Closed(why)),
                    _ => self.leave(Event::Closed(End::Violated)),
                },
            }
        }
    }

    /// The last event of a session whose server waits for an acknowledgement.
    fn leave(&mut self, event: Event) {
        self.state = match core::mem::replace(&mut self.state, State::Over) {
            State::Connected(seal) => State::Leaving(seal, FAREWELLS),
            other => other,
        };
        self.events.push_back(event);
    }
    /// The last event, if there is nothing more to be sent.
    fn end(&mut self, event: Event) {
        self.state = State::Over;
        self.events.push_back(event);
    }

    /// Writes the next datagram for the server that is due, and gives its length. To be called until there is none, after
    /// each datagram that came, after `send` and `close`, and at the deadline.
    pub fn transmit(&mut self, now: Instant, datagram: &mut [u8; DATAGRAM_MAX]) -> Option<usize> {
        let mut buffer = [0; FRAME_MAX];
        if let State::Connected(seal) = &self.state
            && self.question.is_none()
            && now >= self.channel.doubtful()
        {
            let ask = Ask::Still(seal.session());
            self.greet(now, ask, Cookie::default(), self.channel.lost());
        }
        match &mut self.state {
            State::Greeting(greeting) => {
                if now >= greeting.give_up {
                    self.end(Event::Silent);
                    return None;
                }
                greeting.transmit(now, datagram)
            }
            State::Connected(seal) => {
                if self.channel.is_lost(now) {
                    self.end(Event::Closed(End::Lost));
                    return None;
                }
                let question = self.question.as_mut();
                if let Some(length) = question.and_then(|it| it.transmit(now, datagram)) {
                    return Some(length);
                }
                if let Some(by) = self.leave_by
                    && (self.channel.is_idle() || now >= by)
                {
                    self.state = State::Over;
                    return None;
                }
                let length = self
                    .channel
                    .transmit(now, |frame| frame.write(&mut buffer))?;
                seal.seal(&buffer[..length], datagram)
            }
            State::Leaving(seal, left) => {
                let length = self
                    .channel
                    .transmit_ack(now, |frame| frame.write(&mut buffer));
                let length = seal.seal(&buffer[..length], datagram);
                *left -= 1;
                if *left == 0 {
                    self.state = State::Over;
                }
                length
            }
            State::Over => None,
        }
    }

    /// When `transmit` is to be called next, if no datagram comes before.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Greeting(greeting) => Some(greeting.again.min(greeting.give_up)),
            State::Connected(_) => {
                let question = match &self.question {
                    Some(question) => question.again,
                    None => self.channel.doubtful(),
                };
                let due = self.channel.deadline().min(question);
                Some(self.leave_by.map_or(due, |by| by.min(due)))
            }
            State::Leaving(..) => Some(Instant::default()),
            State::Over => None,
        }
    }

    /// Takes as many bytes for the session as there is room for, and says how many: what is typed, or byte 3 for Ctrl-C.
    /// They may be given before the client is connected.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        if self.leave_by.is_some() || matches!(self.state, State::Leaving(..) | State::Over) {
            return 0;
        }
        self.channel.write(Stream::Text, bytes)
    }

    /// Leaves the session: what it prints from now on is not waited for. `transmit` has a last word for the server.
    pub fn close(&mut self, now: Instant) {
        match self.state {
            State::Connected(_) if self.leave_by.is_none() => {
                self.channel.write_control(&Control::Leave.to_bytes());
                self.leave_by = Some(now + LEAVE_MAX);
            }
            State::Greeting(_) => self.state = State::Over,
            _ => {}
        }
    }

    /// The next thing that happened.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether nothing more will happen or is to be sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over) && self.events.is_empty()
    }
}
