//! profd as a shell sees it, without a kernel.

mod support;

use ipc::abi::Error;
use ipc::abi::monitor::MonitorInfo;
use ipc::abi::profile::Source;
use ipc::proto::init::{BUILD_ID_MAX, Ending, Event, Happening};
use ipc::proto::profd::{
    Answer, Client, Holder, Refusal, Rendering, Request, SessionName, Spot, Start, dispatch,
};
use ipc::proto::{CallError, Desk, Loopback, Text};
use profd::decode::decode;
use profd::lscpu::leaves::Leaves;
use profd::service::{Platform, Profd};
use support::driver::{Fake, memory};
use support::record::Record;
use support::{MS, World, clock};

/// Time that a test moves, and memory objects by number.
struct Bench {
    now: std::rc::Rc<std::cell::Cell<u64>>,
    published: std::rc::Rc<std::cell::RefCell<Vec<u8>>>,
    full: bool,
    /// What reading the processors comes to.
    survey: Result<Vec<Leaves>, Error>,
    surveys: std::rc::Rc<std::cell::Cell<u32>>,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            now: std::rc::Rc::default(),
            published: std::rc::Rc::default(),
            full: false,
            survey: Ok(vec![Leaves::default(); 2]),
            surveys: std::rc::Rc::default(),
        }
    }
}

impl Platform for Bench {
    type Handle = u32;

    fn now(&self) -> u64 {
        self.now.get()
    }
    fn publish(&mut self, bytes: &[u8]) -> Result<u32, Error> {
        if self.full {
            return Err(Error::QuotaExceeded);
        }
        *self.published.borrow_mut() = bytes.to_vec();
        Ok(77)
    }
    fn begin_survey(&mut self) -> Result<(), Error> {
        self.surveys.set(self.surveys.get() + 1);
        Ok(())
    }
    fn end_survey(&mut self) -> Result<Vec<Leaves>, Error> {
        self.survey.clone()
    }
    fn is_exposed(&self) -> bool {
        true
    }
}

fn start(request: Request) -> Start {
    numbered(1, "console", request)
}

fn numbered(number: u64, session: &str, request: Request) -> Start {
    Start {
        request,
        number,
        session: SessionName::cut(session),
    }
}

fn event(pid: u32, what: Happening) -> Event {
    Event {
        position: 0,
        tsc: 5,
        pid,
        what,
    }
}

fn ended(pid: u32, ending: Ending) -> Event {
    event(pid, Happening::Ended { ending, code: 0 })
}

fn started(pid: u32, name: &str) -> Event {
    let what = Happening::Started {
        name: Text::cut(name),
        file: Text::cut("bin/shares"),
        image: 1,
        build_id: [0; BUILD_ID_MAX],
        load_bias: 0,
    };
    event(pid, what)
}

/// What the last answer to a parked call was: done with an answer and a handle, or refused.
fn last_answer(desk: &mut Desk) -> Option<Result<(Answer, u32), Refusal>> {
    let (_, mut message) = desk.last_answer.take()?;
    Some(match message.op {
        0 => Ok((
            message.get().expect("an answer"),
            message.handles.pop().expect("a handle"),
        )),
        _ => Err(message.get().expect("a refusal")),
    })
}

macro_rules! client {
    ($client:ident, $now:ident, $published:ident $(, $full:expr)?) => {
        let world = World::new();
        let memory = memory(1);
        let bench = Bench { $(full: $full,)? ..Bench::default() };
        let ($now, $published) = (bench.now.clone(), bench.published.clone());
        let server = Profd::<_, _, Desk>::new(world.catalog(), clock(), Fake::new(&memory), bench);
        let mut $client = Client::new(Loopback::new(server, dispatch));
        $client.transport().badge = 3;
        $client.transport().service.happened(&started(12, "shares"));
    };
}

macro_rules! poll {
    ($client:ident) => {{
        let loopback = $client.transport();
        loopback.service.poll(&mut loopback.desk)
    }};
}

/// A CPU that did not get to run may disarm long after the profile before was answered.
#[test]
fn a_profile_waits_for_the_one_before_to_disarm() {
    client!(client, now, _published);
    let request = start(Request::default());
    let ask = |client: &mut Client<_>| {
        let asked = client.measure(&request);
        assert_eq!(asked, Err(CallError::Transport(Error::TimedOut)));
    };
    let disarming = Some(Error::Busy);
    client.transport().service.driver().start_fails = disarming;
    ask(&mut client);
    assert!(poll!(client) > 0);
    client.transport().service.driver().start_fails = None;
    assert_eq!(poll!(client), 0, "it has started");
    assert!(poll!(client) > 0 && client.transport().desk.last_answer.is_none());

    // Not for ever.
    let _ = client.stop(&1);
    for refusal in [
        Refusal::Driver {
            error: Error::Busy as u64,
        },
        Refusal::Stopped,
    ] {
        while poll!(client) != ipc::abi::NEVER {
            now.set(now.get() + 100 * MS);
        }
        client.transport().desk.last_answer = None;
        client.transport().service.driver().start_fails = disarming;
        ask(&mut client);
        if refusal == Refusal::Stopped {
            client.stop(&1).expect("it is told");
        }
        let begun = now.get();
        while poll!(client) != ipc::abi::NEVER {
            now.set(now.get() + 100 * MS);
        }
        assert!(now.get() - begun <= 2000 * MS);
        let answer = last_answer(&mut client.transport().desk);
        assert_eq!(answer, Some(Err(refusal)));
        client.transport().service.driver().start_fails = None;
    }
}

