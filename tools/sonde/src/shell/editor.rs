//! Lines that are edited on this host. The editor waits for keys in a thread of its own, because the session has to be served meanwhile.

use std::env;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use anyhow::{Context as _, Result};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, ExternalPrinter};

use super::completion::Commands;

/// What is asked on the terminal, as the machine's own prompt.
const PROMPT: &str = "> ";
/// Lines remembered, also after the session.
const HISTORY_MAX: usize = 1000;

/// What came of a prompt.
#[derive(Debug)]
pub enum Answer {
    /// A line, entered.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D on an empty line: the session is left.
    Leave,
    /// The terminal is gone.
    Failed(io::Error),
}

/// The editor, as the thread that serves the session sees it.
pub struct Editor {
    asks: Sender<String>,
    answers: Receiver<Answer>,
    answered: UnixStream,
    printer: Box<dyn ExternalPrinter + Send>,
}

impl Editor {
    /// Starts it; it asks for nothing yet.
    ///
    /// # Errors
    /// If there is no terminal.
    pub fn start() -> Result<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_MAX)?
            .auto_add_history(true)
            .build();
        let mut editor = rustyline::Editor::<Commands, FileHistory>::with_config(config)?;
        editor.set_helper(Some(Commands));
        let history = history();
        if let Some(path) = &history {
            // There is none before the first session.
            let _ = editor.load_history(path);
        }
        let printer = editor.create_external_printer().context("no terminal")?;
        let (asks, asked) = mpsc::channel::<String>();
        let (answer, answers) = mpsc::channel();
        let (answered, mut wake) = UnixStream::pair()?;
        answered.set_nonblocking(true)?;
        thread::spawn(move || {
            for typed in asked {
                let read = editor.readline_with_initial(PROMPT, (&typed, ""));
                if let (Ok(_), Some(path)) = (&read, &history) {
                    // A line that cannot be remembered is as good as any.
                    let _ = editor.append_history(path);
                }
                let sent = answer.send(match read {
                    Ok(line) => Answer::Line(line),
                    Err(ReadlineError::Interrupted) => Answer::Interrupt,
                    Err(ReadlineError::Eof) => Answer::Leave,
                    Err(error) => Answer::Failed(io::Error::other(error)),
                });
                if sent.is_err() || wake.write_all(&[0]).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            asks,
            answers,
            answered,
            printer: Box::new(printer),
        })
    }

    /// Asks for a line that begins with what was typed ahead.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn ask(&self, typed: String) -> Result<()> {
        self.asks.send(typed).context("the editor has ended")
    }

    /// What is ready when there is an answer.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.answered.as_fd()
    }

    /// The answer, if there is one.
    pub fn answer(&self) -> Option<Answer> {
        // What wakes says nothing else.
        let _ = (&self.answered).read(&mut [0; 8]);
        self.answers.try_recv().ok()
    }

    /// Shows a row above the line that is edited.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn print(&mut self, row: &str) -> Result<()> {
        Ok(self.printer.print(format!("{row}\n"))?)
    }
}

/// The file with the lines of earlier sessions, where users' programs keep what they remember; nothing without a home.
fn history() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty());
    let state = state.map(PathBuf::from).or_else(|| {
        let home = env::var_os("HOME").filter(|path| !path.is_empty())?;
        Some(PathBuf::from(home).join(".local/state"))
    })?;
    let directory = state.join("sonde");
    fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history"))
}
