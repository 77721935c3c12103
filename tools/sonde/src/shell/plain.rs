//! A shell without a terminal: lines come from stdin, one at each prompt, and rows of output go to stdout.

use std::io::Write;
use std::os::fd::AsFd;

use anyhow::{Context as _, Result, ensure};
use remote_shell::ClientEvent;
use rustix::event::PollFlags;
use rustix::stdio::stdin;

use super::entered;
use super::row::Row;
use super::screen::{Screen, Shown};
use crate::exec::INTERRUPT;
use crate::link::Link;
use crate::output::{Output, Sink as _};
use crate::signals::{Asked, Signals};

/// Most that is read of a line, in bytes: far more than the machine takes, which says so.
const LINE_MAX: usize = 64 << 10;

/// What is known of the session.
struct Session<W> {
    screen: Screen,
    /// The row of output that has not ended.
    row: Row,
    output: Output<W>,
    /// Read from stdin, and not yet sent.
    lines: Vec<u8>,
    /// Stdin has ended.
    is_over: bool,
    /// The machine waits for a line.
    at_prompt: bool,
    /// Not yet taken by the link.
    input: Vec<u8>,
}

/// Runs the session until there are no more lines.
///
/// # Errors
/// If the machine ends it or is lost, or the output cannot be written.
pub fn run<W: Write + AsFd>(mut link: Link, signals: &Signals, out: W) -> Result<()> {
    let mut session = Session {
        screen: Screen::default(),
        row: Row::default(),
        output: Output::new(out),
        lines: Vec::new(),
        is_over: false,
        at_prompt: false,
        input: Vec::new(),
    };
    let ended = session.serve(&mut link, signals);
    let written = session.output.finish();
    if ended.is_ok() {
        link.close();
    }
    ended?;
    written.context("the output cannot be written")
}

impl<W: Write + AsFd> Session<W> {
    fn serve(&mut self, link: &mut Link, signals: &Signals) -> Result<()> {
        loop {
            link.turn()?;
            while let Some(event) = link.event()? {
                match event {
                    ClientEvent::Output(_, bytes) => self.show(&bytes),
                    ClientEvent::Finished(_) => return Ok(()),
                    _ => {}
                }
            }
            if self.screen.prompt().is_some() {
                self.row = Row::default();
                self.at_prompt = true;
            }
            if self.at_prompt {
                match self.line() {
                    Some(line) => {
                        self.input.extend(entered(&line));
                        self.screen.sent();
                        self.at_prompt = false;
                    }
                    None if self.is_over => return Ok(()),
                    None => {}
                }
            }
            let taken = link.send(&self.input);
            self.input.drain(..taken);
            if taken > 0 {
                link.turn()?;
            }
            self.wait(link, signals)?;
            match signals.take() {
                Asked::Nothing => {}
                Asked::Interrupt if !self.at_prompt => self.input.push(INTERRUPT),
                Asked::Interrupt | Asked::End => return Ok(()),
            }
        }
    }

    /// Waits for the machine, for room in the output, for a signal, and, if a line is wanted, for that.
    fn wait(&mut self, link: &Link, signals: &Signals) -> Result<()> {
        let [interrupt, end] = signals.fds().map(|fd| (fd, PollFlags::IN));
        let mut others = vec![interrupt, end];
        let wants_line = self.at_prompt;
        if wants_line {
            others.push((stdin(), PollFlags::IN));
        }
        others.extend(self.output.waits_for().map(|fd| (fd, PollFlags::OUT)));
        let ready = link.wait(&others)?;
        let mut ready = ready.into_iter().skip(2);
        if wants_line && ready.next() == Some(true) {
            self.read()?;
        }
        if ready.next() == Some(true) {
            self.output
                .write()
                .context("the output cannot be written")?;
        }
        Ok(())
    }

    /// Takes what stdin has.
    fn read(&mut self) -> Result<()> {
        let mut piece = [0; 4096];
        let read = rustix::io::read(stdin(), &mut piece).context("no lines can be read")?;
        self.lines.extend_from_slice(&piece[..read]);
        self.is_over = read == 0;
        ensure!(
            self.lines.len() <= LINE_MAX || self.lines.contains(&b'\n'),
            "a line has more than {LINE_MAX} bytes"
        );
        Ok(())
    }

    /// The next line, if it is there whole, that is not blank.
    fn line(&mut self) -> Option<String> {
        loop {
            let end = self.lines.iter().position(|&byte| byte == b'\n');
            let (text, rest) = match end {
                Some(end) => (end, end + 1),
                None if self.is_over && !self.lines.is_empty() => {
                    (self.lines.len(), self.lines.len())
                }
                None => return None,
            };
            let line = String::from_utf8_lossy(&self.lines[..text])
                .trim()
                .to_owned();
            self.lines.drain(..rest);
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    /// Writes the rows that ended.
    fn show(&mut self, bytes: &[u8]) {
        let Shown { above, bytes } = self.screen.output(bytes);
        let rows = bytes.into_iter().filter_map(|byte| self.row.feed(byte));
        for row in above.into_iter().chain(rows) {
            self.output.add(row.as_bytes());
            self.output.add(b"\n");
        }
    }
}
