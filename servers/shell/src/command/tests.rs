//! Every command against the fake system: what it does, and the text a user sees.

use ipc::abi::Error;
use ipc::abi::exit::{BACKTRACE_MAX, BacktraceEnd, FaultKind};
use ipc::abi::info::{CpuInfo, MemoryInfo};
use ipc::abi::startup::STACK_GUARD;
use ipc::proto::CallError;
use ipc::proto::init::{Crash, Ending, InitError, Name};
use ipc::proto::profd::{Holder, Refusal, SessionName, Source};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::{COMMANDS, execute};
use crate::fake::{FakeSession, FakeSystem};
use crate::jobs::{JOBS_MAX, Jobs};
use crate::protocol::Stop;
use crate::system::LogPart;

#[derive(Default)]
struct Bench {
    system: FakeSystem,
    session: FakeSession,
    jobs: Jobs,
}

impl Bench {
    /// Runs a line and gives what it printed.
    fn run(&mut self, line: &str) -> String {
        execute(line, &mut self.session, &mut self.system, &mut self.jobs).unwrap();
        std::mem::take(&mut self.session.text)
    }
    /// What the next prompt reports.
    fn prompt(&mut self) -> String {
        self.jobs
            .report(&mut self.system, &mut self.session)
            .unwrap();
        std::mem::take(&mut self.session.text)
    }
}

fn run(line: &str) -> String {
    Bench::default().run(line)
}

#[test]
fn help_lists_every_command() {
    assert_eq!(
        run("help"),
        "\
help [command]          this list, or how a command is used
profile                 where the machine spends its time
ps                      the processes, and what each has used
run PROGRAM [ARGS] [&]  run a program; with & in the background
kill PID                end a process
mem                     where the memory is
uptime                  time since boot, and what each CPU did
dmesg [n] [filter]      the kernel log
version                 what this is
poweroff                power the machine off

`help COMMAND` has examples. Ctrl-C ends what runs; cursor up recalls lines.
"
    );
}

#[test]
fn help_fits_a_screen_and_has_an_example_of_each_command() {
    for name in COMMANDS.iter().map(|command| command.name).chain([""]) {
        let text = run(&format!("help {name}"));
        let rows = text.lines().count();
        assert!(rows < 24, "help {name}: {rows} rows and a prompt");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "help {name}: {line}");
        }
        assert!(
            name.is_empty() || text.contains("\n> "),
            "help {name} without example"
        );
    }
}

#[test]
fn help_of_one_command() {
    assert_eq!(
        run("help kill"),
        "\
kill PID
end a process

init and the shell of this session are not killed. init starts the other
servers again.

> kill 7  # ends the process that `ps` shows as 7
"
    );
    let mut bench = Bench::default();
    bench.system.programs = vec!["chain", "spin"];
    assert!(
        bench
            .run("help run")
            .contains("\n\nprograms: chain, spin\n\n> run")
    );
    assert_eq!(
        run("help nonsense"),
        "no command `nonsense`; `help` lists what there is\n"
    );
    assert_eq!(run("help a b"), "help: too many arguments from `b` on\n");
}

#[test]
fn an_unknown_command_points_to_help() {
    assert_eq!(
        run("frobnicate 1"),
        "no command `frobnicate`; `help` lists what there is\n"
    );
    let long = run(&"é".repeat(500));
    assert!(long.chars().count() < 80 && long.contains("..`"), "{long}");
    assert_eq!(run("ps \"x"), "a quote has no end\n");
}

#[test]
fn ps_prints_a_line_for_each_process() {
    let mut bench = Bench::default();
    bench.system.add(1, "init");
    let shares = bench.system.add(12_345, "shares");
    (shares.state, shares.cpu, shares.cpu_ns, shares.pages) = (2, Some(3), 61_234_567_890, 300);
    let text = bench.run("ps");
    assert_eq!(
        text,
        "\
PID   NAME             STATE CPU        TIME      MEM
1     init             recv    -      0.000s      84K
12345 shares           run     3     61.234s    1200K
"
    );
    let header: Vec<&str> = text.split_whitespace().take(6).collect();
    assert_eq!(header, ["PID", "NAME", "STATE", "CPU", "TIME", "MEM"]);
    assert_eq!(run("ps x"), "ps: too many arguments from `x` on\n");
}

