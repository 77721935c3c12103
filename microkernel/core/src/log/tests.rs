//! The log against everything that was ever written to it.

use super::*;
use crate::base::cpu::CpuId;
use proptest::prelude::*;

fn log(size: usize) -> Log {
    Log::new(Box::leak(vec![0; size].into_boxed_slice()))
}

fn cpu() -> Cpu {
    Cpu::new(CpuId(0))
}

/// Reads everything from a position on, a few bytes at a time; also the bytes lost.
fn read_from(log: &Log, mut position: u64, chunk: usize) -> (Vec<u8>, u64) {
    let (mut all, mut lost, mut buffer) = (Vec::new(), 0, vec![0; chunk]);
    loop {
        let reading = log.read(&cpu(), position, &mut buffer);
        all.extend_from_slice(&buffer[..reading.len]);
        lost += reading.lost;
        position = reading.next;
        if reading.len == 0 {
            return (all, lost);
        }
    }
}

fn text(log: &Log) -> String {
    String::from_utf8(read_from(log, 0, 100).0).unwrap()
}

#[test]
fn lines_say_when_and_who() {
    let log = log(4096);
    let cpu = cpu();
    let number = 42;
    write!(
        log.writer(&cpu, Nanos(1_234_567_890), b"kernel"),
        "answer {number}"
    )
    .unwrap();
    log.writer(
        &cpu,
        Nanos(12_345 * 1_000_000_000),
        b"a name that is far too long",
    )
    .write(b"one\n\n\r\ntwo\r\n");
    log.panic_writer(Nanos(0), b"kernel").write(b"panic");
    assert_eq!(
        text(&log),
        "[    1.234567] kernel: answer 42\n\
         [12345.000000] a name that is f: one\n\
         [12345.000000] a name that is f: two\n\
         [    0.000000] kernel: panic\n"
    );
}

#[test]
fn a_tail_has_whole_lines_and_the_last_ones() {
    let log = log(2 * LINE_MAX);
    let cpu = cpu();
    let prefix = "[    0.000000] a: ";
    let write = |text: &str| log.writer(&cpu, Nanos(0), b"a").write(text.as_bytes());
    let tail = |size: usize| {
        let mut buffer = vec![0; size];
        String::from_utf8(log.panic_tail(&mut buffer).to_vec()).unwrap()
    };
    assert_eq!(tail(100), "");
    write("one");
    assert_eq!(tail(100), format!("{prefix}one\n"));
    assert_eq!(tail(21), "", "it does not fit");
    for _ in 0..40 {
        write("two");
    }
    write("three");
    let last = format!("{prefix}two\n{prefix}three\n");
    assert_eq!(tail(last.len() + 1), last);
    assert!(tail(4 * LINE_MAX).ends_with(&last));
    let locked = log.0.lock(&cpu);
    assert_eq!(tail(100), "");
    drop(locked);
}

#[test]
fn nobody_writes_escape_sequences_or_in_the_name_of_another() {
    let log = log(4096);
    log.writer(&cpu(), Nanos(0), b"\x1b\nx")
        .write("\x1b[2J\t\0é\x7f\n[    0.000000] kernel: lie".as_bytes());
    assert_eq!(
        text(&log),
        "[    0.000000] ??x: ?[2J ????\n[    0.000000] ??x: [    0.000000] kernel: lie\n"
    );
}

#[test]
fn a_long_line_goes_on_in_the_next() {
    let log = log(4096);
    log.writer(&cpu(), Nanos(0), b"init").write(&[b'x'; 300]);
    let text = text(&log);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines
            .iter()
            .map(|line| line.matches('x').count())
            .sum::<usize>(),
        300
    );
    assert_eq!((lines.len(), lines[0].len()), (2, LINE_MAX - 1));
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("[    0.000000] init: x"))
    );
}

#[test]
fn one_writer_cannot_write_without_end() {
    let log = log(1 << 16);
    log.writer(&cpu(), Nanos(0), b"init")
        .write("x\n".repeat(100).as_bytes());
    let text = text(&log);
    assert_eq!(
        text.lines().filter(|line| line.ends_with(": x")).count(),
        LINES_MAX as usize
    );
    assert_eq!(
        text.lines().last(),
        Some("[    0.000000] init: (36 more bytes cut)")
    );
}

#[test]
fn a_panic_does_not_wait_for_the_lock() {
    let log = log(1024);
    let cpu = cpu();
    let held = log.0.lock(&cpu);
    log.panic_writer(Nanos(0), b"kernel").write(b"lost\n");
    drop(held);
    assert_eq!(text(&log), "");
}

#[test]
fn a_position_that_does_not_exist_yet_is_the_end() {
    let log = log(1024);
    log.writer(&cpu(), Nanos(0), b"k").write(b"x");
    let end = log.read(&cpu(), 0, &mut [0; 100]).next;
    let reading = log.read(&cpu(), u64::MAX, &mut [0; 100]);
    assert_eq!(
        reading,
        Reading {
            next: end,
            len: 0,
            lost: 0
        }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// What a reader gets is a part of all that was written, to its end; what it does not get is counted; and it begins with a
    /// whole line.
    #[test]
    fn what_is_read_and_what_is_lost_is_all_there_was(
        lines in prop::collection::vec(1..400usize, 0..60),
        size in 2 * LINE_MAX..1500,
        from in any::<prop::sample::Index>(),
        chunk in 1..300usize,
    ) {
        let (small, large) = (log(size), log(1 << 16));
        for (number, length) in lines.into_iter().enumerate() {
            let line: Vec<u8> = (0..length).map(|at| b'a' + ((at + number) % 26) as u8).collect();
            for log in [&small, &large] {
                log.writer(&cpu(), Nanos(number as u64), b"test").write(&line);
            }
        }
        let (all, none) = read_from(&large, 0, 1000);
        prop_assert_eq!(none, 0);
        let position = from.index(all.len() + 1);
        let (got, lost) = read_from(&small, position as u64, chunk);
        prop_assert_eq!(&all[position + lost as usize..], &got[..]);
        if lost > 0 {
            prop_assert!(got.starts_with(b"["), "begins in the middle of a line");
            // No more is given up than one line.
            prop_assert!(got.len() + LINE_MAX >= size, "{} of {size}", got.len());
        }
    }
}
