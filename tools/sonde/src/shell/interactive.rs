//! A shell at a terminal.

use std::io;

use anyhow::{Context as _, Result};
use remote_shell::ClientEvent;
use rustix::event::PollFlags;
use rustix::stdio::stdin;

use super::editor::{Answer, Editor};
use super::entered;
use super::screen::Screen;
use super::terminal::Terminal;
use crate::exec::INTERRUPT;
use crate::link::Link;
use crate::output::{Output, Sink as _};
use crate::signals::{Asked, Signals};

/// Cursor to the start of its row, and that erased.
const CLEAR_ROW: &[u8] = b"\r\x1b[K";
/// Pasted text comes like typed one again: the editor has it marked, and turns that off itself unless it is cut off.
const NO_MARKED_PASTES: &[u8] = b"\x1b[?2004l\r\n";

/// What is known of the session.
struct Session {
    terminal: Terminal,
    editor: Editor,
    screen: Screen,
    output: Output,
    /// A line is being edited.
    editing: bool,
    /// Typed or entered, and not yet taken by the link.
    input: Vec<u8>,
}

/// Runs the session until it is left.
///
/// # Errors
/// If the machine ends it or is lost, or the terminal is.
pub fn run(mut link: Link, signals: &Signals) -> Result<()> {
    let mut session = Session {
        terminal: Terminal::new()?,
        editor: Editor::start()?,
        screen: Screen::default(),
        output: Output::new(io::stdout()),
        editing: false,
        input: Vec::new(),
    };
    session.terminal.raw()?;
    let ended = session.serve(&mut link, signals);
    if session.editing {
        session.output.add(NO_MARKED_PASTES);
    }
    // Behind the terminal's end there is nobody to tell.
    let _ = session.output.finish();
    drop(session);
    if ended.is_ok() {
        link.close();
    }
    ended
}

impl Session {
    fn serve(&mut self, link: &mut Link, signals: &Signals) -> Result<()> {
        loop {
            link.turn()?;
            while let Some(event) = link.event()? {
                match event {
                    ClientEvent::Output(_, bytes) => self.show(&bytes)?,
                    ClientEvent::Finished(_) => return Ok(()),
                    _ => {}
                }
            }
            if let Some(typed) = self.screen.prompt() {
                self.edit(typed)?;
            }
            let taken = link.send(&self.input);
            self.input.drain(..taken);
            if taken > 0 {
                link.turn()?;
            }
            let source = if self.editing {
                self.editor.fd()
            } else {
                stdin()
            };
            let [interrupt, end] = signals.fds().map(|fd| (fd, PollFlags::IN));
            let mut others = vec![interrupt, end];
            if self.input.is_empty() {
                others.push((source, PollFlags::IN));
            }
            others.extend(self.output.waits_for().map(|fd| (fd, PollFlags::OUT)));
            let ready = link.wait(&others)?;
            let is_ready = |index: usize| ready.get(index).is_some_and(|&is_ready| is_ready);
            let (has_input, has_room) = match self.input.is_empty() {
                true => (is_ready(2), is_ready(3)),
                false => (false, is_ready(2)),
            };
            if has_room {
                self.output.write()?;
            }
            if has_input && !self.take()? {
                return Ok(());
            }
            match signals.take() {
                Asked::Nothing => {}
                Asked::Interrupt => self.input.push(INTERRUPT),
                Asked::End => return Ok(()),
            }
        }
    }

    /// Shows output, above the line if one is edited.
    fn show(&mut self, bytes: &[u8]) -> Result<()> {
        let shown = self.screen.output(bytes);
        for row in shown.above {
            if self.editing {
                self.editor.print(&row)?;
            } else {
                self.output.add(row.as_bytes());
                self.output.add(b"\r\n");
            }
        }
        self.output.add(&shown.bytes);
        Ok(())
    }

    /// Has a line edited where the machine's prompt is.
    fn edit(&mut self, typed: String) -> Result<()> {
        self.output.add(CLEAR_ROW);
        self.output.finish()?;
        self.terminal.as_found()?;
        self.editing = true;
        self.editor.ask(typed)
    }

    /// Takes what was typed or entered; whether the session goes on.
    fn take(&mut self) -> Result<bool> {
        if !self.editing {
            let mut keys = [0; 256];
            let read = rustix::io::read(stdin(), &mut keys).context("no terminal")?;
            self.input.extend_from_slice(&keys[..read]);
            return Ok(read > 0);
        }
        let Some(answer) = self.editor.answer() else {
            return Ok(true);
        };
        match answer {
            Answer::Line(line) if line.trim().is_empty() => {
                self.editor.ask(String::new())?;
                return Ok(true);
            }
            Answer::Line(line) => self.input.extend(entered(&line)),
            Answer::Interrupt => self.input.push(INTERRUPT),
            Answer::Leave => {
                self.editing = false;
                return Ok(false);
            }
            Answer::Failed(error) => return Err(error).context("no terminal"),
        }
        self.editing = false;
        self.screen.sent();
        self.terminal.raw()?;
        Ok(true)
    }
}
