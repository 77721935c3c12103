//! Arguments that are taken, and those that are refused.

use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use ipc::abi::profile::Source as Printed;
use proptest::prelude::*;

fn line(text: &str) -> Result<Request, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    parse(&words).map_err(|error| error.to_string())
}

#[test]
fn every_argument_has_its_place_and_its_default() {
    let default = Request::default();
    assert_eq!(line(""), Ok(default));
    assert_eq!(
        (default.window_ms, default.chains, default.depth),
        (1000, 8, 8)
    );
    assert_eq!(
        line("2000 all 3"),
        Ok(Request {
            window_ms: 2000,
            chains: 3,
            ..default
        })
    );
    assert_eq!(
        line("500 12"),
        Ok(Request {
            window_ms: 500,
            pid: Some(12),
            ..default
        })
    );
    let all = line("-v 1 7 512 depth 48 source timer").unwrap();
    let expected = Request {
        window_ms: 1,
        pid: Some(7),
        chains: 512,
        depth: 48,
        source: Source::Timer,
        by_client: false,
        rendering: Rendering::Verbose,
    };
    assert_eq!(all, expected);
    assert_eq!(line("folded").unwrap().chains, CHAINS_MAX);
    assert_eq!(line("100 all 5 folded").unwrap().chains, 5);
    let by_client = line("by-client 100 7").unwrap();
    assert_eq!((by_client.by_client, by_client.chains), (true, 3));
    assert_eq!(line("folded by-client").unwrap().chains, CHAINS_MAX);
}

#[test]
fn a_wrong_argument_is_named_with_what_is_allowed() {
    let refused = |text: &str| line(text).unwrap_err();
    assert_eq!(refused("0"), "window `0`: 1 to 2000 milliseconds");
    assert_eq!(refused("2001"), "window `2001`: 1 to 2000 milliseconds");
    assert_eq!(refused("+5"), "window `+5`: 1 to 2000 milliseconds");
    assert_eq!(
        refused("100 x"),
        "process `x`: a pid from 1 to 4294967295, or all"
    );
    assert_eq!(
        refused("100 4294967296"),
        "process `4294967296`: a pid from 1 to 4294967295, or all"
    );
    assert_eq!(refused("100 all 0"), "chains `0`: 1 to 512");
    assert_eq!(
        refused("100 all 8 source foo"),
        "source `foo`: pmu, timer or tick"
    );
    assert_eq!(
        refused("source"),
        "source: a name is missing, pmu, timer or tick"
    );
    assert_eq!(refused("depth 49"), "depth `49`: 1 to 48 frames");
    assert_eq!(refused("-x"), "option `-x`: there is only -v");
    assert_eq!(refused("-1"), "window `-1`: 1 to 2000 milliseconds");
    assert_eq!(
        refused("folded folded"),
        "`folded` is given twice: once is enough"
    );
    assert_eq!(
        refused("by-client 5 by-client"),
        "`by-client` is given twice: once is enough"
    );
    assert_eq!(
        refused("1 all 2 3"),
        "too many arguments from `3` on; see `help profile`"
    );
}

#[test]
fn a_mistyped_word_is_told_of_words() {
    for (text, expected) in [
        (
            "by_client",
            "word `by_client`: probably by-client; see `help profile`",
        ),
        (
            "deph 4",
            "word `deph`: probably depth N; see `help profile`",
        ),
        (
            "100 all 5 depth=4",
            "word `depth=4`: probably depth N; see `help profile`",
        ),
        (
            "sorce tick",
            "word `sorce`: probably source S; see `help profile`",
        ),
        (
            "100 tick",
            "word `tick`: probably source tick; see `help profile`",
        ),
        ("foldd", "word `foldd`: probably folded; see `help profile`"),
        (
            "100 Folded",
            "word `Folded`: probably folded; see `help profile`",
        ),
        (
            "--folded",
            "word `--folded`: probably folded; see `help profile`",
        ),
        ("-V", "word `-V`: probably -v; see `help profile`"),
        ("100 ALL", "word `ALL`: probably all; see `help profile`"),
        (
            "100 all 8 9 foldd",
            "too many arguments from `9` on; see `help profile`",
        ),
        ("x", "word `x`: all, depth, source, by-client, folded or -v"),
        (
            "\u{ff15}",
            "word `\u{ff15}`: all, depth, source, by-client, folded or -v",
        ),
        (
            "100 all ms",
            "word `ms`: all, depth, source, by-client, folded or -v",
        ),
        (
            "100 5 8 ms",
            "word `ms`: all, depth, source, by-client, folded or -v",
        ),
        ("-w", "option `-w`: there is only -v"),
        ("--", "option `--`: there is only -v"),
        // A name there is probably a process's.
        (
            "100 shell",
            "process `shell`: a pid from 1 to 4294967295, or all",
        ),
    ] {
        assert_eq!(line(text).err().unwrap_or_default(), expected, "{text}");
    }
}