#[test]
fn ps_ends_at_the_last_pid_and_at_ctrl_c() {
    let mut bench = Bench::default();
    bench.system.add(u32::MAX, "last");
    assert_eq!(bench.run("ps").lines().count(), 2);
    bench.system.add(1, "init");
    bench.session.interrupt_after = Some(0);
    assert_eq!(bench.run("ps").lines().count(), 2);
}

#[test]
fn a_foreground_program_is_waited_for_and_guarded() {
    let mut bench = Bench::default();
    bench.system.end(7, "shares", Ending::Exited, 0);
    assert_eq!(bench.run("run shares 60 \"a b\""), "");
    assert_eq!(
        bench.system.spawned,
        [("shares".into(), vec!["60".into(), "a b".into()])]
    );
    assert_eq!(bench.session.guards, [Stop::Process(7), Stop::Nothing]);
    bench.system.end(8, "sleep", Ending::Exited, 3);
    assert_eq!(
        bench.run("run sleep 1"),
        "sleep: exited with code 3 (pid 8)\n"
    );
}

#[test]
fn ctrl_c_before_there_was_something_to_kill_kills_it() {
    let mut bench = Bench::default();
    bench.session.interrupt_after = Some(0);
    assert_eq!(bench.run("run spin"), "spin: killed (pid 7)\n");
    assert_eq!(bench.system.killed, [7]);
}

#[test]
fn a_background_program_is_started_and_an_abnormal_end_told_once() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("run shares 60 30 10 &"), "started 7 shares\n");
    assert_eq!(bench.system.spawned[0].1, ["60", "30", "10"]);
    assert_eq!(bench.run("run sleep 1 &"), "started 8 sleep\n");
    bench.system.add(50, "later");
    assert_eq!(bench.prompt(), "");
    bench.system.end(7, "shares", Ending::Killed, 0);
    bench.system.end(8, "sleep", Ending::Exited, 0);
    assert_eq!(bench.prompt(), "shares: killed (pid 7)\n");
    assert_eq!(bench.prompt(), "");
}

#[test]
fn an_end_that_init_has_forgotten_is_told_as_such() {
    let mut bench = Bench::default();
    bench.run("run spin &");
    bench.system.processes.clear();
    assert_eq!(
        bench.prompt(),
        "spin: ended; how is no longer known (pid 7)\n"
    );
    assert_eq!(bench.prompt(), "");
}

#[test]
fn the_number_of_background_programs_is_bounded() {
    let mut bench = Bench::default();
    for _ in 0..JOBS_MAX {
        assert!(bench.run("run spin &").starts_with("started "));
    }
    let refused = bench.run("run spin &");
    assert_eq!(
        refused,
        "run: too many programs of this session are in the background\n"
    );
    assert_eq!(bench.system.spawned.len(), JOBS_MAX);
}

#[test]
fn what_cannot_be_run_is_named() {
    let mut bench = Bench::default();
    bench.system.programs = vec!["chain", "spin"];
    bench.system.refuse = Some(CallError::Service(InitError::NoSuchProgram));
    assert_eq!(
        bench.run("run nosuch"),
        "run: `nosuch`: no such program; there are: chain, spin\n"
    );
    assert_eq!(
        bench.run("run averyveryverylongname"),
        "run: `averyveryverylongnam..`: no such program; there are: chain, spin\n"
    );
    for line in ["run", "run &"] {
        assert_eq!(
            bench.run(line),
            "run: a program's name is missing; there are: chain, spin\n"
        );
    }
    let long = format!("run echo {}", "x".repeat(2000));
    assert_eq!(bench.run(&long), "run: too many or too long arguments\n");
    assert!(bench.system.spawned.is_empty());
}

fn crash(kind: FaultKind, error_code: u64, address: u64) -> Crash {
    let mut backtrace = [0; BACKTRACE_MAX];
    backtrace[..3].copy_from_slice(&[0x40_1012, 0x40_2000, 0x40_3000]);
    let mut registers = [0; 18];
    registers[0] = 0x40_1012;
    Crash {
        kind: kind as u8,
        tid: 1,
        error_code,
        address,
        registers,
        frames: 3,
        backtrace,
        end: 0,
    }
}

