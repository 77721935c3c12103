//! `reboot`: begins the machine anew.

use core::fmt;

use super::{Command, Context, Group, Role};

pub(super) const REBOOT: Command = Command {
    name: "reboot",
    group: Group::Machine,
    role: Role::Control,
    usage: "reboot",
    summary: "boot the machine again",
    arguments: &[],
    details: "\
What was typed behind it is lost.
",
    facts: None,
    examples: &[("reboot", "at once, without a question")],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    let error = context.system.reboot();
    context.fail(error)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;

    #[test]
    fn it_reboots_only_as_it_is_typed() {
        let mut bench = Bench::default();
        let refused = "reboot: `now` is too much; usage: reboot\n";
        assert_eq!(bench.run("reboot now"), refused);
        assert!(!bench.system.rebooted);
        assert!(bench.run("reboot").starts_with("reboot: "));
        assert!(bench.system.rebooted && !bench.system.powered_off);
    }
}
