//! What is read of a report, and what is not believed.

use super::*;

#[test]
fn the_documented_form_is_read() {
    let text = "\
profiled 1000 ms
3987 samples on 4 cpus, 0 dropped, source timer/nmi
sampling took 812 ns a sample, 0.08% of the window
75.2% 2998 kernel`idle+0x3
14.9% 594 shares`share_a+0x10..0x2c
        <- shares`main+0x61
 5.1% 203 kernel`ipc::transfer+0x12..0x48
        <- kernel`syscall_entry+0x5a
        <= netload`main+0x5c
a note
not shown: 2 chains, 180 samples
table full: 12 samples in chains beyond the 512 that
  it holds
";
    let report = Report::parse(text).unwrap();
    assert_eq!(report.not_shown, 192);
    assert_eq!((report.profiled_ms, report.asked_ms), (1000, None));
    assert_eq!((report.samples, report.taken, report.cpus), (3987, None, 4));
    assert_eq!((report.dropped, report.source.as_str()), (0, "timer/nmi"));
    assert_eq!(report.chains.len(), 3);
    assert_eq!(report.count("shares", "share_a"), 594);
    assert_eq!(report.chains[0].offsets, 3..=3);
    assert_eq!(report.chains[2].symbol, "ipc::transfer");
    assert_eq!(report.chains[2].offsets, 0x12..=0x48);
    assert_eq!(report.chains[2].callers[1], "<= netload`main+0x5c");
}

#[test]
fn one_process_and_a_short_window_are_read() {
    let text = "profiled 310 of 2000 ms\n12 samples (of 120 taken) on 1 cpus, 3 dropped, source tick\n\
                100.0% 12 a`b+0x1\n\
                taken 120: 12 reported, 100 of other tasks, 5 outside the window, 3 dropped\n";
    let report = Report::parse(text).unwrap();
    assert_eq!((report.profiled_ms, report.asked_ms), (310, Some(2000)));
    assert_eq!((report.samples, report.taken), (12, Some(120)));
}

#[test]
fn two_sources_are_read_from_two_lines() {
    let text = "profiled 9 ms\n12 samples on 4 cpus, 0 dropped, source pmu/nmi intel fixed-ctr1 on 2 cpus,\n  \
                timer/nmi on 2\n100.0% 12 a`b+0x1\n";
    let report = Report::parse(text).unwrap();
    let sources = "pmu/nmi intel fixed-ctr1 on 2 cpus, timer/nmi on 2";
    assert_eq!((report.source.as_str(), report.samples), (sources, 12));
    assert_eq!(report.chains.len(), 1);
}

#[test]
fn accounts_are_read_and_must_add_up() {
    let head = "profiled 9 ms\n100 samples on 1 cpus, 0 dropped, source tick\n";
    let report = |charged: u64, own: u64| {
        let accounts = format!(
            "{charged}.0% {charged} for front (pid 7)\n        own {own}, by others 60\n  \
             60.0% 60 back`work+0x1\n        <= front`main+0x1\n"
        );
        let rest = "30.0% 30 for nobody: no process ran\n  30.0% 30 kernel`idle+0x3\n \
                    0.0% 0 for back (pid 5)\n        own 0, by others 0; 60 more for others\n\
                    not shown: 1 chain, 10 samples\n";
        Report::parse(&format!("{head}{accounts}{rest}"))
    };
    let read = report(70, 10).unwrap();
    let account = |index: usize| {
        let account = &read.accounts[index];
        let who = account.who.as_str();
        (who, account.own, account.by_others, account.for_others)
    };
    assert_eq!(account(0), ("front (pid 7)", 10, 60, 0));
    assert_eq!(account(1), ("nobody: no process ran", 30, 0, 0));
    assert_eq!(account(2), ("back (pid 5)", 0, 0, 60));
    let accounts: Vec<_> = read.chains.iter().map(|chain| chain.account).collect();
    assert_eq!(accounts, [Some(0), Some(1)]);
    assert!(report(71, 11).is_err() && report(70, 11).is_err());
}

#[test]
fn what_does_not_add_up_is_found() {
    let report = |chains: &str| {
        let header = "profiled 9 ms\n100 samples on 1 cpus, 0 dropped, source tick\n";
        Report::parse(&format!("{header}{chains}"))
    };
    assert!(report("60.0% 60 a`b+0x1\n40.0% 40 a`c+0x1\n").is_ok());
    assert!(report("60.0% 60 a`b+0x1\n41.0% 41 a`c+0x1\n").is_err());
    assert!(report("40.0% 40 a`b+0x1\n60.0% 60 a`c+0x1\n").is_err());
    let one = |percent, notes: &str| report(&format!("{percent}% 60 a`b+0x1\n{notes}"));
    assert!(one("60.0", "not shown: 1 chain, 40 samples\n").is_ok());
    assert!(one("60.0", "").is_err());
    assert!(one("60.0", "not shown: 1 chain, 39 samples\n").is_err());
    assert!(one("55.0", "not shown: 1 chain, 40 samples\n").is_err());
    let odd = "not shown: 1 chain, 40 samples\nodd: overwritten 1, missed 2,\n  unaccounted ";
    assert!(one("60.0", &format!("{odd}0, cut 1\n")).is_ok());
    assert!(one("60.0", &format!("{odd}1\n")).is_err());
    let account = |fates: &str| {
        let rest = "not shown: 1 chain, 40 samples";
        one("60.0", &format!("{rest}\ntaken {fates}\n"))
    };
    let others = "0 of other tasks, 7 outside the window";
    assert!(account(&format!("107: 100 reported, {others}, 0 dropped")).is_ok());
    assert!(account(&format!("108: 100 reported, {others}, 0 dropped")).is_err());
    assert!(account(&format!("108: 101 reported, {others}, 0 dropped")).is_err());
    assert!(account(&format!("108: 100 reported, {others}, 1 dropped")).is_err());
}

#[test]
fn every_report_in_a_text_is_checked() {
    let report = |outside: u64| {
        let head = "profiled 9 ms\n100 samples on 1 cpus, 0 dropped, source tick\n";
        let fates =
            format!("100 reported, 0 of other tasks, {outside} outside the window, 0 dropped");
        format!("{head}100.0% 100 a`b+0x1\ntaken 107: {fates}\n")
    };
    assert!(Report::check_all("front: started\n").is_ok());
    let check = |reports: [u64; 2]| {
        Report::check_all(&format!("front: started\n{}", reports.map(report).concat()))
    };
    assert!(check([7, 7]).is_ok());
    assert!(check([8, 7]).is_err() && check([7, 8]).is_err());
}
