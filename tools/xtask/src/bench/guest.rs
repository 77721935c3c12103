//! Runs the guest's measuring program on one CPU that counts instructions, and reads what it says.

use anyhow::{Context as _, Result, bail, ensure};
use bench::{figure as guest, workload};

use crate::build::Image;
use crate::cli::{BootOptions, Shim};
use crate::system::session::Session;

use super::Figure;

/// Measures every figure that the guest knows. The report that it made must be the host's, byte for byte.
///
/// # Errors
/// If the machine does not do what it should, or the guest says anything else.
pub fn measure(image: &Image) -> Result<Vec<Figure>> {
    let options = BootOptions {
        smp: 1,
        icount: true,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(image, options)?;
    session.start("bench-peer")?;
    let said = session.run("run bench")?;
    session.power_off()?;
    let (figures, text) = parse(&said)?;
    let reference = workload::reference().map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
    same_text(text, &reference.text)?;
    Ok(figures)
}

/// Measures the sample by a counter of one kind, on a machine to which the shim gives such counters, and hides itself.
///
/// # Errors
/// As above.
pub fn measure_counter(image: &Image, shim: Shim) -> Result<Figure> {
    let options = BootOptions {
        smp: 1,
        icount: true,
        shim: Some(shim),
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(image, options)?;
    let said = session.run("run bench counter")?;
    session.power_off()?;
    parse_line(said.trim_end(), guest::Figure::CounterSample)
}

/// The figures, and the report's text behind them.
fn parse(said: &str) -> Result<(Vec<Figure>, &str)> {
    let mut figures = Vec::new();
    let mut rest = said;
    for figure in guest::Figure::ALL {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = behind;
        figures.push(parse_line(line, figure)?);
    }
    let (line, text) = rest.split_once('\n').unwrap_or((rest, ""));
    let length = line
        .strip_prefix("text ")
        .and_then(|length| length.parse().ok());
    let length: usize =
        length.with_context(|| format!("the guest said {line:?}, not `text` and a length"))?;
    ensure!(
        text.len() == length,
        "the guest's report has {length} bytes, {} came",
        text.len()
    );
    Ok((figures, text))
}

/// The line of a figure.
pub(super) fn parse_line(line: &str, figure: guest::Figure) -> Result<Figure> {
    let numbers = line
        .strip_prefix(figure.name())
        .and_then(|numbers| numbers.strip_prefix(' '));
    let numbers = numbers.map(|numbers| numbers.split(' ').map(str::parse).collect());
    let Some(Ok::<Vec<u64>, _>(numbers)) = numbers else {
        bail!(
            "the guest said {line:?}, not `{}` and numbers",
            figure.name()
        );
    };
    let [least, median, most, rounds] = numbers[..] else {
        bail!("the guest said {line:?}: not four numbers");
    };
    Ok(Figure {
        name: figure.name(),
        what: figure.what(),
        peer: figure.peer(),
        least,
        median,
        most,
        rounds,
    })
}

/// Compares the report with the one that the host made.
fn same_text(guest: &str, host: &str) -> Result<()> {
    if guest == host {
        return Ok(());
    }
    let mut lines = guest.lines().zip(host.lines()).zip(1..);
    match lines.find(|((guest, host), _)| guest != host) {
        Some(((guest, host), number)) => {
            bail!("line {number} of the guest's report is {guest:?}, of the host's {host:?}")
        }
        None => bail!(
            "the guest's report has {} bytes, the host's {}",
            guest.len(),
            host.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> String {
        let lines = guest::Figure::ALL.map(|figure| format!("{} 1 2 3 4\n", figure.name()));
        lines.concat() + "text 8\na line\n\n"
    }

    #[test]
    fn figures_and_text_are_read() {
        let said = said();
        let (figures, text) = parse(&said).unwrap();
        assert_eq!(figures.len(), guest::Figure::ALL.len());
        let first = &figures[0];
        assert_eq!((first.name, first.least, first.median), ("null", 1, 2));
        assert_eq!((first.most, first.rounds), (3, 4));
        assert_eq!(text, "a line\n\n");
    }

    #[test]
    fn anything_else_is_refused() {
        for (piece, new) in [
            ("null 1 2 3 4\n", ""),
            ("call 1 2 3 4\n", "bench: call: no\n"),
            ("call 1 2 3 4\n", "call 1 2 3\n"),
            ("call 1 2 3 4\n", "call 1 2 3 -4\n"),
            ("text 8\n", ""),
            ("text 8\n", "text 9\n"),
        ] {
            assert!(parse(&said().replacen(piece, new, 1)).is_err(), "{new:?}");
        }
    }

    #[test]
    fn a_report_that_differs_is_refused_with_the_line() {
        assert!(same_text("a\nb\n", "a\nb\n").is_ok());
        let error = same_text("a\nb\n", "a\nc\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2 "), "{error}");
        assert!(same_text("a\n", "a").is_err());
    }
}
