//! Boot archives that Sonde cannot work with: one line that says so, and a failure.

use anyhow::ensure;
use ipc::bootfs::Bootfs;

use crate::cli::BootOptions;
use crate::qemu::{POWER_OFF, debug_exit};
use crate::test::{Case, Context, Verdict};

use super::archive::{changed, with_system};
use super::features::{fails, refuses};
use super::guest::Guest;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("a_missing_bootfs_is_told", || {
            damaged(context, "missing", |_| None)
        }),
        Case::new("a_truncated_bootfs_is_told", || {
            damaged(context, "truncated", |bytes| {
                Some(bytes[..bytes.len() / 2].to_vec())
            })
        }),
        Case::new("a_bootfs_of_other_bytes_is_told", || {
            damaged(context, "other", |bytes| Some(vec![0x5a; bytes.len()]))
        }),
        Case::new("a_damaged_init_is_told", || {
            damaged(context, "init", |bytes| damage(bytes, "bin/init"))
        }),
        Case::new("a_damaged_configuration_is_told", || {
            damaged(context, "system", |bytes| damage(bytes, "system"))
        }),
        Case::new(
            "a_damaged_program_without_which_nothing_works_is_told",
            || {
                for program in ["console", "shell"] {
                    let file = format!("bin/{program}");
                    let image = changed(context, program, |bytes| damage(bytes, &file))?;
                    init_tells(&fails(&image, BootOptions::default())?, program)?;
                }
                Ok(())
            },
        ),
        Case::new(
            "a_damaged_program_is_missed_by_those_who_ask_for_it",
            || without_some(context),
        ),
        Case::new("the_end_of_init_is_told_with_what_it_said", || {
            let image = changed(context, "unreadable", unreadable)?;
            let options = BootOptions {
                cmdline: "trace".into(),
                ..BootOptions::default()
            };
            let said = fails(&image, options)?;
            for words in [
                &["init: ", "panicked at", "Damaged"][..],
                &["init has panicked"],
                &["  <- init`main+0x"],
                // A breakpoint, with which a program that panics ends itself, was the last that the traced CPU did.
                &["  -", " us fault 1.1 0x3 "],
            ] {
                let is_told = |line: &str| words.iter().all(|word| line.contains(word));
                ensure!(
                    said.lines().any(is_told),
                    "no line with {words:?} in:\n{said}"
                );
            }
            Ok(())
        }),
    ]
}

/// Fails unless a machine said that this program's file is damaged, and that init ended for that.
fn init_tells(said: &str, program: &str) -> Verdict {
    for line in [
        &format!("init: {program} cannot be started: its file in bootfs is damaged\n"),
        &format!("init: nothing works without {program}\n"),
        "panic: init has ended: ",
    ] {
        ensure!(said.contains(line), "no line {line:?} in:\n{said}");
    }
    Ok(())
}

/// A system without profd and without one program: the rest works.
fn without_some(context: &Context<'_>) -> Verdict {
    let image = changed(context, "profd", |bytes| {
        damage(&damage(bytes, "bin/profd")?, "bin/spin")
    })?;
    let mut guest = Guest::boot(&image, BootOptions::default())?;
    guest.prompt()?;
    for (line, answer) in [
        ("run spin", "run: `spin`: its file is damaged\n"),
        ("run profd", "run: `profd`: its file is damaged\n"),
        (
            "dmesg 9 init",
            "profd cannot be started: its file in bootfs is damaged",
        ),
        ("profile 10", "profile: "),
        ("run sleep 1", ""),
    ] {
        let said = guest.run(line)?;
        ensure!(
            said.contains(answer),
            "`{line}` printed no {answer:?}, but:\n{said}"
        );
    }
    guest.send(b"poweroff\n")?;
    Ok(guest.expect_exit(debug_exit(POWER_OFF))?)
}

/// Boots with a changed archive, or none; one line must name it.
fn damaged(
    context: &Context<'_>,
    name: &str,
    change: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Verdict {
    let image = changed(context, name, change)?;
    refuses(&image, BootOptions::default(), &["bootfs"])
}

/// The archive with one byte in the middle of a file changed.
fn damage(bytes: &[u8], name: &str) -> Option<Vec<u8>> {
    let file = Bootfs::parse(bytes).ok()?.find(name)?;
    let mut bytes = bytes.to_vec();
    bytes[file.offset + file.data.len() / 2] ^= 1;
    Some(bytes)
}

/// The archive with a configuration whose sum is right, and which cannot be read all the same.
fn unreadable(bytes: &[u8]) -> Option<Vec<u8>> {
    with_system(bytes, |data| {
        data.fill(0xff);
        Some(())
    })
}
