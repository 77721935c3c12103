//! `help`, and what it says of every command.

use ipc::abi::profile::FIRST_FRAMES;
use ipc::abi::trace::TRACE_RECORDS;
use ipc::proto::profd::{CHAINS_MAX, DEPTH_MAX, Request, WINDOW_MAX_MS};
use profd::text::COLUMNS;

use super::super::help::{SUMMARY, rows};
use super::super::{COMMANDS, Command, Group};
use super::super::{top, trace};
use super::{Bench, run};
use crate::terminal::output::PAGE_ROWS;

#[test]
fn help_lists_every_command_once_in_its_group() {
    let text = run("help");
    for command in COMMANDS {
        let listed = format!(" {:9} {}", command.name, command.summary);
        assert_eq!(text.matches(&listed).count(), 1, "{}: {text}", command.name);
    }
    let (_, programs) = text.split_once("programs\n").expect("a heading");
    assert!(programs.starts_with("  ps "), "{text}");
}

#[test]
fn help_fits_a_screen_of_24_rows_and_80_columns() {
    for name in COMMANDS.iter().map(|command| command.name).chain([""]) {
        let text = run(&format!("help {name}"));
        let rows = text.lines().count();
        assert!(rows < 24, "help {name}: {rows} rows and a prompt");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "help {name}: {line}");
        }
    }
}

/// Thirty commands of the longest names and summaries.
#[test]
fn the_list_has_room_for_more_commands() {
    let members = [
        (Group::Measure, 8),
        (Group::Programs, 7),
        (Group::Machine, 9),
        (Group::Session, 6),
    ];
    let commands: Vec<Command> = members
        .iter()
        .flat_map(|&(group, count)| {
            (0..count).map(move |_| Command {
                name: "ninechars",
                group,
                summary: "a summary of 28 characters..",
                ..super::super::machine::MEM
            })
        })
        .collect();
    let commands: Vec<&Command> = commands.iter().collect();
    let mut text = String::new();
    rows(&commands, &mut text).expect("a string takes all");
    // Two rows below them, and the prompt.
    assert!(text.lines().count() + 3 <= 24, "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(text.matches("ninechars").count(), commands.len());
}

#[test]
fn every_command_has_a_usage_and_an_example() {
    for command in COMMANDS {
        let name = command.name;
        let first = |line: &str| line.split(' ').next().map(String::from);
        let text = run(&format!("help {name}"));
        assert!(command.usage.len() <= 80 && command.summary.len() <= SUMMARY);
        assert_eq!(first(command.usage).as_deref(), Some(name));
        assert_eq!(text.lines().next(), Some(command.usage));
        assert!(!command.examples.is_empty(), "{name} has no example");
        for (line, what) in command.examples {
            assert_eq!(first(line).as_deref(), Some(name), "{line}");
            assert!(text.contains(&format!("> {line}")) && !what.is_empty());
        }
        // Typed as printed, with the prompt before it and what is said of it, it is the same command.
        let printed = text.lines().filter(|line| line.starts_with("> "));
        let examples = command.examples.iter().map(|(line, _)| *line);
        assert!(printed.clone().count() == examples.len(), "{text}");
        for (printed, example) in printed.zip(examples) {
            let answer = |line: &str| {
                let mut bench = Bench::default();
                bench.system.profile = Some(Ok("profiled\n".into()));
                bench.run(line)
            };
            let said = answer(printed);
            assert_eq!(said, answer(example), "{printed}");
            assert!(!said.starts_with("no command"), "{printed}: {said}");
        }
    }
}

#[test]
fn help_of_one_command() {
    assert_eq!(
        run("help kill"),
        "\
kill PID
end a process

init and the shell of this session are not killed. init starts the other
servers again.

> kill 7  # ends the process that `ps` shows as 7
"
    );
    let mut bench = Bench::default();
    bench.system.programs = vec!["chain", "spin"];
    assert!(
        bench
            .run("help run")
            .contains("\n\nprograms: chain, spin\n\n> run")
    );
    assert_eq!(
        run("help nonsense"),
        "help: no command `nonsense`; `help` lists what there is\n"
    );
    assert_eq!(
        run("help a b"),
        "help: `b` is too much; usage: help [COMMAND]\n"
    );
}

#[test]
fn details_give_the_numbers_of_the_code() {
    let default = Request::default();
    let (window, chains, depth) = (default.window_ms, default.chains, default.depth);
    for (command, says) in [
        (
            "more",
            format!("after {PAGE_ROWS} rows of {COLUMNS} columns"),
        ),
        ("profile", format!("1 to {WINDOW_MAX_MS}; {window} if not")),
        (
            "profile",
            format!("1 to {CHAINS_MAX}, the hottest first; {chains} if not"),
        ),
        ("profile", format!("1 to {DEPTH_MAX}; {depth} if not")),
        (
            "top",
            format!("1 to {}; {} if not", top::WINDOW_MAX, top::WINDOW),
        ),
        ("trace", format!("its newest {TRACE_RECORDS} events")),
        (
            "trace",
            format!("1 to {TRACE_RECORDS}; {} if not", trace::EVENTS),
        ),
        ("profile", format!("A sample holds {FIRST_FRAMES} of")),
    ] {
        let text = run(&format!("help {command}"));
        assert!(text.contains(&says), "no {says:?} in:\n{text}");
    }
}
