//! `dmesg`.

use super::Bench;
use crate::system::LogPart;

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
    assert_eq!(
        dmesg("1 x y"),
        "dmesg: `y` is too much; usage: dmesg [n] [filter]\n"
    );
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
    assert!(bench.run("dmesg").lines().count() <= 10);
}

#[test]
fn a_line_of_the_log_that_is_too_long_goes_on_behind_two_blanks() {
    let told = "[    0.920837] init: crash (pid 6): stack overflow (page fault: write) at";
    let line = format!("{told} crash`descend+0x17\n");
    for command in ["dmesg", "dmesg 1", "dmesg \"at crash\""] {
        let said = log(&[(&line, 0)]).run(command);
        assert_eq!(said, format!("{told}\n  crash`descend+0x17\n"), "{command}");
    }
}