#[test]
fn a_word_where_another_word_wants_its_value_is_none() {
    for (text, expected) in [
        ("depth folded", "depth `folded`: 1 to 48 frames"),
        ("depth depth 4", "depth `depth`: 1 to 48 frames"),
        ("depth source tick", "depth `source`: 1 to 48 frames"),
        ("source depth 4", "source `depth`: pmu, timer or tick"),
        ("source 5", "source `5`: pmu, timer or tick"),
        ("source timr", "source `timr`: pmu, timer or tick"),
        ("all", "window `all`: 1 to 2000 milliseconds"),
        ("100 5 all", "chains `all`: 1 to 512"),
        ("100 all all", "chains `all`: 1 to 512"),
        (
            "100 5 8 all",
            "too many arguments from `all` on; see `help profile`",
        ),
        (
            "depth 4 folded depth 5",
            "`depth` is given twice: once is enough",
        ),
        (
            "source tick source pmu",
            "`source` is given twice: once is enough",
        ),
    ] {
        assert_eq!(line(text), Err(expected.into()), "{text}");
    }
}

#[test]
fn a_number_too_large_for_its_place_is_named_there() {
    for huge in [
        "65536",
        "4294967296",
        "18446744073709551616",
        "99999999999999999999999",
    ] {
        let shown = Word::new(huge);
        for (text, expected) in [
            (
                huge.into(),
                format!("window {shown}: 1 to 2000 milliseconds"),
            ),
            (
                format!("100 all {huge}"),
                format!("chains {shown}: 1 to 512"),
            ),
            (
                format!("depth {huge}"),
                format!("depth {shown}: 1 to 48 frames"),
            ),
        ] {
            assert_eq!(line(&text), Err(expected));
        }
    }
    for huge in ["4294967296", "18446744073709551616"] {
        let expected = format!(
            "process {}: a pid from 1 to 4294967295, or all",
            Word::new(huge)
        );
        assert_eq!(line(&format!("100 {huge}")), Err(expected));
    }
    for (text, expected) in [
        ("100ms", "window `100ms`: 1 to 2000 milliseconds"),
        ("1.5", "window `1.5`: 1 to 2000 milliseconds"),
        ("100 all 513", "chains `513`: 1 to 512"),
        ("depth 256", "depth `256`: 1 to 48 frames"),
    ] {
        assert_eq!(line(text), Err(expected.into()), "{text}");
    }
}

#[test]
fn a_source_is_taken_by_the_name_that_the_report_prints() {
    for (name, expected) in [
        ("pmu", Source::Pmu),
        ("pmu/nmi", Source::Pmu),
        ("timer", Source::Timer),
        (Printed::TimerNmi.name(), Source::Timer),
        (Printed::Tick.name(), Source::Tick),
    ] {
        assert_eq!(
            line(&format!("source {name}")).map(|request| request.source),
            Ok(expected)
        );
    }
    // Which counter it is, the machine says.
    for counter in [Printed::PmuIntel, Printed::PmuAmd, Printed::PmuAmdV2] {
        let error = line(&format!("source {}", counter.name())).unwrap_err();
        assert!(
            error.ends_with("probably source pmu; see `help profile`"),
            "{error}"
        );
    }
}

/// Columns for an error, behind the name of the command.
const COLUMNS: usize = 80 - "profile: ".len();

proptest! {
    #[test]
    fn whatever_is_typed_gets_a_valid_request_or_one_short_line(words in prop::collection::vec("\\PC{0,40}|[0-9]{1,5}|all|depth|source|tick|by-client|folded|-v|\u{1b}\\[2J", 0..7)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match parse(&words) {
            Ok(request) => prop_assert!(is_valid(&request)),
            Err(error) => {
                let text = error.to_string();
                prop_assert!(!text.contains(char::is_control) && text.chars().count() <= COLUMNS, "{text}");
            }
        }
    }
}
