//! Picture: predicted against measured times.

use std::path::Path;

use hopbine_torus::Collective;
use plotters::prelude::*;

use super::judge::Judged;
use crate::error::CliError;
use crate::picture::{
    Canvas, Drawn, FAINT, GRID, INK, Legend, LogAxis, axis_number, colour, has_place, log_log,
    log_range, picture,
};

/// Height of the chart in pixels, about its width.
const CHART: i32 = 720;
/// The band of ratios of predicted to measured times that is shaded.
const NEAR: [f64; 2] = [0.8, 1.25];

/// Draws a point for each time, coloured by collective, on logarithmic axes.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if there is nothing to draw.
pub fn scatter(title: &str, judged: &[Judged<'_>], path: &Path) -> Result<(), CliError> {
    let n = |collective| of(judged, collective).count();
    let there: Vec<Collective> =
        Collective::ALL.into_iter().filter(|&collective| n(collective) > 0).collect();
    let names = there
        .iter()
        .enumerate()
        .map(|(number, &collective)| (colour(number), format!("{collective} ({})", n(collective))));
    let band = (GRID, format!("within {} and {}", NEAR[0], NEAR[1]));
    let legend = Legend(names.chain([band]).collect());
    picture(path, title, CHART + 8 + legend.height(), |canvas, top| {
        chart(canvas, top, judged, &there)?;
        legend.draw(canvas, top + CHART + 8)
    })
}

fn of<'a>(
    judged: &'a [Judged<'a>],
    collective: Collective,
) -> impl Iterator<Item = &'a Judged<'a>> {
    judged.iter().filter(move |one| one.case.row.collective == collective)
}

fn chart(canvas: &Canvas<'_>, top: i32, judged: &[Judged<'_>], there: &[Collective]) -> Drawn {
    let times = judged.iter().flat_map(|one| [one.us, one.case.row.us]);
    let range = log_range(times, 1.0 / 1.3, 1.3)?;
    let (low, high) = (range.start, range.end);
    let axis = |meaning| LogAxis {
        range: range.clone(),
        meaning,
        base: 10.0,
        number: Some(&axis_number as &dyn Fn(&f64) -> String),
    };
    let (measured, predicted) = (axis("measured, us"), axis("predicted, us"));
    let mut chart = log_log(canvas, (top, CHART), measured, predicted)?;
    let band = vec![
        (low, low * NEAR[0]),
        (low, low * NEAR[1]),
        (high / NEAR[1], high),
        (high, high),
        (high, high * NEAR[0]),
        (low / NEAR[0], low),
    ];
    chart.draw_series([Polygon::new(band, FAINT.mix(0.15))])?;
    chart.draw_series(LineSeries::new([(low, low), (high, high)], INK.mix(0.5)))?;
    for (number, &collective) in there.iter().enumerate() {
        let style = colour(number).mix(0.6).filled();
        let points = of(judged, collective).filter(|one| has_place(one.us));
        chart.draw_series(points.map(|one| Circle::new((one.case.row.us, one.us), 2, style)))?;
    }
    Ok(())
}
