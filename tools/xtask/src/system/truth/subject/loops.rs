//! Programs that spend their time in loops of their own, and serve nobody.

use truth::{CHILD, LEVELS, PARENT};

use super::super::super::report::Chain;
use super::super::chain::is_at;
use super::{Share, Subject};

/// Those that nothing wakes: for so many CPUs, of which each has a copy of what has no other part.
pub fn subjects(cpus: u32) -> Vec<Subject> {
    let copies = |program: &str| vec![program.to_owned(); cpus as usize];
    vec![
        shares("60/30/10", copies("truth-shares 60 30 10"), &[60, 30, 10]),
        shares("50/49/1", copies("truth-shares 50 49 1"), &[50, 49, 1]),
        one_in_a_thousand(copies("truth-rare")),
        of_one_image(0, 0.1),
        of_one_image(1, 0.9),
        levels(copies("truth-levels")),
        deep(copies("chain 20")),
    ]
}

const SHARES: [&str; 3] = [
    "truth-shares`share_a",
    "truth-shares`share_b",
    "truth-shares`share_c",
];

fn in_a_loop(chain: &Chain) -> bool {
    chain.image == "truth-shares" && chain.symbol.starts_with("share_")
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
    let programs = vec!["truth-shares 10 90 0".into(), "truth-shares 90 10 0".into()];
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
pub fn short_lived() -> Subject {
    let (parent, child) = ("truth-parent`work", "truth-child`work");
    let truth = CHILD as f64 / (PARENT + CHILD) as f64;
    let shares = vec![Share::new(child, truth, move |chain| is_at(chain, child))];
    Subject::new("short-lived", vec!["truth-parent".into()], shares)
        .among(move |chain| is_at(chain, parent) || is_at(chain, child))
}
