//! What is said of an event, beside when, where and whose.

use alloc::format;
use alloc::string::String;

use ipc::abi::exit::ExitReason;
use ipc::abi::info::ThreadState;
use ipc::abi::trace::{InterruptKind, TraceKind, TraceRecord};
use ipc::abi::{NEVER, Tag};
use profd::text::counted;

use crate::format::Timestamp;

/// The vector of a page fault.
const PAGE_FAULT: u32 = 14;

/// The event's own details; none for one that has none.
pub(super) fn details(record: &TraceRecord) -> String {
    let (detail, [first, second]) = (record.detail(), record.words);
    let Some(kind) = record.kind() else {
        return format!(
            "kind {} {detail:#x} {first:#x} {second:#x}",
            record.event as u32
        );
    };
    match kind {
        TraceKind::Call => format!("on {first:#x}, {}", message(second)),
        TraceKind::Receive => format!("from tid {first}, {}", message(second)),
        TraceKind::Reply | TraceKind::Transfer => format!("to tid {first}, {}", message(second)),
        TraceKind::Switch => format!("priority {detail}"),
        TraceKind::Wake => format!("for cpu {detail}"),
        TraceKind::Block => block(detail, first, second),
        TraceKind::Fault if detail & 0xff == PAGE_FAULT => {
            format!("#PF {:#x} at {first:#x} rip {second:#x}", detail >> 8)
        }
        TraceKind::Fault => {
            let (vector, error) = (detail & 0xff, detail >> 8);
            format!("vector {vector} error {error:#x} rip {second:#x}")
        }
        TraceKind::Interrupt => match InterruptKind::from_raw(detail) {
            Some(InterruptKind::Line) => format!("line {first}"),
            Some(kind) => kind.name().into(),
            None => format!("kind {detail}"),
        },
        TraceKind::ProcessStart => format!("made by pid {first}"),
        TraceKind::ProcessEnd => match u64::from(detail) {
            EXITED => format!("exited with {first}"),
            KILLED => "killed".into(),
            FAULTED => "faulted".into(),
            other => format!("reason {other}"),
        },
        TraceKind::ThreadStart => format!("rip {first:#x} rsp {second:#x}"),
        TraceKind::Idle | TraceKind::ThreadEnd => String::new(),
    }
}

const EXITED: u64 = ExitReason::Exited as u64;
const KILLED: u64 = ExitReason::Killed as u64;
const FAULTED: u64 = ExitReason::Faulted as u64;

fn message(tag: u64) -> String {
    let tag = Tag::from_raw(tag);
    let mut text = format!("op {}", tag.op());
    if !tag.is_empty() {
        text += &format!(", {}", counted(tag.len() as u64, "byte"));
    }
    if tag.handles() > 0 {
        text += &format!(", {}", counted(tag.handles() as u64, "handle"));
    }
    text
}

fn block(state: u32, deadline: u64, on: u64) -> String {
    let state = ThreadState::from_raw(state.into());
    let mut text = String::from(state.map_or("?", ThreadState::name));
    if on != 0 {
        text += &format!(" on {on:#x}");
    }
    if deadline != NEVER {
        text += &format!(" until {}", Timestamp(deadline));
    }
    text
}
