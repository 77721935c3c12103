//! The machine itself, with a guest too small to be wrong.

use std::fs;

use anyhow::{Result, ensure};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{POWER_OFF, debug_exit};
use crate::test::{Case, Context, Verdict};

use super::guest::Guest;
use super::miniature;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("machine_echoes_and_powers_off", || {
            echo(context, BootOptions::default())
        }),
        Case::new("machine_is_the_same_under_icount", || {
            let options = BootOptions {
                icount: true,
                ..BootOptions::default()
            };
            echo(context, options)
        }),
        Case::new("machine_outlives_its_input", || outlive(context)),
        Case::new("machine_ends_at_a_triple_fault", || fault(context)),
    ]
}

fn start(context: &Context<'_>, options: BootOptions) -> Result<Guest> {
    let directory = context.workspace.target.join("system-tests");
    fs::create_dir_all(&directory)?;
    let path = directory.join(format!("miniature-{:?}", std::thread::current().id()));
    fs::write(&path, miniature::elf())?;
    let image = Image {
        kernel: path,
        bootfs: None,
    };
    Ok(Guest::boot(&image, options)?)
}

fn echo(context: &Context<'_>, options: BootOptions) -> Verdict {
    let mut guest = start(context, options)?;
    guest.prompt()?;
    ensure!(
        guest.run("a line")?.is_empty(),
        "more than the echo came back"
    );
    // Far more than any buffer on the way holds.
    let long = "0123456789".repeat(1000);
    guest.send(long.as_bytes())?;
    guest.send(b"!q")?;
    ensure!(guest.wait_for("!")? == long, "the echo differs");
    Ok(guest.expect_exit(debug_exit(POWER_OFF))?)
}

fn outlive(context: &Context<'_>) -> Verdict {
    let mut guest = start(context, BootOptions::default())?;
    guest.prompt()?;
    guest.send(b"w")?;
    guest.close_input();
    guest.wait_for("w.")?;
    Ok(guest.expect_exit(debug_exit(POWER_OFF))?)
}

fn fault(context: &Context<'_>) -> Verdict {
    let mut guest = start(context, BootOptions::default())?;
    guest.prompt()?;
    guest.send(b"f")?;
    Ok(guest.expect_exit(0)?)
}
