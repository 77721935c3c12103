//! Command lines and key files from which no remote shell comes: each is told in a line, and the machine goes on.

use anyhow::{Result, ensure};
use ipc::bootfs::{Bootfs, REMOTE_KEYS};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::system::archive::changed;
use crate::system::calm::until;
use crate::system::guest::Guest;
use crate::system::session::Session;
use crate::test::{Case, Context, Verdict};

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![Case::new("a_remote_shell_that_is_wrong_stays_off", || {
        stays_off(context)
    })]
}

fn stays_off(context: &Context<'_>) -> Verdict {
    let image = context.image()?;
    for (cmdline, told) in [
        (
            "udpshell=99999",
            "udpshell=99999: must be a port, 1 to 65535",
        ),
        ("udpshell=", "udpshell=: must be a port, 1 to 65535"),
        (
            "udpshell-open",
            "udpshell-open needs a port, such as udpshell=5555",
        ),
    ] {
        let line = format!("net: {told}; the remote shell is off");
        tells(image, cmdline, &line)?;
    }
    let image = changed(context, "keys", |bytes| {
        let file = Bootfs::parse(bytes).ok()?.find(REMOTE_KEYS)?;
        let mut bytes = bytes.to_vec();
        bytes[file.offset] = b'x';
        Some(bytes)
    })?;
    let told =
        "etc/remote.keys: line 1: `control KEY`, `observe KEY` or `#` and a comment is allowed";
    let line = format!("net: {told}; the remote shell is off");
    tells(&image, "udpshell=5555", &line)
}

/// Boots; the log has this line, and nothing that says that a shell is there.
fn tells(image: &Image, cmdline: &str, line: &str) -> Verdict {
    let log = log(image, cmdline)?;
    ensure!(log.contains(line), "no {line:?} in {log}");
    ensure!(!log.contains("remote shell at"), "{log}");
    Ok(())
}

fn log(image: &Image, cmdline: &str) -> Result<String> {
    let options = BootOptions {
        cmdline: cmdline.into(),
        ..BootOptions::default()
    };
    let mut session = Session::begin(Guest::boot(image, options)?)?;
    // The net server begins beside the shell.
    let mut log = String::new();
    until(&mut session, |session| {
        // Longer lines go on behind two blanks.
        log = session.run("dmesg")?.replace("\n  ", " ");
        ensure!(log.contains("the remote shell is off"), "{log}");
        Ok(())
    })?;
    session.power_off()?;
    Ok(log)
}