#[test]
fn a_profile_is_answered_when_its_window_has_closed() {
    client!(client, now, published);
    let request = Request {
        window_ms: 100,
        pid: Some(12),
        rendering: Rendering::Folded,
        ..Request::default()
    };
    assert_eq!(poll!(client), ipc::abi::NEVER);
    assert_eq!(
        client.measure(&start(request)),
        Err(CallError::Transport(Error::TimedOut))
    );
    let driver = client.transport().service.driver();
    driver.open(0);
    driver.take(&Record {
        tsc: 50 * MS,
        ..Record::new(12, &[0x40_1110, 0x40_1061])
    });
    poll!(client);
    now.set(100 * MS);
    poll!(client);
    poll!(client);
    assert!(client.transport().desk.last_answer.is_none());
    client.transport().service.driver().idle();
    assert_eq!(poll!(client), ipc::abi::NEVER);
    let (answer, handle) = last_answer(&mut client.transport().desk).unwrap().unwrap();
    assert_eq!(handle, 77);
    let bytes = published.borrow();
    let profile = decode(&bytes[..answer.profile as usize]).unwrap();
    assert_eq!((profile.profiled_ms, profile.counts.reported), (100, 1));
    let text = &bytes[answer.text_start as usize..][..answer.text as usize];
    assert_eq!(text, b"shares`main;shares`share_a 1\n");
}

#[test]
fn a_stop_ends_the_profile_that_it_names() {
    client!(client, now, _published);
    let _ = client.measure(&start(Request::default()));
    // The same number is another profile if it is another caller's.
    client.transport().badge = 4;
    assert_eq!(client.stop(&1), Ok(()));
    poll!(client);
    assert_eq!(client.transport().service.driver().stops, 0);
    client.transport().badge = 3;
    assert_eq!(client.stop(&1), Ok(()));
    now.set(MS);
    poll!(client);
    client.transport().service.driver().idle();
    poll!(client);
    assert_eq!(
        last_answer(&mut client.transport().desk),
        Some(Err(Refusal::Stopped))
    );
}

#[test]
fn two_sessions_of_a_shell_do_not_end_each_others_profile() {
    client!(client, now, _published);
    client.transport().service.happened(&started(3, "shell"));
    let _ = client.measure(&start(Request::default()));
    let second = client.measure(&numbered(2, "net 1", Request::default()));
    let holder = Holder {
        pid: 3,
        program: Text::cut("shell"),
        session: SessionName::cut("console"),
    };
    assert_eq!(second, Err(CallError::Service(Refusal::Busy { holder })));
    // Ctrl-C there, which comes when its profile is refused already.
    assert_eq!(client.stop(&2), Ok(()));
    now.set(MS);
    poll!(client);
    assert_eq!(client.transport().service.driver().stops, 0);
    assert!(client.transport().desk.last_answer.is_none());
    assert_eq!(client.stop(&1), Ok(()));
    poll!(client);
    assert_eq!(client.transport().service.driver().stops, 1);
}

#[test]
fn a_stop_that_comes_first_is_not_lost_and_holds_once() {
    client!(client, _now, _published);
    let refused = |refusal| Err(CallError::Service(refusal));
    for number in [1, 2] {
        assert_eq!(client.stop(&number), Ok(()));
    }
    client.transport().service.closed(9);
    let first = client.measure(&start(Request::default()));
    assert_eq!(first, refused(Refusal::Stopped));
    assert_eq!(client.transport().service.driver().starts, 0);
    // A caller that is gone has no profile to come.
    client.transport().service.closed(3);
    let second = client.measure(&numbered(2, "console", Request::default()));
    assert_eq!(second, Err(CallError::Transport(Error::TimedOut)));
}

#[test]
fn the_stops_that_are_remembered_are_bounded() {
    client!(client, _now, _published);
    for number in 0..1000 {
        assert_eq!(client.stop(&number), Ok(()));
    }
    let measured = |number| numbered(number, "console", Request::default());
    assert_eq!(
        client.measure(&measured(999)),
        Err(CallError::Service(Refusal::Stopped))
    );
    assert_eq!(
        client.measure(&measured(0)),
        Err(CallError::Transport(Error::TimedOut))
    );
}

