//! Programs of which is known where their time goes, and what a report must say of them.

use std::ops::RangeInclusive;

use anyhow::{Result, bail};
use truth::{APART, CHILD, LEVELS, PARENT, SERVED};

use super::super::report::Chain;
use super::chain::{clients, is_at, is_in, serves};

type Test = Box<dyn Fn(&Chain) -> bool>;

/// What runs, and what is known of it.
pub struct Subject {
    /// For the table.
    pub name: &'static str,
    /// What is started, servers before their clients.
    pub programs: Vec<String>,
    /// The one of them to whose samples the report is confined; else it is of all.
    pub only: Option<usize>,
    /// The samples of which the shares are.
    pub among: Test,
    /// The shares.
    pub shares: Vec<Share>,
    /// No chain may be so.
    pub wrong: Test,
}

/// A part of the samples.
pub struct Share {
    /// For the table.
    pub name: String,
    /// Between these.
    pub truth: RangeInclusive<f64>,
    /// Whether a sample with this chain belongs to it.
    pub has: Test,
}

impl Share {
    fn new(name: impl Into<String>, truth: f64, has: impl Fn(&Chain) -> bool + 'static) -> Self {
        Self::between(name, truth..=truth, has)
    }

    fn between(
        name: impl Into<String>,
        truth: RangeInclusive<f64>,
        has: impl Fn(&Chain) -> bool + 'static,
    ) -> Self {
        let (name, has) = (name.into(), Box::new(has));
        Self { name, truth, has }
    }
}

impl Subject {
    /// Every sample counts, and there are no clients.
    fn new(name: &'static str, programs: Vec<String>, shares: Vec<Share>) -> Self {
        Self {
            name,
            programs,
            only: None,
            among: Box::new(|_| true),
            shares,
            wrong: Box::new(|chain| !clients(chain).is_empty() && chain.image.starts_with("truth")),
        }
    }

    fn among(self, among: impl Fn(&Chain) -> bool + 'static) -> Self {
        Self {
            among: Box::new(among),
            ..self
        }
    }

    fn never(self, wrong: impl Fn(&Chain) -> bool + 'static) -> Self {
        Self {
            wrong: Box::new(wrong),
            ..self
        }
    }
}

/// All of them but [`mix`], for so many CPUs. Each CPU has a copy of what has no other part.
pub fn subjects(cpus: u32) -> Vec<Subject> {
    let copies = |program: &str| vec![program.to_owned(); cpus as usize];
    vec![
        shares("60/30/10", copies("shares 60 30 10"), &[60, 30, 10]),
        shares("50/49/1", copies("shares 50 49 1"), &[50, 49, 1]),
        one_in_a_thousand(copies("truth-rare")),
        of_one_image(0, 0.1),
        of_one_image(1, 0.9),
        levels(copies("truth-levels")),
        deep(copies("chain 20")),
        short_lived(),
        three_deep(),
        two_clients(),
        parked(),
        duty(cpus),
    ]
}

const SHARES: [&str; 3] = ["shares`share_a", "shares`share_b", "shares`share_c"];

fn in_a_loop(chain: &Chain) -> bool {
    chain.image == "shares" && chain.symbol.starts_with("share_")
}

fn shares(name: &'static str, programs: Vec<String>, percents: &[u8]) -> Subject {
    let share = |(function, &percent): (&'static str, &u8)| {
        Share::new(function, f64::from(percent) / 100.0, move |chain| {
            is_at(chain, function)
        })
    };
    let shares = SHARES.into_iter().zip(percents).map(share).collect();
    Subject::new(name, programs, shares).among(in_a_loop)
}

fn one_in_a_thousand(programs: Vec<String>) -> Subject {
    let (common, rare) = ("truth-rare`common", "truth-rare`rare");
    let shares = vec![Share::new(rare, 0.001, move |chain| is_at(chain, rare))];
    Subject::new("one in 1000", programs, shares)
        .among(move |chain| is_at(chain, common) || is_at(chain, rare))
}

/// Two processes of one image: the report of each has its own shares.
fn of_one_image(only: usize, truth: f64) -> Subject {
    let programs = vec!["shares 10 90".into(), "shares 90 10".into()];
    let shares = vec![Share::new(SHARES[0], truth, |chain| {
        is_at(chain, SHARES[0])
    })];
    Subject {
        only: Some(only),
        ..Subject::new("two of one image", programs, shares).among(in_a_loop)
    }
}

