//! Boot archives with random damage: each boots to a prompt, or ends with a line that says what is wrong.

use anyhow::Context as _;
use fastrand::Rng;
use ipc::bootfs::Bootfs;

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{PANIC, POWER_OFF, debug_exit};
use crate::system::guest::{Guest, GuestError};
use crate::system::report::Report;
use crate::system::{archive, features};
use crate::test::{Context, Verdict};

use super::dice::one;

/// Archives.
const BOOTS: usize = 5;
/// Bytes before a file's data that hold its header, name and all.
const HEADER: usize = 128;
/// What init says of a program without which it ends the system.
const INIT_TELLS: &str = " cannot be started: its file ";

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    for _ in 0..BOOTS {
        let mut done = String::new();
        let image = archive::changed(context, "soak", |whole| {
            let bytes;
            (done, bytes) = damage(dice, whole)?;
            Some(bytes)
        })?;
        let options = BootOptions {
            smp: *one(dice, &[1, 2, 4]),
            ..BootOptions::default()
        };
        boot(&image, options).context(done)?;
    }
    Ok(())
}

/// What was done to an archive, and the result.
fn damage(dice: &mut Rng, whole: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut bytes = whole.to_vec();
    let files: Vec<_> = Bootfs::parse(whole).ok()?.files().collect();
    let file = one(dice, &files);
    let data = file.offset..file.offset + file.data.len();
    let (what, part) = match dice.u8(..6) {
        0 => {
            let length = dice.usize(..bytes.len());
            bytes.truncate(length);
            return Some((format!("cut to {length} bytes"), bytes));
        }
        1..=2 => (
            format!("the header of {}", file.name),
            data.start - HEADER..data.start,
        ),
        3..=4 => (file.name.to_owned(), data),
        _ => ("the archive".to_owned(), 0..bytes.len()),
    };
    let mut places = Vec::new();
    for _ in 0..dice.u8(1..=4) {
        let place = dice.usize(part.clone());
        bytes[place] ^= 1 << dice.u8(..8);
        places.push(format!("{place:#x}"));
    }
    let done = format!("bits changed in {what}: at {}", places.join(", "));
    Some((done, bytes))
}

fn boot(image: &Image, options: BootOptions) -> Verdict {
    let mut guest = Guest::boot(image, options)?;
    match guest.prompt() {
        Ok(_) => {
            guest.run("version")?;
            Report::check_all(&guest.run("profile 10")?)?;
            guest.run("run sleep 1")?;
            guest.send(b"poweroff\n")?;
            Ok(guest.expect_exit(debug_exit(POWER_OFF))?)
        }
        Err(GuestError::Ended { .. }) => {
            guest.expect_exit(debug_exit(PANIC))?;
            let said = guest.transcript();
            if said.contains(INIT_TELLS) {
                return Ok(());
            }
            features::is_told(&said, &["bootfs"])
        }
        Err(error) => Err(error.into()),
    }
}