#[test]
fn a_caller_that_goes_away_ends_its_profile() {
    client!(client, now, _published);
    let _ = client.measure(&start(Request::default()));
    client.transport().service.closed(9);
    poll!(client);
    assert_eq!(client.transport().service.driver().stops, 0);
    client.transport().service.closed(3);
    now.set(MS);
    poll!(client);
    assert_eq!(client.transport().service.driver().stops, 1);
}

#[test]
fn processes_are_known_from_their_events() {
    client!(client, _now, _published);
    let of = |pid| {
        start(Request {
            pid: Some(pid),
            ..Request::default()
        })
    };
    assert_eq!(
        client.measure(&of(13)),
        Err(CallError::Service(Refusal::NoProcess { pid: 13 }))
    );
    let ended = ended(12, Ending::Exited);
    client.transport().service.happened(&ended);
    assert_eq!(
        client.measure(&of(12)),
        Err(CallError::Service(Refusal::ProcessEnded { pid: 12 }))
    );
}

#[test]
fn a_place_has_its_name_after_its_process_has_ended() {
    client!(client, _now, _published);
    let ended = ended(12, Ending::Faulted);
    client.transport().service.happened(&ended);
    let mut name = |pid, address, is_return| {
        let spot = Spot {
            pid,
            address,
            is_return,
        };
        client.locate(&spot).unwrap().map(|name| name.to_string())
    };
    assert_eq!(
        name(12, 0x40_1110, false).as_deref(),
        Some("shares`share_a+0x10")
    );
    assert_eq!(
        name(12, 0x40_1100, true).as_deref(),
        Some("shares`main+0x100")
    );
    assert_eq!(
        name(12, support::KERNEL + 3, false).as_deref(),
        Some("kernel`idle+0x3")
    );
    assert_eq!(name(12, 0x999, false), None);
    assert_eq!(name(13, 0x40_1110, false), None);
}

#[test]
fn no_room_is_said_and_leaves_nothing_armed() {
    client!(client, now, _published, true);
    client.transport().desk.full = true;
    let no_memory = Refusal::NoMemory;
    assert_eq!(
        client.measure(&start(Request::default())),
        Err(CallError::Service(no_memory.clone()))
    );
    assert_eq!(client.transport().service.driver().stops, 1);
    client.transport().service.driver().idle();
    let _ = client.measure(&start(Request {
        window_ms: 1,
        ..Request::default()
    }));
    client.transport().service.driver().open(0);
    poll!(client);
    now.set(MS);
    poll!(client);
    client.transport().service.driver().idle();
    poll!(client);
    assert_eq!(
        last_answer(&mut client.transport().desk),
        Some(Err(no_memory))
    );
}

#[test]
fn the_processors_are_read_once_and_nobody_has_to_wait_for_that_but_who_asked() {
    let (world, memory) = (World::new(), memory(1));
    let mut driver = Fake::new(&memory);
    driver.monitors = vec![MonitorInfo::default(); 2];
    driver.status.best = Source::TimerNmi as u64;
    let bench = Bench::default();
    let (published, surveys) = (bench.published.clone(), bench.surveys.clone());
    let server = Profd::<_, _, Desk>::new(world.catalog(), clock(), driver, bench);
    let mut client = Client::new(Loopback::new(server, dispatch));
    let parked = Err(CallError::Transport(Error::TimedOut));
    for verbose in [false, true] {
        assert_eq!(client.processors(&verbose), parked);
    }
    // Meanwhile it serves others.
    assert_eq!(client.stop(&7), Ok(()));
    assert!(client.transport().desk.last_answer.is_none());
    let Loopback { service, desk, .. } = client.transport();
    service.surveyed(desk);
    assert!(desk.last_answer.is_some());
    let (bytes, [handle]) = client.processors(&false).expect("they are known");
    assert_eq!((handle, surveys.get()), (77, 1));
    let text = published.borrow();
    assert_eq!(text.len(), bytes as usize);
    let text = String::from_utf8_lossy(&text);
    let source = text.lines().last();
    assert_eq!(source, Some("source      timer/nmi"));
    assert!(text.contains("\nmeltdown  "), "{text}");
}

#[test]
fn processors_that_could_not_be_read_are_read_again() {
    let (world, memory) = (World::new(), memory(1));
    let bench = Bench {
        survey: Err(Error::PeerDied),
        ..Bench::default()
    };
    let surveys = bench.surveys.clone();
    let server = Profd::<_, _, Desk>::new(world.catalog(), clock(), Fake::new(&memory), bench);
    let mut client = Client::new(Loopback::new(server, dispatch));
    for round in 1..=2 {
        let asked = client.processors(&false);
        assert_eq!(asked, Err(CallError::Transport(Error::TimedOut)));
        let Loopback { service, desk, .. } = client.transport();
        service.surveyed(desk);
        let (_, message) = desk.last_answer.take().expect("an answer");
        let refusal: Refusal = message.get().expect("a refusal");
        let error = Error::PeerDied as u64;
        assert_eq!(refusal, Refusal::NotSurveyed { error });
        assert_eq!(surveys.get(), round);
    }
}
