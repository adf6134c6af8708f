//! Cross-validation: predicts each shape by parameters that are fitted to the other shapes.

use hopbine_torus::Shape;
use hopbine_torus::fit::{ErrorClass, Intervals};
use hopbine_torus::sim::Machine;

use super::judge::Judged;
use crate::calibrate::fit::{calibrate, most_evaluations};
use crate::error::CliError;
use crate::measured::cases::{MeasuredCase, predicted};
use crate::measured::shapes_of;
use crate::progress;

/// Predicts each shape by a fit to the others. Each prediction is judged by intervals from the errors on the other
/// shapes. Also returns the intervals from the errors on all shapes, for shapes that were not measured.
///
/// # Errors
/// [`CliError::Usage`] if there is only one shape, or if the other shapes have too few times for a fit.
pub fn leave_out<'a>(
    cases: &[&'a MeasuredCase],
    machine: &Machine,
) -> Result<(Vec<Judged<'a>>, Intervals), CliError> {
    let shapes = shapes_of(cases.iter().map(|case| &case.row));
    if shapes.len() < 2 {
        return Err(CliError::Usage(format!(
            "--leave-out needs times of two shapes or more; all modelled times are of {}",
            shapes[0]
        )));
    }
    let bar = progress::bar(shapes.len() as u64 * most_evaluations(), "fitting");
    let mut errors: Vec<(&Shape, ErrorClass, u32, f64)> = Vec::new();
    let mut of_shapes: Vec<(&Shape, Vec<&'a MeasuredCase>, Vec<f64>)> = Vec::new();
    for shape in &shapes {
        bar.say(&format!("without {shape}"));
        let (own, others): (Vec<&MeasuredCase>, Vec<&MeasuredCase>) =
            cases.iter().partition(|case| case.row.shape == *shape);
        let calibration = calibrate(&others, machine, &bar)
            .map_err(|error| CliError::Usage(format!("without {shape}: {error}")))?;
        let times = predicted(&own, &calibration.machine);
        let of_shape = own
            .iter()
            .zip(&times)
            .map(|(case, us)| (shape, case.class(), shape.n_ranks(), (us / case.row.us).ln()));
        errors.extend(of_shape);
        of_shapes.push((shape, own, times));
    }
    let intervals = |is_in: &dyn Fn(&Shape) -> bool| {
        let chosen = errors.iter().filter(|(shape, ..)| is_in(shape));
        let chosen: Vec<_> =
            chosen.map(|&(_, class, ranks, error)| (class, ranks, error)).collect();
        Intervals::of(&chosen).expect("there are times")
    };
    let judge = |(shape, own, times): (&Shape, Vec<&'a MeasuredCase>, Vec<f64>)| {
        let intervals = intervals(&|other| other != shape);
        let judged = own.into_iter().zip(times);
        judged.map(|(case, us)| Judged::new(case, us, &intervals)).collect::<Vec<_>>()
    };
    let judged = of_shapes.into_iter().flat_map(judge).collect();
    Ok((judged, intervals(&|_| true)))
}
