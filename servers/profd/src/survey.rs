//! What CPUID answers on each CPU, read once, when somebody asks for the first time: it does not change, and reading it takes a turn of every
//! CPU, for which nothing else has to wait.

use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::abi::profile::Source;
use ipc::proto::profd::{Processors, Refusal};
use ipc::proto::{Call, Parked, Responder, Served};

use crate::driver::Driver;
use crate::lscpu::leaves::Leaves;
use crate::lscpu::{self, Cpu};
use crate::service::Platform;

/// How far it is.
#[derive(Default)]
pub enum Survey<P: Responder> {
    /// Nobody has asked, or it failed.
    #[default]
    Unread,
    /// CPUs are being read. Who waits, and whether for all of it.
    Reading(Vec<(bool, Parked<P, Processors>)>),
    /// By CPU.
    Read(Vec<Leaves>),
}

impl<P: Responder> Survey<P> {
    /// Answers a call, or lets it wait until the CPUs have been read.
    ///
    /// # Errors
    /// There is no memory for that, or for the text.
    pub fn serve<S: Platform<Handle = P::Handle>>(
        &mut self,
        call: Call<'_, P, Processors>,
        verbose: bool,
        driver: &mut impl Driver,
        platform: &mut S,
    ) -> Served<Processors, P::Handle> {
        if let Self::Read(leaves) = self {
            let (bytes, handle) = text(leaves, verbose, driver, platform)?;
            return Ok(call.reply_with(bytes, [handle]));
        }
        if let Self::Unread = self {
            platform.begin_survey().map_err(failed)?;
            *self = Self::Reading(Vec::new());
        }
        let (caller, outcome) = call.park().map_err(|_| Refusal::NoMemory)?;
        if let Self::Reading(waiting) = self {
            waiting.push((verbose, caller));
        }
        Ok(outcome)
    }

    /// The CPUs have been read: answers those who wait for that.
    pub fn end<S: Platform<Handle = P::Handle>>(
        &mut self,
        driver: &mut impl Driver,
        platform: &mut S,
        responder: &mut P,
    ) {
        let found = platform.end_survey();
        let Self::Reading(waiting) = core::mem::take(self) else {
            return;
        };
        for (verbose, caller) in waiting {
            let outcome = match &found {
                Ok(leaves) => text(leaves, verbose, driver, platform),
                Err(error) => Err(failed(*error)),
            };
            // If the caller is gone, nobody misses the answer.
            let _ = match outcome {
                Ok((bytes, handle)) => caller.answer_with(responder, &bytes, [handle]),
                Err(refusal) => caller.refuse(responder, &refusal),
            };
        }
        if let Ok(leaves) = found {
            *self = Self::Read(leaves);
        }
    }
}

/// The processors in words: how many bytes, and where.
fn text<S: Platform>(
    leaves: &[Leaves],
    verbose: bool,
    driver: &mut impl Driver,
    platform: &mut S,
) -> Result<(u32, S::Handle), Refusal> {
    let mut cpus = Vec::new();
    for (cpu, leaves) in (0..).zip(leaves) {
        let monitor = driver.monitor(cpu).map_err(failed)?;
        cpus.push(Cpu { leaves, monitor });
    }
    let status = driver.status().map_err(failed)?;
    let processors = lscpu::Processors {
        cpus,
        best: Source::from_raw(status.best),
        exposed: platform.is_exposed(),
    };
    let text = processors.text(verbose);
    let bytes = u32::try_from(text.len()).map_err(|_| Refusal::NoMemory)?;
    let handle = platform.publish(text.as_bytes());
    Ok((bytes, handle.map_err(|_| Refusal::NoMemory)?))
}

const fn failed(error: Error) -> Refusal {
    Refusal::NotSurveyed {
        error: error as u64,
    }
}
