//! Every command as a user would mistype it: one line that names what is wrong and says what is allowed.

use super::super::COMMANDS;
use super::Bench;

/// What is typed, and what is said of it.
const TABLE: [(&str, &str); 88] = [
    ("hepl", "no command `hepl`; `help` lists what there is"),
    ("Help", "no command `Help`; `help` lists what there is"),
    ("ps\"", "no command: a quote has no end"),
    ("> ps \"a", "ps: a quote has no end"),
    ("echo \"x", "echo: a quote has no end"),
    (
        "help nosuch",
        "help: no command `nosuch`; `help` lists what there is",
    ),
    (
        "help run kill",
        "help: `kill` is too much; usage: help [COMMAND]",
    ),
    ("profile 0", "profile: window `0`: 1 to 2000 milliseconds"),
    ("profile 1s", "profile: window `1s`: 1 to 2000 milliseconds"),
    (
        "profile 100 spin",
        "profile: process `spin`: a pid from 1 to 4294967295, or all",
    ),
    (
        "profile 100 all many",
        "profile: word `many`: all, depth, source, by-client, folded or -v",
    ),
    (
        "profile depth",
        "profile: depth: a number is missing, 1 to 48 frames",
    ),
    (
        "profile source cpu",
        "profile: source `cpu`: pmu, timer or tick",
    ),
    (
        "profile --verbose",
        "profile: option `--verbose`: there is only -v",
    ),
    (
        "profile -v -v",
        "profile: `-v` is given twice: once is enough",
    ),
    (
        "profile 1 all 2 3",
        "profile: too many arguments from `3` on; see `help profile`",
    ),
    (
        "netload begin",
        "netload: `begin`: start, send, stop, or nothing",
    ),
    (
        "netload stop 9",
        "netload: `9` is too much; usage: netload [start|send|stop ...]",
    ),
    ("net -v", "net: `-v` is too much; usage: net"),
    ("ping", "ping: HOST is missing; usage: ping HOST [COUNT]"),
    (
        "ping gateway",
        "ping: HOST `gateway`: an IPv4 address, such as 10.0.2.2",
    ),
    (
        "ping 10.0.2",
        "ping: HOST `10.0.2`: an IPv4 address, such as 10.0.2.2",
    ),
    ("ping 10.0.2.2 0", "ping: COUNT `0`: 1 to 1000000"),
    ("ping 10.0.2.2 +1", "ping: COUNT `+1`: 1 to 1000000"),
    (
        "ping 10.0.2.2 1 2",
        "ping: `2` is too much; usage: ping HOST [COUNT]",
    ),
    ("ps aux", "ps: `aux` is too much; usage: ps"),
    (
        "run",
        "run: a program's name is missing; there are: chain, spin",
    ),
    (
        "run &",
        "run: a program's name is missing; there are: chain, spin",
    ),
    (
        "run Spin",
        "run: `Spin`: no such program; there are: chain, spin",
    ),
    ("demo start", "demo: `start`: it is `stop`, or nothing"),
    ("demo stop", "demo: it does not run; `demo` starts it"),
    ("demo stop 7", "demo: `7` is too much; usage: demo [stop]"),
    ("kill", "kill: a pid is missing; usage: kill PID"),
    ("kill spin", "kill: `spin`: not a pid that `ps` shows"),
    ("kill -9 7", "kill: `-9`: not a pid that `ps` shows"),
    ("kill 7 8", "kill: `8` is too much; usage: kill PID"),
    (
        "kill 99",
        "kill: pid 99: no such process; `ps` shows those that run",
    ),
    ("top 0", "top: window `0`: 1 to 60000 milliseconds"),
    ("top 2s", "top: window `2s`: 1 to 60000 milliseconds"),
    ("top all 5", "top: `5` is too much; usage: top [ms] [all]"),
    ("top all all", "top: `all` is given twice: once is enough"),
    ("top 5 all all", "top: `all` is given twice: once is enough"),
    ("trace of", "trace: `of`: on, off, or 1 to 1024 events"),
    ("trace 0", "trace: `0`: on, off, or 1 to 1024 events"),
    (
        "trace on 5",
        "trace: `5` is too much; usage: trace [on|off|n]",
    ),
    ("threads", "threads: a pid is missing; usage: threads PID"),
    ("threads spin", "threads: `spin`: not a pid that `ps` shows"),
    (
        "threads 99",
        "threads: pid 99: no such process; `ps` shows those that run",
    ),
    ("map", "map: a pid is missing; usage: map PID"),
    ("map all", "map: `all`: not a pid that `ps` shows"),
    (
        "map 99",
        "map: pid 99: no such process; `ps` shows those that run",
    ),
    ("map 1 2", "map: `2` is too much; usage: map PID"),
    ("lscpu -a", "lscpu: `-a`: there is only -v"),
    ("lscpu 0", "lscpu: `0`: there is only -v"),
    ("lscpu -v -v", "lscpu: `-v` is too much; usage: lscpu [-v]"),
    ("irq 4", "irq: `4` is too much; usage: irq"),
    ("stacks 7", "stacks: `7` is too much; usage: stacks"),
    ("objects 7", "objects: `7` is too much; usage: objects"),
    ("reboot now", "reboot: `now` is too much; usage: reboot"),
    ("mem free", "mem: `free` is too much; usage: mem"),
    ("uptime -p", "uptime: `-p` is too much; usage: uptime"),
    ("dmesg 0", "dmesg: lines `0`: 1 to 4095"),
    ("dmesg -n 5", "dmesg: lines `-n`: 1 to 4095"),
    (
        "dmesg 5 cpu x",
        "dmesg: `x` is too much; usage: dmesg [n] [filter]",
    ),
    ("version -a", "version: `-a` is too much; usage: version"),
    (
        "poweroff now",
        "poweroff: `now` is too much; usage: poweroff",
    ),
    ("exit now", "exit: `now` is too much; usage: exit"),
    ("clear all", "clear: `all` is too much; usage: clear"),
    (
        "repeat",
        "repeat: a number is missing; usage: repeat N COMMAND",
    ),
    ("repeat ps", "repeat: rounds `ps`: 1 to 1000000"),
    ("repeat 0 ps", "repeat: rounds `0`: 1 to 1000000"),
    ("repeat +3 ps", "repeat: rounds `+3`: 1 to 1000000"),
    (
        "repeat 1000001 ps",
        "repeat: rounds `1000001`: 1 to 1000000",
    ),
    (
        "repeat 3",
        "repeat: a command is missing; usage: repeat N COMMAND",
    ),
    (
        "repeat 3 sp",
        "repeat: no command `sp`; `help` lists what there is",
    ),
    (
        "repeat 3 repeat 3 ps",
        "repeat: `repeat` can stand before a command once",
    ),
    ("repeat 3 ps aux", "ps: `aux` is too much; usage: ps"),
    ("time", "time: a command is missing; usage: time COMMAND"),
    ("time 3", "time: no command `3`; `help` lists what there is"),
    (
        "time time ps",
        "time: `time` can stand before a command once",
    ),
    ("time kill", "kill: a pid is missing; usage: kill PID"),
    (
        "time run spin &",
        "run: no & with `time`: it would not wait for the end of the program",
    ),
    ("more", "more: a command is missing; usage: more COMMAND"),
    (
        "more mor",
        "more: no command `mor`; `help` lists what there is",
    ),
    (
        "more repeat 2 more ps",
        "repeat: `more` can stand before a command once",
    ),
    (
        "more run spin &",
        "run: no & with `more`: it would not wait for the end of the program",
    ),
    (
        "more time repeat",
        "repeat: a number is missing; usage: repeat N COMMAND",
    ),
    (
        "time more",
        "more: a command is missing; usage: more COMMAND",
    ),
];

#[test]
fn what_is_mistyped_is_named_in_one_line_that_says_what_is_allowed() {
    for (line, says) in TABLE {
        let mut bench = Bench::default();
        bench.system.programs = vec!["chain", "spin"];
        assert_eq!(bench.run(line), format!("{says}\n"), "{line}");
        assert!(says.len() <= 80, "{line}");
        // As `docs/shell.md` has it; a prefix leaves it to the command behind it.
        let mut words = line.split(' ');
        let named = words.any(|word| says.starts_with(&format!("{word}: ")));
        assert!(named || says.starts_with("no command"), "{line}: {says}");
        assert!(bench.system.spawned.is_empty() && bench.system.killed.is_empty());
    }
}

#[test]
fn every_command_that_can_be_mistyped_is() {
    // Whatever `echo` is given is right.
    for command in COMMANDS.iter().filter(|command| command.name != "echo") {
        let mistyped = format!("{}: ", command.name);
        let said = TABLE.iter().any(|(_, says)| says.starts_with(&mistyped));
        assert!(said, "{} is not in the table", command.name);
    }
}
