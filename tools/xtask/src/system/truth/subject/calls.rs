//! Programs that work for others: whom a server is shown to serve, and on whose account it works.

use truth::{APART, SERVED};

use super::super::super::report::{Account, Chain};
use super::super::chain::{clients, is_at, is_in, serves};
use super::{Bill, Item, Share, Subject};

/// All of them.
pub fn subjects() -> Vec<Subject> {
    vec![three_deep(), two_clients(), parked()]
}

/// A client, the server that it calls, and the server that this one calls.
fn three_deep() -> Subject {
    let programs = ["back 200", "relay 300", "front 500"]
        .map(Into::into)
        .to_vec();
    let chains: [(_, f64, &[&str]); 3] = [
        ("front`work", 0.5, &[]),
        ("relay`work", 0.3, &["front`main"]),
        ("back`work", 0.2, &["relay`main", "front`main"]),
    ];
    let share = |(function, truth, expected): (&'static str, f64, &'static [&str])| {
        let has = move |chain: &Chain| is_at(chain, function) && clients(chain) == expected;
        let depth = expected.len();
        Share::new(format!("{function}, {depth} <="), truth, has)
    };
    let shares = chains.into_iter().map(share).collect();
    let (own, served) = (
        item(2, "front: own", |it| it.own),
        by_others(2, "front: by others"),
    );
    let bill = Bill {
        payer: |_| 2,
        whole: vec![own, served],
        shares: vec![
            (own, 0.5),
            (served, 0.5),
            (for_others(1, "relay: for others"), 0.3),
            (for_others(0, "back: for others"), 0.2),
        ],
    };
    let subject = Subject::new("three deep", programs, shares);
    Subject {
        bill: Some(bill),
        ..subject
    }
    .among(move |chain| chains.iter().any(|(function, ..)| is_at(chain, function)))
    .never(move |chain| {
        let mut chains = chains.iter();
        let known = chains.find(|(function, ..)| is_in(chain, function));
        known.is_some_and(|(.., expected)| !serves(chain, expected))
    })
}

const fn item(program: usize, name: &'static str, of: fn(&Account) -> u64) -> Item {
    Item { program, name, of }
}

/// What others did for a program.
const fn by_others(program: usize, name: &'static str) -> Item {
    item(program, name, |it| it.by_others)
}

/// What a program did for others.
const fn for_others(program: usize, name: &'static str) -> Item {
    item(program, name, |it| it.for_others)
}

/// The server's function for each client, and where that client waits meanwhile.
const SERVING: [(&str, &str); 8] = [
    ("truth-server`serve_0", "truth-client`ask_0"),
    ("truth-server`serve_1", "truth-client`ask_1"),
    ("truth-server`serve_2", "truth-client`ask_2"),
    ("truth-server`serve_3", "truth-client`ask_3"),
    ("truth-server`serve_4", "truth-client`ask_4"),
    ("truth-server`serve_5", "truth-client`ask_5"),
    ("truth-server`serve_6", "truth-client`ask_6"),
    ("truth-server`serve_7", "truth-client`ask_7"),
];
/// Where it works for nobody.
const FOR_NOBODY: &str = "truth-server`apart";

/// The client whose function the server is in, and whom it is shown to serve.
pub fn served(chain: &Chain) -> Option<(usize, Served)> {
    let mut serving = SERVING.iter().enumerate();
    let (client, (_, ask)) = serving.find(|(_, (serve, _))| is_in(chain, serve))?;
    let served = match clients(chain)[..] {
        [] => Served::Nobody,
        [shown] if shown == *ask => Served::Client,
        _ => Served::Another,
    };
    Some((client, served))
}

/// Whom a report shows a server to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Its client.
    Client,
    /// Nobody that the report knows of.
    Nobody,
    /// Somebody else.
    Another,
}

/// Whether a server at work is not shown to serve its client, though that one waits, and no mark says that it is missing; or shown to
/// serve somebody while it works for nobody.
fn is_misattributed(chain: &Chain) -> bool {
    let mut serving = SERVING.iter();
    let client = serving.find(|(serve, _)| is_in(chain, serve));
    let wrong = client.is_some_and(|(_, ask)| !serves(chain, &[ask]));
    wrong || is_in(chain, FOR_NOBODY) && !clients(chain).is_empty()
}

fn of_clients(name: &'static str, mode: &str, apart: u64) -> Subject {
    let server = format!("truth-server {mode}");
    let programs = vec![server, "truth-client 0".into(), "truth-client 1".into()];
    let all = (SERVED.iter().sum::<u64>() + apart) as f64;
    let truth = SERVED.map(|turns| turns as f64 / all);
    let share = |client: usize| {
        let (serve, ask) = SERVING[client];
        let has = move |chain: &Chain| is_at(chain, serve) && clients(chain) == [ask];
        Share::new(format!("for {ask}"), truth[client], has)
    };
    let (first, second) = (
        by_others(1, "client 0: by others"),
        by_others(2, "client 1: by others"),
    );
    let server = item(0, "server: own", |it| it.own);
    let bill = Bill {
        payer: |chain| match served(chain) {
            Some((client, _)) => 1 + client,
            None => 0,
        },
        whole: vec![first, second, server],
        shares: vec![(first, truth[0]), (second, truth[1])],
    };
    let subject = Subject::new(name, programs, vec![share(0), share(1)]);
    Subject {
        bill: Some(bill),
        ..subject
    }
    .among(|chain| {
        let at_work = SERVING.iter().any(|(serve, _)| is_at(chain, serve));
        at_work || is_at(chain, FOR_NOBODY)
    })
    .never(is_misattributed)
}

fn two_clients() -> Subject {
    of_clients("two clients", "turns", 0)
}

fn parked() -> Subject {
    of_clients("parked replies", "park", APART)
}
