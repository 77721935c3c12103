//! The guest that a shell script plays: every wait, met and missed.

use super::*;

/// A guest that a shell script plays: it echoes lines, answers some, and powers off.
fn fake() -> Guest {
    let script = r#"
        printf 'Sonde: fake\r\n> '
        while IFS= read -r line; do
            printf '%s\r\n' "$line"
            case $line in
                twice) printf 'one\r\ntwo\r\n' ;;
                hang) sleep 60 ;;
                poweroff) echo bye; exit 33 ;;
            esac
            printf '> '
        done
        echo 'no more input'
        echo 'a warning' >&2
        exit 35
    "#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script]);
    Guest::start(shell).unwrap()
}

#[test]
fn commands_are_answered() {
    let mut guest = fake();
    assert_eq!(guest.prompt().unwrap(), "Sonde: fake\n");
    assert_eq!(guest.run("twice").unwrap(), "one\ntwo\n");
    assert_eq!(guest.run("").unwrap(), "");
    guest.send(b"poweroff\n").unwrap();
    assert_eq!(guest.wait_for("bye").unwrap(), "poweroff\n");
    assert_eq!(guest.exit().unwrap().code(), Some(33));
}

#[test]
fn a_guest_that_hangs_is_noticed_and_killed() {
    let mut guest = fake();
    guest.prompt().unwrap();
    guest.set_patience(Duration::from_millis(200));
    let error = guest.run("hang").unwrap_err();
    let GuestError::Timeout {
        waiting_for,
        transcript,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(waiting_for, "the prompt");
    assert!(transcript.ends_with("> hang\n"), "{transcript:?}");
    assert!(matches!(guest.exit(), Err(GuestError::Timeout { .. })));
}

#[test]
fn an_early_end_shows_everything() {
    let mut guest = fake();
    guest.prompt().unwrap();
    guest.close_input();
    assert_eq!(guest.exit().unwrap().code(), Some(35));
    assert!(guest.transcript().contains("a warning"));
    let error = guest
        .wait_for("more")
        .and_then(|_| guest.wait_for("more"))
        .unwrap_err();
    assert!(matches!(error, GuestError::Ended { .. }), "{error}");
    assert!(guest.send(b"x").is_err());
    assert!(guest.transcript().contains("no more input"));
}
