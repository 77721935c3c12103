//! What a session that may only look is refused, and that nothing comes of it.

use super::super::{COMMANDS, Role};
use super::Bench;

fn observer() -> Bench {
    let mut bench = Bench::default();
    bench.session.observes = true;
    bench.system.programs = vec!["spin"];
    bench.system.add(7, "spin");
    bench
}

#[test]
fn what_changes_the_system_takes_control() {
    let refused = "refused: it takes the role control, this session has observe\n";
    for (line, command) in [
        ("run spin &", "run"),
        ("run", "run"),
        ("demo", "demo"),
        ("kill 7", "kill"),
        ("kill", "kill"),
        ("poweroff", "poweroff"),
        ("reboot", "reboot"),
        ("trace on", "trace"),
        ("trace off", "trace"),
        ("help kill", "help: kill"),
        ("time run spin", "run"),
        ("repeat 3 kill 7", "kill"),
        ("more time repeat 2 poweroff", "poweroff"),
        ("> kill 7", "kill"),
    ] {
        let mut bench = observer();
        bench.system.kernel.tracing = line.contains("off");
        assert_eq!(bench.run(line), format!("{command}: {refused}"), "{line}");
        let system = bench.system;
        assert!(system.spawned.is_empty() && system.killed.is_empty());
        assert!(!system.powered_off && !system.rebooted);
        assert_eq!(system.kernel.tracing, line.contains("off"));
    }
}

#[test]
fn what_looks_does_not() {
    let looks = COMMANDS
        .iter()
        .filter(|command| command.role == Role::Observe);
    for command in looks {
        let mut bench = observer();
        bench.system.profile = Some(Ok("profiled\n".into()));
        assert!(!bench.run(command.name).contains("refused"));
    }
    assert!(observer().run("trace").contains("tracing is off"));
}

#[test]
fn help_lists_what_the_session_may_use() {
    let listed = |text: &str, name: &str| text.contains(&format!("  {name:9} "));
    let (all, some) = (Bench::default().run("help"), observer().run("help"));
    for command in COMMANDS {
        assert!(listed(&all, command.name), "{all}");
        let may = command.role == Role::Observe;
        assert_eq!(listed(&some, command.name), may, "{some}");
    }
}
