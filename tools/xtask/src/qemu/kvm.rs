//! Whether the host's CPU can be used.
//!
//! `/dev/kvm` may exist and yet be unusable: nested without the machinery, QEMU aborts on the first MSR it sets. So it is tried
//! with a machine that never runs, before the real one has read a byte of input.

use std::io::Write;
use std::process::Stdio;

use crate::cli::{Accel, BootOptions};

use super::command::bare;

/// Falls back to TCG, with a message, if KVM was asked for and does not work.
pub fn choose(options: &mut BootOptions) {
    if options.accel == Accel::Kvm && !works(&options.cpu) {
        eprintln!("xtask: KVM cannot be used here; emulating with TCG");
        options.accel = Accel::Tcg;
    }
}

/// Whether a stopped machine with this CPU model can be made and ended.
fn works(cpu: &str) -> bool {
    let mut qemu = bare();
    qemu.args(["-accel", "kvm", "-cpu", cpu, "-S", "-monitor", "stdio"]);
    qemu.stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = qemu.spawn() else {
        return false;
    };
    if let Some(mut stdin) = child.stdin.take() {
        // It may have aborted already; its status says so.
        let _ = stdin.write_all(b"quit\n");
    }
    child.wait().is_ok_and(|status| status.success())
}