fn crashed(crash: Crash) -> String {
    let mut bench = Bench::default();
    bench.system.end(7, "crash", Ending::Faulted, 0);
    bench.system.ended.get_mut(&7).unwrap().crash = Some(crash);
    bench
        .system
        .names
        .insert(0x40_1012, "crash`null+0x12".into());
    // The name of a return address is that of the call before it.
    bench
        .system
        .names
        .insert(0x40_1fff, "crash`main+0x61".into());
    bench.run("run crash null")
}

#[test]
fn a_fault_is_told_with_what_where_and_how_it_got_there() {
    assert_eq!(
        crashed(crash(FaultKind::Page, 0b110, 0)),
        "\
crash: page fault: write to 0x0 at crash`null+0x12 (pid 7)
        <- crash`main+0x61
        <- crash`0x403000
"
    );
    for (kind, code, expected) in [
        (FaultKind::Page, 0b100, "page fault: read of 0x10 at"),
        (
            FaultKind::Page,
            0b10101,
            "page fault: execution (not allowed) at",
        ),
        (FaultKind::Divide, 0, "divide error at"),
        (FaultKind::InvalidOpcode, 0, "invalid instruction at"),
        (FaultKind::Protection, 0, "general protection fault at"),
        (FaultKind::NoFpu, 0, "floating-point or SSE instruction at"),
        (FaultKind::Breakpoint, 0, "panic at"),
    ] {
        let text = crashed(crash(kind, code, 16));
        assert!(
            text.starts_with(&format!("crash: {expected} crash`null")),
            "{text}"
        );
    }
}

#[test]
fn equal_callers_are_one_line() {
    let mut crash = crash(FaultKind::Page, 0b110, STACK_GUARD);
    crash.frames = 16;
    crash.backtrace = [0x40_2000; BACKTRACE_MAX];
    crash.backtrace[..2].copy_from_slice(&[0x40_1012, 0x40_3000]);
    crash.end = BacktraceEnd::More as u8;
    assert_eq!(
        crashed(crash),
        "\
crash: stack overflow (page fault: write) at crash`null+0x12 (pid 7)
        <- crash`0x403000
        <- crash`main+0x61 (14 times)
        <- ...
"
    );
}

#[test]
fn the_report_of_a_crash_is_as_wide_as_a_row() {
    for (name, pid, address, rows) in [
        ("crash", 7, 0x10, 1),
        ("anameofsixteenby", u32::MAX, 0xffff_8000_0000_0000, 2),
    ] {
        let mut crash = crash(FaultKind::Page, 0b101, address);
        crash.frames = 4;
        crash.backtrace[1..4].copy_from_slice(&[0x40_2000; 3]);
        let place = format!("{name}`{}::f+0x1234", "path::to".repeat(20));
        let mut bench = Bench::default();
        let names = [0x40_1012, 0x40_1fff].map(|address| (address, place.clone()));
        bench.system.names.extend(names);
        let mut report = FakeSystem::report(pid, name, Ending::Faulted, 0);
        report.crash = Some(crash);
        bench.system.ended.insert(7, report);
        let text = bench.run(&format!("run {name}"));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(text.lines().count(), rows + 1, "{text}");
        assert!(text.ends_with("::f+0x1234 (3 times)\n"), "{text}");
    }
}

#[test]
fn a_backtrace_that_is_not_whole_says_so() {
    for (end, line) in [
        (BacktraceEnd::More, "        <- ...\n"),
        (BacktraceEnd::Cut, "        <- ?\n"),
    ] {
        let mut crash = crash(FaultKind::Divide, 0, 0);
        crash.end = end as u8;
        let expected = format!("        <- crash`0x403000\n{line}");
        assert!(crashed(crash).ends_with(&expected), "{end:?}");
    }
}

