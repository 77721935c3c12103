//! A load for a network: datagrams at a rate, from several threads, and a count of what comes back.
//!
//! A peer that echoes is known by its echoes; one that only takes sends nothing back, which looks like a loss of all. A datagram that
//! comes back counts once, however often it does: each carries the number of its run, its own number and the time at which it was sent.

mod pace;
mod rates;
mod report;
mod seen;
mod sender;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::address;
use crate::cli::{LoadOptions, NO_ANSWER};
use crate::link::socket;
use pace::Pace;
use rates::Rates;
use report::Summary;
use sender::Sender;

/// Least bytes of a datagram: those that tell which one it is and when it was sent.
pub const SIZE_MIN: usize = 24;
/// Most bytes of a datagram: what UDP over IPv4 can carry.
pub const SIZE_MAX: usize = 65_507;
/// Most datagrams in a second that can be asked for.
pub const PPS_MAX: u64 = 100_000_000;
/// Longest load, in seconds: a week.
pub const SECS_MAX: u64 = 7 * 24 * 60 * 60;
/// Most threads.
pub const THREADS_MAX: u64 = 64;
/// How long replies are waited for when the last datagram is sent, if some are missing.
const LINGER: Duration = Duration::from_secs(1);
/// How often rates are told.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Loads the peer, tells rates every second, and in the end what became of all that was sent.
///
/// # Errors
/// If the peer is not known, or no socket can be had.
pub fn run(options: &LoadOptions) -> Result<ExitCode> {
    let peer = address::resolve(&options.peer, None)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let summary = load(peer, options, LINGER, &stop, |line| println!("{line}"))?;
    for line in summary.lines() {
        println!("{line}");
    }
    if summary.is_refused() {
        eprintln!("sonde: {peer}: nobody listens at this port");
        return Ok(ExitCode::from(NO_ANSWER));
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends until the time is over or it is told to stop.
fn load(
    peer: SocketAddr,
    options: &LoadOptions,
    linger: Duration,
    stop: &AtomicBool,
    mut tell: impl FnMut(&str),
) -> Result<Summary> {
    let start = Instant::now();
    let end = (options.secs > 0).then(|| start + Duration::from_secs(options.secs));
    let rates = Rates::default();
    tell(&report::heading(peer, options));
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<Infallible>();
        let mut threads = Vec::new();
        for index in 0..options.threads {
            let socket = socket(peer).with_context(|| format!("{peer} cannot be reached"))?;
            let pace = Pace::new(start, options.pps, index, options.threads);
            let mut sender = Sender::new(socket, options.size, pace);
            let (rates, running) = (&rates, running.clone());
            threads.push(scope.spawn(move || {
                let _running = running;
                sender.run(end, linger, stop, rates)
            }));
        }
        drop(running);
        let (mut before, mut due) = (rates.now(), start + TELL_EVERY);
        // Nothing is ever sent: the channel ends with the last of the threads.
        while ended.recv_timeout(due.saturating_duration_since(Instant::now()))
            == Err(RecvTimeoutError::Timeout)
        {
            let now = rates.now();
            // The last second is in the summary; behind it, replies are waited for.
            if end.is_none_or(|end| due < end) {
                tell(&report::second(due - start, now - before));
            }
            (before, due) = (now, due + TELL_EVERY);
        }
        let mut summary = Summary::of(options.size);
        for thread in threads {
            let counts = thread.join().ok().context("a thread has panicked")?;
            summary.add(&counts.with_context(|| format!("{peer} cannot be reached"))?);
        }
        Ok(summary)
    })
}

#[cfg(test)]
mod tests;
