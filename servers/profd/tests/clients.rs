//! Whose time it was: accounts, from samples to the lines of the report.

mod support;

use ipc::abi::profile::flags;
use ipc::proto::profd::Request;
use profd::account::{ACCOUNTS, Balance, Ledger, Payer};
use profd::decode::decode;
use profd::encode::encode;
use profd::profile::Profile;
use profd::report::{Options, report};
use profd::stacks::stacks;
use support::KERNEL;
use support::course::course;
use support::record::Record;

/// What `shares` (pid 12) and `netload` (20) ask of `net` (21), what they do themselves, and an idle CPU.
fn records() -> Vec<Record> {
    let at_work = |client: u32, frames: &[u64]| Record {
        clients: vec![(client, vec![0x40_1061])],
        ..Record::new(21, frames)
    };
    // netload asks net, and net asks shares.
    let deep = Record {
        clients: vec![(21, vec![0x40_1044]), (20, vec![0x40_105c])],
        ..Record::new(12, &[0x40_1110])
    };
    let torn = Record {
        flags: flags::CHANGED,
        ..at_work(12, &[0x40_1010])
    };
    let mut records = vec![deep; 40];
    records.extend(vec![at_work(20, &[0x40_1010]); 20]);
    records.extend(vec![at_work(12, &[KERNEL + 0x110, 0x40_1044]); 15]);
    records.extend(vec![Record::new(12, &[0x40_1210]); 10]);
    records.extend(vec![Record::new(21, &[0x40_1020]); 4]);
    records.extend(vec![Record::new(0, &[KERNEL + 3]); 10]);
    records.push(torn);
    records
}

/// A whole profile of these samples, by client.
fn profile(pid: Option<u32>, records: &[Record]) -> Profile {
    let request = Request {
        pid,
        by_client: true,
        ..Request::default()
    };
    let profile = course(request, 1, records, |_| {});
    assert_eq!(profile.counts.unaccounted(), 0);
    assert_eq!(decode(&encode(&profile)), Ok(profile.clone()));
    profile
}

const SHORT: Options = Options {
    chains: 3,
    verbose: false,
};

#[test]
fn each_sample_is_on_one_account() {
    let text = report(&profile(None, &records()), SHORT);
    let (_, accounts) = text.split_once("of the window\n").expect("a head");
    assert_eq!(
        accounts,
        "60.0% 60 for netload (pid 20)
        own 0, by others 60
  40.0% 40 shares`share_a+0x10
        <= net`sockets::send+0x44
        <= netload`main+0x5c
  20.0% 20 net`sockets::send+0x10
        <= netload`main+0x61
25.0% 25 for shares (pid 12)
        own 10, by others 15; 40 more for others
  15.0% 15 kernel`ipc::transfer+0x10
        <- net`sockets::send+0x44
        <= shares`main+0x61
  10.0% 10 shares`share_b+0x10
10.0% 10 for nobody: no process ran
  10.0% 10 kernel`idle+0x3
 4.0% 4 for net (pid 21)
        own 4, by others 0; 36 more for others
   4.0% 4 net`sockets::send+0x20
 1.0% 1 for clients that are not known
   1.0% 1 net`sockets::send+0x10
        <= shares`main+0x61
        <= ?
the tick cannot see inside the kernel: its time is at the return from the call
"
    );
}

#[test]
fn chains_are_cut_off_in_each_account() {
    let text = report(&profile(None, &records()), Options { chains: 1, ..SHORT });
    assert!(text.contains("not shown: 2 chains, 30 samples\n"), "{text}");
}

#[test]
fn a_process_is_shown_with_all_in_which_it_took_part() {
    let text = report(&profile(Some(21), &records()), SHORT);
    assert!(
        text.contains("80 samples (of 100 taken) on 1 cpus"),
        "{text}"
    );
    // It worked for others, or others worked for it that worked for its client.
    for account in [
        "75.0% 60 for netload (pid 20)\n        own 0, by others 60\n",
        "18.8% 15 for shares (pid 12)\n        own 0, by others 15; 40 more for others\n",
        " 5.0% 4 for net (pid 21)\n        own 4, by others 0; 36 more for others\n",
    ] {
        assert!(text.contains(account), "{account}{text}");
    }
    assert!(text.contains("taken 100: 80 reported, 20 of other tasks, 0 outside"));
}

#[test]
fn folded_stacks_begin_with_who_pays() {
    let text = stacks(&profile(None, &records()), 512);
    let root = "netload (pid 20);netload`main;net`sockets::send;shares`share_a 40\n";
    assert!(text.starts_with(root), "{text}");
    assert!(text.contains("(nobody);kernel`idle 10\n"), "{text}");
    assert!(
        text.contains("(clients that are not known);?;shares`main;net`sockets::send 1\n"),
        "{text}"
    );
}

#[test]
fn a_full_ledger_charges_nobody_who_is_not_in_it() {
    let mut ledger = Ledger::default();
    let of = |pid| Record::new(pid, &[0x40_1010]).sample();
    for pid in 1..=ACCOUNTS as u32 {
        assert_eq!(ledger.enter(&of(pid)), Some(Payer::Process(pid)));
    }
    let more = ACCOUNTS as u32 + 1;
    assert_eq!(ledger.enter(&of(more)), None);
    let for_more = Record {
        clients: vec![(more, vec![0x40_1010])],
        ..Record::new(1, &[0x40_1010])
    };
    assert_eq!(ledger.enter(&for_more.sample()), None);
    assert_eq!(ledger.enter(&of(1)), Some(Payer::Process(1)));
    let charged: u64 = ledger
        .accounts()
        .map(|(_, balance)| balance.charged())
        .sum();
    let worked: u64 = ledger
        .accounts()
        .map(|(_, balance)| balance.for_others)
        .sum();
    assert_eq!((charged, worked), (ACCOUNTS as u64 + 1, 0));
}

#[test]
fn however_large_an_account_its_lines_fit() {
    let mut profile = profile(None, &records());
    let account = &mut profile.accounts[0];
    account.name = "a-program-with-a-name-of-its-own".repeat(3);
    account.payer = Payer::Process(u32::MAX);
    let most = 9_999_999_999;
    account.balance = Balance {
        own: most,
        by_others: most,
        for_others: most,
    };
    let text = report(&profile, SHORT);
    assert!(text.contains("(pid 4294967295)\n        own 9999999999, by"));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}