#[test]
fn a_panic_is_where_the_program_was_and_not_where_it_said_so() {
    let mut bench = Bench::default();
    let mut crash = crash(FaultKind::Breakpoint, 0, 0);
    crash.frames = 5;
    crash.backtrace[..5].copy_from_slice(&[0x40_1012, 0x40_2000, 0x40_2800, 0x40_3000, 0x40_4000]);
    bench.system.end(7, "crash", Ending::Faulted, 0);
    bench.system.ended.get_mut(&7).unwrap().crash = Some(crash);
    bench.system.names.extend(
        [
            (0x40_1012, "crash`__rustc::rust_begin_unwind+0xe2"),
            (0x40_1fff, "crash`core::panicking::panic_fmt+0x2c"),
            (0x40_27ff, "crash`core::option::unwrap_failed+0x13"),
            (0x40_2fff, "crash`deep+0xea"),
            (0x40_3fff, "crash`main+0x61"),
        ]
        .map(|(address, name)| (address, name.into())),
    );
    assert_eq!(
        bench.run("run crash panic"),
        "\
crash: panic at crash`deep+0xea (pid 7)
        <- crash`main+0x61
"
    );
}

#[test]
fn kill_ends_a_process_and_its_end_is_no_news() {
    let mut bench = Bench::default();
    bench.run("run spin &");
    assert_eq!(bench.run("kill 7"), "killed 7\n");
    assert_eq!(bench.system.killed, [7]);
    assert_eq!(bench.prompt(), "");
    assert_eq!(bench.run("kill 7"), "kill: pid 7: no such process\n");
    for word in ["x", "-1", "0", "+7", "99999999999", "7x"] {
        let text = bench.run(&format!("kill {word}"));
        assert_eq!(text, format!("kill: `{word}`: not a pid that `ps` shows\n"));
    }
    assert_eq!(bench.run("kill"), "kill: a pid is missing\n");
    assert_eq!(
        bench.run("kill 1 2"),
        "kill: too many arguments from `2` on\n"
    );
}

#[test]
fn what_the_session_lives_on_is_not_killed() {
    let mut bench = Bench::default();
    bench.system.add(4, "shell");
    bench.system.own_pid = 4;
    assert_eq!(
        bench.run("kill 4"),
        "kill: pid 4 is this shell: the session would end with it\n"
    );
    assert_eq!(bench.system.killed, []);
    bench.system.refuse = Some(CallError::Service(InitError::Refused));
    assert_eq!(
        bench.run("kill 1"),
        "kill: pid 1 is init: nothing works without it\n"
    );
}

#[test]
fn profile_shows_the_report_of_what_was_asked_for() {
    let mut bench = Bench::default();
    bench.system.profile = Some(Ok("profiled 500 ms\n".into()));
    assert_eq!(bench.run("profile 500 12"), "profiled 500 ms\n");
    let (number, request) = bench.system.requests[0];
    assert_eq!(
        (request.window_ms, request.pid, request.chains),
        (500, Some(12), 8)
    );
    let guards = [Stop::Profile(number), Stop::Nothing];
    assert_eq!(bench.session.guards, guards);
}

#[test]
fn a_profile_that_cannot_be_is_refused_in_one_line_and_nothing_is_asked() {
    let mut bench = Bench::default();
    for line in ["0", "2001", "x", "100 all 8 source foo", "1 all 2 3"] {
        let text = bench.run(&format!("profile {line}"));
        assert!(
            text.starts_with("profile: ") && text.lines().count() == 1,
            "{text}"
        );
    }
    bench.session.interrupt_after = Some(0);
    assert_eq!(bench.run("profile"), "");
    assert!(bench.system.requests.is_empty());
}

#[test]
fn a_second_profile_names_the_holder() {
    let mut bench = Bench::default();
    let holder = Holder {
        pid: 4,
        program: Name::cut("shell"),
        session: SessionName::cut("net 1"),
    };
    bench.system.profile = Some(Err(CallError::Service(Refusal::Busy { holder })));
    assert_eq!(
        bench.run("profile"),
        "profile: session net 1 of shell (pid 4) runs a profile\n"
    );
    assert_eq!(bench.session.guards.last(), Some(&Stop::Nothing));
}

/// A refusal of each kind, each with the longest of what it names.
fn refusals() -> Vec<Refusal> {
    let pid = u32::MAX;
    let holder = Holder {
        pid: 99_999,
        program: Name::cut(&"p".repeat(99)),
        session: SessionName::cut(&"s".repeat(99)),
    };
    vec![
        Refusal::BadRequest,
        Refusal::Busy { holder },
        Refusal::NoSource {
            asked: Source::Timer,
        },
        Refusal::NoProcess { pid },
        Refusal::ProcessEnded { pid },
        Refusal::NotArmed {
            cpus: 0xff,
            waited_ms: 500,
        },
        Refusal::Driver { error: u64::MAX },
        Refusal::Driver {
            error: Error::MissingRight as u64,
        },
        Refusal::Stopped,
        Refusal::NoMemory,
    ]
}

/// Every error of init, by its number on the wire.
fn init_errors() -> Vec<InitError> {
    let errors = (0..=u8::MAX).map_while(|number| {
        let bytes = [number, Error::MissingRight as u8];
        postcard::from_bytes(&bytes).ok()
    });
    errors.collect()
}

#[test]
fn an_error_is_one_line_that_fits_a_row() {
    let long = "x".repeat(99);
    let mut texts: Vec<String> = [
        "LONG",
        "help LONG",
        "help a LONG",
        "profile LONG",
        "profile 1 LONG",
        "profile 1 all LONG",
        "profile 1 all 1 LONG",
        "profile depth",
        "profile depth LONG",
        "profile source",
        "profile source LONG",
        "profile -LONG",
        "ps LONG",
        "run",
        "run LONG",
        "kill",
        "kill LONG",
        "kill 1 LONG",
        "mem LONG",
        "uptime LONG",
        "dmesg LONG 1",
        "dmesg 1 2 LONG",
        "version LONG",
        "poweroff LONG",
        "\"LONG",
    ]
    .iter()
    .map(|line| run(&line.replace("LONG", &long)))
    .collect();
    let errors = init_errors();
    assert!(errors.len() > 12, "{errors:?}");
    for error in errors {
        let mut bench = Bench::default();
        for line in ["run anameofsixteenby", "kill 4294967295"] {
            bench.system.refuse = Some(CallError::Service(error));
            texts.push(bench.run(line));
        }
    }
    for refusal in refusals() {
        let mut bench = Bench::default();
        bench.system.profile = Some(Err(CallError::Service(refusal)));
        texts.push(bench.run("profile"));
    }
    for text in texts {
        let fits = text.lines().all(|line| line.width() <= 80);
        assert!(text.lines().count() == 1 && fits, "{text}");
    }
}

#[test]
fn an_error_that_is_longer_goes_on_behind_two_blanks() {
    let mut bench = Bench::default();
    let not_armed = Refusal::NotArmed {
        cpus: u64::MAX,
        waited_ms: 500,
    };
    bench.system.profile = Some(Err(CallError::Service(not_armed)));
    let text = bench.run("profile");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(text.lines().skip(1).all(|line| line.starts_with("  ")));
    assert!(text.ends_with(" 63\n"), "{text}");
}

#[test]
fn ctrl_c_names_the_profile_that_it_ends() {
    let mut bench = Bench::default();
    for _ in 0..2 {
        bench.system.profile = Some(Ok(String::new()));
        bench.run("profile");
    }
    let [(first, _), (second, _)] = bench.system.requests[..] else {
        panic!("{:?}", bench.system.requests);
    };
    assert_ne!(first, second);
    let profiles: Vec<_> = bench.session.guards.iter().step_by(2).collect();
    assert_eq!(profiles, [&Stop::Profile(first), &Stop::Profile(second)]);
}

#[test]
fn mem_shows_all_there_is() {
    let mut bench = Bench::default();
    bench.system.memory = MemoryInfo {
        total: 65_536,
        free: 60_000,
        waiting: 1,
        kernel: 2000,
        bootfs: 535,
        processes: 3000,
        pools: [
            [5, 256],
            [9, 1024],
            [4, 512],
            [3, 512],
            [20, 2048],
            [6, 1024],
            [2, 512],
        ],
    };
    assert_eq!(
        bench.run("mem"),
        "\
total              262144 KiB
free               240000 KiB
waiting                 4 KiB
kernel               8000 KiB
bootfs               2140 KiB
processes           12000 KiB
processes               5 of 256
threads                 9 of 1024
endpoints               4 of 512
notifications           3 of 512
memory objects         20 of 2048
handle chunks           6 of 1024
badges                  2 of 512
"
    );
}

#[test]
fn uptime_says_what_each_cpu_did() {
    let mut bench = Bench::default();
    bench.system.now = 83_456_000_000;
    bench.system.cpus = vec![CpuInfo {
        idle_ns: 750,
        busy_ns: 250,
        ticks: 8345,
        syscalls: 1234,
        switches: 99,
        longest_entry: 70_000,
        ..CpuInfo::default()
    }];
    assert_eq!(
        bench.run("uptime"),
        "up 1m 23.456s, 1 cpu\n\
         cpu 0: 25.0% busy, 8345 ticks, 1234 calls, 99 switches, longest 35.0us\n"
    );
}

#[test]
fn version_and_poweroff() {
    let mut bench = Bench::default();
    bench.system.version = "Sonde 0.1.0\n".into();
    assert_eq!(bench.run("version"), "Sonde 0.1.0\n");
    assert_eq!(
        bench.run("poweroff now"),
        "poweroff: too many arguments from `now` on\n"
    );
    assert!(!bench.system.powered_off);
    assert!(bench.run("poweroff").starts_with("poweroff: "));
    assert!(bench.system.powered_off);
}

fn log(parts: &[(&str, u64)]) -> Bench {
    let mut bench = Bench::default();
    let mut next = 0;
    for &(text, lost) in parts {
        next += lost + text.len() as u64;
        bench.system.log.push_back(LogPart {
            bytes: text.into(),
            next,
            lost,
        });
    }
    bench
}

#[test]
fn dmesg_puts_lines_together_and_selects_them() {
    let parts = [
        ("boot: one\nboot: t", 0),
        ("wo\nnet: three\nboot: fo", 0),
        ("ur", 0),
    ];
    let dmesg = |arguments: &str| log(&parts).run(&format!("dmesg {arguments}"));
    assert_eq!(dmesg(""), "boot: one\nboot: two\nnet: three\nboot: four\n");
    assert_eq!(dmesg("2"), "net: three\nboot: four\n");
    assert_eq!(dmesg("net"), "net: three\n");
    assert_eq!(dmesg("2 boot"), "boot: two\nboot: four\n");
    assert_eq!(dmesg("9 \": f\""), "boot: four\n");
    for arguments in ["\"page fault\"", "2 \"page fault\""] {
        assert_eq!(dmesg(arguments), "dmesg: no line contains `page fault`\n");
    }
    assert_eq!(dmesg("0"), "dmesg: lines `0`: 1 to 4095\n");
    assert_eq!(
        dmesg("99999999999999999999999"),
        "dmesg: lines `99999999999999999999..`: 1 to 4095\n"
    );
    assert_eq!(dmesg("x 1"), "dmesg: lines `x`: 1 to 4095\n");
    assert_eq!(dmesg("1 x y"), "dmesg: too many arguments from `y` on\n");
}

#[test]
fn dmesg_says_what_is_no_longer_kept_and_shows_no_control_characters() {
    let mut bench = log(&[("one\ncut sho", 100), ("rest lost\ntwo\x1b[2J\x07é\n", 50)]);
    assert_eq!(
        bench.run("dmesg"),
        "(100 bytes no longer kept)\none\n(50 bytes no longer kept)\nrest lost\ntwo [2J é\n"
    );
}

#[test]
fn dmesg_ends_at_ctrl_c() {
    let text = "line\n".repeat(100);
    let mut bench = log(&[(&text, 0)]);
    bench.session.interrupt_after = Some(10);
    assert!(bench.run("dmesg").lines().count() < 10);
}

proptest! {
    /// Whatever is typed, a command answers with whole lines, and nothing is ended or powered off that was not named.
    #[test]
    fn any_line_is_answered(words in prop::collection::vec(
        prop_oneof![
            (0..COMMANDS.len()).prop_map(|index| COMMANDS[index].name.to_string()),
            "[0-9]{1,12}", "&", "all", "source", "\"", "\\PC{0,12}",
        ],
        0..6,
    )) {
        let mut bench = Bench::default();
        bench.system.profile = Some(Ok("profiled\n".into()));
        bench.system.end(7, "x", Ending::Exited, 0);
        let text = bench.run(&words.join(" "));
        prop_assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        prop_assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        prop_assert!(!bench.system.powered_off || words.contains(&"poweroff".to_string()));
    }
}
