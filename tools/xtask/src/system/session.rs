//! A shell on a machine that has booted: what most tests begin with.

use anyhow::{Context as _, Result, ensure};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{POWER_OFF, debug_exit};
use crate::test::{Context, Verdict};

use super::guest::Guest;
use super::report::Report;
use super::tables::{self, Memory, Process};

/// A machine at its prompt.
pub struct Session {
    /// The machine.
    pub guest: Guest,
    /// What it said before the first prompt.
    pub greeting: String,
    /// Commands that do not exist, asked for by [`Self::settle`].
    marks: u64,
    /// Programs that [`Self::settle`] saw start in the background, whether they still run or not.
    pub background: Vec<u64>,
}

impl Session {
    /// Boots the image and waits for the prompt.
    ///
    /// # Errors
    /// If it does not get there.
    pub fn boot(context: &Context<'_>, options: BootOptions) -> Result<Self> {
        Self::boot_image(context.image()?, options)
    }

    /// Boots this image and waits for the prompt.
    ///
    /// # Errors
    /// If it does not get there.
    pub fn boot_image(image: &Image, options: BootOptions) -> Result<Self> {
        Self::begin(Guest::boot(image, options)?)
    }

    /// Waits for the prompt of a machine that boots.
    ///
    /// # Errors
    /// If it does not get there.
    pub fn begin(mut guest: Guest) -> Result<Self> {
        let greeting = guest.prompt()?;
        Ok(Self {
            guest,
            greeting,
            marks: 0,
            background: Vec::new(),
        })
    }

    /// On so many CPUs.
    ///
    /// # Errors
    /// If it does not get to the prompt.
    pub fn on(context: &Context<'_>, smp: u32) -> Result<Self> {
        let options = BootOptions {
            smp,
            ..BootOptions::default()
        };
        Self::boot(context, options)
    }

    /// Runs a command; returns what it printed. In every profile's report that is in it, every sample must be accounted for.
    ///
    /// # Errors
    /// If the prompt does not come back, or a report does not add up.
    pub fn run(&mut self, line: &str) -> Result<String> {
        let text = self.guest.run(line)?;
        Report::check_all(&text)?;
        Ok(text)
    }

    /// Types whatever may upset the screen or the prompt, then a command that does not exist, and waits until the shell says
    /// so and prompts again. Returns what was shown before it said so.
    ///
    /// # Errors
    /// If it does not come to that.
    pub fn settle(&mut self, typed: &[u8]) -> Result<String> {
        self.marks += 1;
        let mark = format!("mark{}", self.marks);
        self.guest.send(typed)?;
        self.guest.send(format!("{mark}\n").as_bytes())?;
        let shown = self.guest.wait_for(&format!("no command `{mark}`"))?;
        self.guest.prompt()?;
        self.background
            .extend(shown.lines().filter_map(started_pid));
        Ok(shown)
    }

    /// Ends what [`Self::settle`] saw start in the background: nothing is printed any more but by commands.
    ///
    /// # Errors
    /// If a prompt does not come back.
    pub fn end_background(&mut self) -> Verdict {
        for pid in std::mem::take(&mut self.background) {
            self.settle(format!("kill {pid}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Runs a command and checks that it printed all of these.
    ///
    /// # Errors
    /// What is missing.
    pub fn expect(&mut self, line: &str, parts: &[&str]) -> Result<String> {
        let text = self.run(line)?;
        for part in parts {
            ensure!(
                text.contains(part),
                "`{line}` printed no {part:?}, but:\n{text}"
            );
        }
        Ok(text)
    }

    /// Takes a profile with these arguments, and checks what must hold in every report.
    ///
    /// # Errors
    /// If it is none, or does not add up.
    pub fn profile(&mut self, arguments: &str) -> Result<Report> {
        let text = self.run(&format!("profile {arguments}"))?;
        Report::parse(&text)
    }

    /// The same in real time; `None` if the host did not run every CPU when the profile was to begin, which it says and is no fault of it.
    ///
    /// # Errors
    /// Likewise.
    pub fn profile_if_run(&mut self, arguments: &str) -> Result<Option<Report>> {
        const STOOD: &str = "profile: nothing measured: no answer within 500 ms from cpu ";
        let text = self.run(&format!("profile {arguments}"))?;
        if text.starts_with(STOOD) {
            return Ok(None);
        }
        Report::parse(&text).map(Some)
    }

    /// What runs.
    ///
    /// # Errors
    /// If `ps` does not tell.
    pub fn processes(&mut self) -> Result<Vec<Process>> {
        tables::processes(&self.run("ps")?)
    }

    /// Checks that all of these still run: none has died, and been started anew.
    ///
    /// # Errors
    /// If one is gone.
    pub fn expect_alive(&mut self, processes: &[Process]) -> Verdict {
        let now = self.processes()?;
        for process in processes {
            let lives = now.iter().any(|other| other.pid == process.pid);
            ensure!(lives, "{} is gone: {now:#?}", process.name);
        }
        Ok(())
    }

    /// Where the memory is.
    ///
    /// # Errors
    /// If `mem` does not tell.
    pub fn memory(&mut self) -> Result<Memory> {
        tables::memory(&self.run("mem")?)
    }

    /// Starts a program in the background; returns its pid.
    ///
    /// # Errors
    /// If the shell does not say that it started.
    pub fn start(&mut self, program: &str) -> Result<u64> {
        let text = self.run(&format!("run {program} &"))?;
        started_pid(&text).with_context(|| format!("`run {program} &` printed:\n{text}"))
    }

    /// Powers off, and checks that the machine agrees.
    ///
    /// # Errors
    /// If it ends in another way, or not at all.
    pub fn power_off(mut self) -> Verdict {
        self.guest.send(b"poweroff\n")?;
        Ok(self.guest.expect_exit(debug_exit(POWER_OFF))?)
    }
}

/// The pid in what the shell says of a program that it starts in the background.
fn started_pid(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("started ")?;
    rest.split(' ').next()?.parse().ok()
}