fn levels(programs: Vec<String>) -> Subject {
    let function = "truth-levels`descend";
    let level = move |level: u64| {
        let is = move |chain: &Chain| {
            let depth = chain.callers.iter().filter(|line| line.contains(function));
            depth.count() as u64 == level
        };
        Share::new(format!("{level} recursions"), 1.0 / LEVELS as f64, is)
    };
    let shares = (0..LEVELS).map(level).collect();
    Subject::new("recursion", programs, shares).among(move |chain| is_at(chain, function))
}

/// A record has 16 frames of a thread: the leaf, 15 of its 21 callers, and a mark that there are more.
fn deep(programs: Vec<String>) -> Subject {
    let is_bottom = |chain: &Chain| is_at(chain, "chain`bottom");
    let is_whole = |chain: &Chain| match &chain.callers[..] {
        [links @ .., more] => {
            let is_link = |line: &String| line.starts_with("<- chain`link+");
            links.len() == 15 && links.iter().all(is_link) && more == "<- ..."
        }
        [] => false,
    };
    Subject::new("20 deep", programs, Vec::new())
        .among(is_bottom)
        .never(move |chain| is_bottom(chain) && !is_whole(chain))
}

/// Processes that start and end in the window.
fn short_lived() -> Subject {
    let (parent, child) = ("truth-parent`work", "truth-child`work");
    let truth = CHILD as f64 / (PARENT + CHILD) as f64;
    let shares = vec![Share::new(child, truth, move |chain| is_at(chain, child))];
    Subject::new("short-lived", vec!["truth-parent".into()], shares)
        .among(move |chain| is_at(chain, parent) || is_at(chain, child))
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
    Subject::new("three deep", programs, shares)
        .among(move |chain| chains.iter().any(|(function, ..)| is_at(chain, function)))
        .never(move |chain| {
            let mut chains = chains.iter();
            let known = chains.find(|(function, ..)| is_in(chain, function));
            known.is_some_and(|(.., expected)| !serves(chain, expected))
        })
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
    let all = SERVED.iter().sum::<u64>() + apart;
    let share = |client: usize| {
        let (serve, ask) = SERVING[client];
        let has = move |chain: &Chain| is_at(chain, serve) && clients(chain) == [ask];
        Share::new(
            format!("for {ask}"),
            SERVED[client] as f64 / all as f64,
            has,
        )
    };
    Subject::new(name, programs, vec![share(0), share(1)])
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

/// In phase with the tick: 2 ms of work every 10.
fn duty(cpus: u32) -> Subject {
    let busy = 0.2 / f64::from(cpus);
    // What else the machine does: the samples themselves, draining them, and ticks.
    const ELSE: f64 = 0.02;
    let shares = vec![
        Share::new("truth-duty`work", busy, |chain| {
            is_in(chain, "truth-duty`work")
        }),
        Share::between("kernel`idle", 1.0 - busy - ELSE..=1.0 - busy, |chain| {
            is_at(chain, "kernel`idle")
        }),
    ];
    Subject::new("lockstep", vec!["truth-duty 2000 10000".into()], shares)
}

/// Parts of a whole in which `truth-mix` says its shares.
const WHOLE: f64 = 1e6;

/// Kernel against user time of a known mix of system calls. What the program says that it measured is the truth: the time of each
/// part, and how much of it may be in the program itself, around the calls.
///
/// # Errors
/// If it says anything else.
pub fn mix(said: &str) -> Result<Subject> {
    let numbers = said.split(' ').filter_map(|word| word.trim().parse().ok());
    let numbers: Vec<f64> = numbers.map(|number: f64| number / WHOLE).collect();
    let [work, make, null, around_make, around_null] = numbers[..] else {
        bail!("truth-mix said {said:?}");
    };
    let is_call = |chain: &Chain| is_in(chain, "truth-mix`null") || is_in(chain, "truth-mix`make");
    let is_kernel = |chain: &Chain| chain.image == "kernel";
    let calls = make + null;
    let shares = vec![
        Share::new("truth-mix`work", work, |chain| {
            is_in(chain, "truth-mix`work")
        }),
        Share::between(
            "kernel",
            calls - around_make - around_null..=calls,
            move |chain| is_call(chain) && is_kernel(chain),
        ),
        Share::between("interrupts off", make - around_make..=make, move |chain| {
            is_in(chain, "truth-mix`make") && is_kernel(chain)
        }),
    ];
    let subject = Subject::new("system calls", vec!["truth-mix".into()], shares);
    Ok(subject.among(move |chain| is_call(chain) || is_in(chain, "truth-mix`work")))
}

/// The program of [`mix`], which ends and says what it measured.
pub const MEASURE: &str = "run truth-mix 500";
