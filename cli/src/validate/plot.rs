//! Predicted against measured times, as a picture.

use std::path::Path;

use hopbine_torus::Collective;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::judge::Judged;
use crate::error::CliError;
use crate::output::OutputArg;

const SIZE: (u32, u32) = (960, 720);
/// Between these ratios of predicted to measured times the picture is shaded.
const NEAR: [f64; 2] = [0.8, 1.25];

/// Draws a point for each time, coloured by collective, on logarithmic axes.
///
/// # Errors
/// [`CliError::Write`] or [`CliError::Output`].
pub fn scatter(title: &str, judged: &[Judged<'_>], path: &Path) -> Result<(), CliError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&root, title, judged).expect("a picture in memory cannot fail");
    }
    OutputArg::to(path).write(&text)
}

fn draw(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    judged: &[Judged<'_>],
) -> Result<(), Box<dyn std::error::Error>> {
    let times = judged.iter().flat_map(|one| [one.us, one.case.row.us]);
    let (low, high) =
        times.fold((f64::INFINITY, 0.0f64), |(low, high), us| (low.min(us), high.max(us)));
    let (low, high) = (low / 1.3, high * 1.3);
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 18))
        .margin(16)
        .margin_right(32)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d((low..high).log_scale(), (low..high).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("measured, us")
        .y_desc("predicted, us")
        .x_label_formatter(&|us| format!("{us}"))
        .y_label_formatter(&|us| format!("{us}"))
        .draw()?;
    let band = vec![
        (low, low * NEAR[0]),
        (low, low * NEAR[1]),
        (high / NEAR[1], high),
        (high, high),
        (high, high * NEAR[0]),
        (low / NEAR[0], low),
    ];
    chart
        .draw_series([Polygon::new(band, BLACK.mix(0.08))])?
        .label(format!("within {} and {}", NEAR[0], NEAR[1]))
        .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 18, y + 5)], BLACK.mix(0.15).filled()));
    chart.draw_series(LineSeries::new([(low, low), (high, high)], BLACK.mix(0.5)))?;
    let of = |collective: Collective| {
        judged.iter().filter(move |one| one.case.row.collective == collective)
    };
    let there: Vec<Collective> =
        Collective::ALL.into_iter().filter(|&collective| of(collective).next().is_some()).collect();
    for (index, &collective) in there.iter().enumerate() {
        let lightness = if index % 2 == 0 { 0.38 } else { 0.55 };
        let color = HSLColor(index as f64 / there.len() as f64, 0.75, lightness);
        let points = of(collective)
            .map(|one| Circle::new((one.case.row.us, one.us), 2, color.mix(0.6).filled()));
        chart
            .draw_series(points)?
            .label(format!("{collective} ({})", of(collective).count()))
            .legend(move |(x, y)| Circle::new((x + 9, y), 4, color.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}
