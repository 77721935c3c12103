//! Making a report, with profd's own library, of samples that are the same everywhere.

use alloc::string::String;
use core::hint::black_box;

use super::counter::Counter;
use super::failure::{Effect, Failure, ensure};
use super::rounds::Rounds;
use crate::figure::Figure;
use crate::workload::Workload;

/// Measures the first report, for which the images must be read, and a second one. Gives their text.
pub fn measure(counter: Counter) -> Result<String, Failure> {
    let workload = black_box(Workload::default());
    let catalog = workload.catalog();
    let report = |figure| {
        let mut driver = workload.driver();
        let (count, output) = counter.count(|| black_box(workload.report(&catalog, &mut driver)));
        Rounds::new([count]).print(figure);
        output.map_err(Failure::Report)
    };
    let cold = report(Figure::ReportCold)?;
    let warm = report(Figure::ReportWarm)?;
    ensure(cold == warm, Effect::ReportsAlike)?;
    Ok(cold.text)
}
