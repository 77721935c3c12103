//! A page's sessions: commands, and what the page says that they print.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// What stands before and behind a process id.
const PIDS: [(&str, &str); 2] = [("started ", " "), ("(pid ", ")")];
/// What stands before and behind a number that differs from one run to the next: how far a search came.
const VARYING: [(&str, &str); 2] = [("", " primes below "), (" primes below ", "")];

/// A command and what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// With the `$ ` or `> ` before it.
    pub typed: String,
    /// The lines that it prints.
    pub printed: Vec<String>,
}

/// A page: its blocks that are sessions.
#[derive(Debug)]
pub struct Page(Vec<Vec<Command>>);

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// If it cannot be read, or has no session.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let page = Self::parse(&text);
        ensure!(
            page.sessions().next().is_some(),
            "{} has no session",
            path.display()
        );
        Ok(page)
    }

    fn parse(text: &str) -> Self {
        let mut blocks = Vec::new();
        let mut block: Option<Vec<Command>> = None;
        for line in text.lines() {
            if line.starts_with("```") {
                match block.take() {
                    Some(commands) => blocks.push(commands),
                    None => block = Some(Vec::new()),
                }
            } else if let Some(commands) = &mut block {
                if line.starts_with("$ ") || line.starts_with("> ") {
                    // What is behind two blanks and `#` is a remark.
                    let typed = line
                        .split("  #")
                        .next()
                        .unwrap_or(line)
                        .trim_end()
                        .to_owned();
                    let printed = Vec::new();
                    commands.push(Command { typed, printed });
                } else if let Some(command) = commands.last_mut() {
                    command.printed.push(line.to_owned());
                }
            }
        }
        Self(blocks)
    }

    /// Every command.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.0.iter().flatten()
    }

    /// The servers that are made: each runs from the boot on, and takes a process id before any program of a session.
    pub fn servers(&self) -> usize {
        let made = self.commands().filter(|command| {
            let typed = &command.typed;
            typed.starts_with("$ ./run.sh new ") && typed.ends_with(" --server")
        });
        made.count()
    }

    /// The blocks that type something to the guest.
    pub fn sessions(&self) -> impl Iterator<Item = &[Command]> {
        let is_session = |block: &&Vec<Command>| {
            let mut commands = block.iter();
            commands.any(|command| command.typed.starts_with("> "))
        };
        self.0.iter().filter(is_session).map(Vec::as_slice)
    }
}

impl Command {
    /// Compares what was printed with the page, on a machine with so many servers that the page knows nothing of.
    ///
    /// # Errors
    /// The first line of the page that was not printed.
    pub fn check(&self, printed: &str, servers: usize) -> Result<()> {
        if self.typed.starts_with("> profile") {
            let named: Vec<_> = printed.lines().filter_map(function).collect();
            for name in self.printed.iter().filter_map(|line| function(line)) {
                ensure!(named.contains(&name), "the page names {name:?}");
            }
            return Ok(());
        }
        let mut lines = printed.lines().map(|line| constant(line, 0));
        for line in &self.printed {
            let expected = constant(line, servers);
            ensure!(lines.any(|line| line == expected), "the page has: {line}");
        }
        Ok(())
    }
}

/// The program and the function that a line of a profile names, without the path, of which a long name loses more or less, as there
/// is room. The kernel's depend on when it was looked at.
fn function(line: &str) -> Option<(&str, &str)> {
    let (before, name) = line.split_once('`')?;
    let image = before.rsplit(' ').next()?;
    let (name, _) = name.rsplit_once('+')?;
    let (path, _) = name.split_once("::<..").unwrap_or((name, ""));
    let function = path.rsplit("::").next()?;
    (image != "kernel").then_some((image, function))
}

/// A line with `#` for each number that varies, and with process ids that are so much greater.
fn constant(line: &str, servers: usize) -> String {
    let mut text = line.trim_end().to_owned();
    for place in PIDS {
        let greater = |pid: &str| {
            let pid: Option<usize> = pid.parse().ok();
            pid.map_or("?".into(), |pid| (pid + servers).to_string())
        };
        text = changed(text, place, greater);
    }
    for place in VARYING {
        text = changed(text, place, |_| "#".into());
    }
    text
}

