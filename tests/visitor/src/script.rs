//! What each session is for, and what its user does: the program's arguments.

use alloc::string::String;
use alloc::vec::Vec;

use ipc::proto::Text;
use ipc::proto::remote::{Purpose, Role};

/// Parts the sessions.
const NEXT: &str = "/";

/// What a user does at a session, one after the other.
#[derive(Clone, Debug)]
pub enum Step {
    /// Waits until this is shown: `=TEXT`.
    See(String),
    /// Types this: `+TEXT`, with `^C` for Ctrl-C and the like.
    Type(Vec<u8>),
    /// Has the next session begin: `>`.
    Next,
    /// Waits until every session that began later is over: `|`.
    Later,
    /// Goes away: `-`.
    HangUp,
}

/// Sessions that are alike and begin together.
#[derive(Clone, Debug)]
pub struct Script {
    /// How many.
    pub count: usize,
    /// What it may do.
    pub role: Role,
    /// What it is for.
    pub purpose: Purpose,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// Whether the next ones begin only when this says so.
    pub fn holds_up(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Next))
    }
}

/// The sessions that the arguments tell of: `N ROLE shell STEP...` or `N ROLE exec COMMAND STEP...`, with `/` between. `None` if they do
/// not.
pub fn parse(words: &[&str]) -> Option<Vec<Script>> {
    let mut scripts = Vec::new();
    for words in words.split(|&word| word == NEXT) {
        let (&[count, role, purpose], rest) = words.split_first_chunk()?;
        let role = match role {
            "observe" => Role::Observe,
            "control" => Role::Control,
            _ => return None,
        };
        let (purpose, steps) = match (purpose, rest) {
            ("shell", steps) => (Purpose::Shell, steps),
            ("exec", [line, steps @ ..]) => (Purpose::Exec(Text::try_from(*line).ok()?), steps),
            _ => return None,
        };
        let steps: Option<Vec<Step>> = steps.iter().map(|word| step(word)).collect();
        scripts.push(Script {
            count: count.parse().ok()?,
            role,
            purpose,
            steps: steps?,
        });
    }
    Some(scripts)
}

fn step(word: &str) -> Option<Step> {
    let (kind, text) = word.split_at_checked(1)?;
    Some(match (kind, text) {
        ("=", text) => Step::See(text.into()),
        ("+", text) => Step::Type(typed(text)),
        (">", "") => Step::Next,
        ("|", "") => Step::Later,
        ("-", "") => Step::HangUp,
        _ => return None,
    })
}

/// The bytes of what is typed: `^` makes a control character of the one behind it.
fn typed(text: &str) -> Vec<u8> {
    let mut control = false;
    let mut bytes = Vec::new();
    for byte in text.bytes() {
        match byte {
            b'^' if !control => control = true,
            byte => {
                bytes.push(if control { byte & 0x1f } else { byte });
                control = false;
            }
        }
    }
    bytes
}
