//! Whether QEMU has the CPU model that was asked for. QEMU only says that it has not, and neither what it has nor by which option of ours.

use std::fmt;

use crate::cli::{Accel, BootOptions};

use super::command::{bare, name};
use super::kvm::HOST;

/// Why there is no such CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoModel {
    /// QEMU does not have it.
    Unknown {
        model: String,
        /// The binary that was asked.
        qemu: String,
    },
    /// It is the host's own, and is to be emulated.
    Host,
}

impl fmt::Display for NoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { model, qemu } => write!(
                f,
                "--cpu {model}: QEMU has no such model; `{qemu} -cpu help` lists what it has"
            ),
            Self::Host => write!(
                f,
                "--cpu {HOST}: the host's own CPU cannot be emulated; --accel kvm --cpu {HOST} uses it"
            ),
        }
    }
}

impl std::error::Error for NoModel {}

/// Asks QEMU, unless it is the model that every QEMU has. One that does not answer is left to refuse in its own words.
///
/// # Errors
/// It does not list the model, or does not emulate it.
pub fn check(options: &BootOptions) -> Result<(), NoModel> {
    // Behind a comma are features.
    let model = options.cpu.split(',').next().unwrap_or_default();
    if model == BootOptions::default().cpu {
        return Ok(());
    }
    if model == HOST && options.accel == Accel::Tcg {
        return Err(NoModel::Host);
    }
    let mut qemu = bare();
    let listed = qemu.args(["-cpu", "help"]).output();
    match listed {
        Ok(listed)
            if listed.status.success() && !has(&String::from_utf8_lossy(&listed.stdout), model) =>
        {
            let qemu = name().display().to_string();
            let model = model.to_owned();
            Err(NoModel::Unknown { model, qemu })
        }
        _ => Ok(()),
    }
}

/// Whether a list of models has this one: `x86 NAME  what it is` in QEMU 7.2, without the `x86` in later ones. Names of features
/// follow the models.
fn has(list: &str, model: &str) -> bool {
    let (models, _) = list.split_once("CPUID flags").unwrap_or((list, ""));
    let mut lines = models.lines();
    lines.any(|line| line.split_whitespace().take(2).any(|word| word == model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_in_the_lists_of_old_and_new_versions() {
        let old = "Available CPUs:\nx86 Nehalem-v1  Intel Core i7\nx86 max  all\n\nRecognized CPUID flags:\n  sse sse2\n";
        let new = old.replace("x86 ", "  ");
        for list in [old, &new] {
            assert!(has(list, "Nehalem-v1") && has(list, "max"), "{list}");
            for model in ["Nehalem", "nosuch", "sse", ""] {
                assert!(!has(list, model), "{model}");
            }
        }
    }
}