/// A line with another number in the first place that is between these two.
fn changed(text: String, (before, after): (&str, &str), number: impl Fn(&str) -> String) -> String {
    if let Some((head, rest)) = text.split_once(before) {
        let tail = rest.trim_start_matches(|character: char| character.is_ascii_digit());
        let digits = &rest[..rest.len() - tail.len()];
        if !digits.is_empty() && tail.starts_with(after) {
            return format!("{head}{before}{}{tail}", number(digits));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
Text `> not a command`.
```
$ ./run.sh new pulse
made x
```
```
$ cargo test -p programs pulse
running 1 test
test pulse::tests::primes_are_counted ... ok
```
```
$ ./run.sh
> run pulse 2 &  # in the background
started 5 pulse
> profile
 5.0% 3 pulse`primes+0x1..0x2
        <- kernel`idle+0x3
```
";

    #[test]
    fn a_page_is_commands_and_what_they_print() {
        let page = Page::parse(PAGE);
        let typed: Vec<_> = page
            .commands()
            .map(|command| command.typed.as_str())
            .collect();
        assert_eq!(
            typed,
            [
                "$ ./run.sh new pulse",
                "$ cargo test -p programs pulse",
                "$ ./run.sh",
                "> run pulse 2 &",
                "> profile"
            ]
        );
        let sessions: Vec<_> = page.sessions().collect();
        assert_eq!(sessions.len(), 1);
        let [_, run, profile] = sessions[0] else {
            panic!("{sessions:?}");
        };
        assert!(run.check("started 5 pulse\n", 0).is_ok());
        assert!(run.check("started 7 pulse\n", 2).is_ok());
        assert!(run.check("started 7 pulse\n", 0).is_err());
        assert!(run.check("started 5 pulse2\n", 0).is_err());
        assert!(run.check("started pulse\n", 0).is_err());
        assert!(run.check("no such program\n", 0).is_err());
        assert!(profile.check("80.5% 9 pulse`primes+0x7\n", 0).is_ok());
        assert!(profile.check("80.5% 9 pulse`main+0x7\n", 0).is_err());
        assert!(profile.check("80.5% 9 other`primes+0x7\n", 0).is_err());
    }

    #[test]
    fn a_test_that_did_not_run_is_missed() {
        let page = Page::parse(PAGE);
        let test = page.commands().nth(1).unwrap();
        let none = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n";
        let one = "\nrunning 1 test\ntest pulse::tests::primes_are_counted ... ok\n";
        let two = one.replace("1 test", "2 tests");
        assert!(test.check(&[none, one, none].concat(), 0).is_ok());
        assert!(test.check(none, 0).is_err());
        assert!(test.check(&two, 0).is_err());
    }

    #[test]
    fn only_numbers_that_vary_stand_for_others() {
        for (line, expected) in [
            (
                "tally: exited with code 2 (pid 17)",
                "tally: exited with code 2 (pid 18)",
            ),
            ("45921 primes below 558000", "# primes below #"),
            ("the sum is 3000", "the sum is 3000"),
            ("started pulse", "started pulse"),
        ] {
            assert_eq!(constant(line, 1), expected);
        }
    }

    #[test]
    fn a_long_name_is_its_function() {
        let name =
            function("12.3% 40 ask-tally`<sysroot..pc::operation::Transport>::call+0x1..0x2");
        assert_eq!(name, Some(("ask-tally", "call")));
        let name =
            function("        <- ask-tally`<sysroot::c..as ipc::operation::Transport>::call+0x1");
        assert_eq!(name, Some(("ask-tally", "call")));
        let name = function("        <- pulse`sysroot::thread::start::run::<..>+0x67");
        assert_eq!(name, Some(("pulse", "run")));
        assert_eq!(function("54.0% 9 kernel`idle+0x3"), None);
        assert_eq!(function("odd: missed 70"), None);
    }
}
