//! Picture: the loads of links, a panel for each direction with a cell for each vertex at which links start.

use std::path::Path;

use hopbine_torus::Shape;
use hopbine_torus::geometry::Vertex;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::cells::decimal;
use crate::error::CliError;
use crate::picture::{
    FAINT, MARGIN, Style, WIDTH, along, colour_bar, edge, fill, note_lines, picture, words,
};
use crate::simulate::links::Loads;
use crate::simulate::one::OneCall;

/// Maximum number of cells along each side of a panel. For more vertices, several share a cell, which shows the most
/// loaded link.
const MOST_CELLS: usize = 96;
/// Size in pixels of a cell that is easy to distinguish.
const LEGIBLE: i32 = 16;
const GAP: i32 = 24;
const NAME: i32 = 20;
/// Maximum number of panels on a page.
const MOST_PANELS: usize = 36;

/// Draws the loads of links.
///
/// # Errors
/// [`CliError::Write`], or [`CliError::Usage`] if no link carries anything or there are too many directions.
pub fn draw(call: &OneCall<'_>, loads: &Loads, path: &Path) -> Result<(), CliError> {
    let most = loads.links.first().map_or(0.0, |link| link.load);
    if most <= 0.0 {
        return Err(CliError::Usage(
            "no link carries anything: there is nothing to draw".to_owned(),
        ));
    }
    let mut directions: Vec<(usize, &str)> =
        loads.links.iter().map(|link| (link.dim, link.direction.as_str())).collect();
    directions.sort_unstable();
    directions.dedup();
    if directions.len() > MOST_PANELS {
        return Err(CliError::Usage(format!(
            "links of {} directions are not legible: --plot draws {MOST_PANELS} at most",
            directions.len()
        )));
    }
    let grid = Grid::new(&loads.vertices);
    // Both directions of a dimension are side by side; if cells stay legible, two dimensions share a row of panels.
    let columns = match (directions.len(), 4 * (grid.width as i32 * LEGIBLE + GAP)) {
        (n_directions @ (1 | 2), _) => n_directions as i32,
        (_, four) if four <= WIDTH - 2 * MARGIN + GAP => 4,
        _ => 2,
    };
    let room = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns;
    let cell = (room / grid.width as i32).clamp(2, 28);
    let (width, height) = (cell * grid.width as i32, cell * grid.height as i32);
    let panel = NAME + height + GAP / 2;
    let rows = (directions.len() as i32 + columns - 1) / columns;
    let notes = note_lines(&grid.meaning);
    picture(
        path,
        &call.title("link loads"),
        rows * panel + 24 + notes.len() as i32 * 18,
        |canvas, top| {
            for (number, (_, direction)) in directions.iter().enumerate() {
                let number = number as i32;
                let x = MARGIN + number % columns * (room + GAP);
                let y = top + number / columns * panel + NAME;
                let label = Style { h: HPos::Left, v: VPos::Bottom, ..Style::default() };
                words(canvas, direction, (x, y - 3), &label)?;
                let mut cells = vec![0.0f64; grid.width * grid.height];
                for link in loads.links.iter().filter(|link| link.direction == *direction) {
                    let at = grid.cell(&loads.vertices, link.from);
                    cells[at] = cells[at].max(link.load);
                }
                for (at, load) in cells.iter().enumerate() {
                    let (column, row) = ((at % grid.width) as i32, (at / grid.width) as i32);
                    let (x, y) = (x + column * cell, y + row * cell);
                    fill(canvas, x..x + cell, y..y + cell, shade(load / most))?;
                    if cell >= 8 {
                        edge(canvas, x..x + cell, y..y + cell, WHITE)?;
                    }
                }
                edge(canvas, x..x + width, y..y + height, FAINT)?;
            }
            let below = top + rows * panel;
            let bytes = decimal(most * call.bytes as f64, 0);
            let high = format!("{} n = {bytes} B", decimal(most, 3));
            colour_bar(canvas, below, "bytes over a link", ["0", &high], shade)?;
            let style = Style { colour: FAINT, h: HPos::Left, v: VPos::Top, ..Style::default() };
            for (row, note) in (0..).zip(&notes) {
                words(canvas, note, (MARGIN, below + 24 + row * 18), &style)?;
            }
            Ok(())
        },
    )
}

/// A scale from white over yellow and red to dark violet.
fn shade(part: f64) -> RGBColor {
    const STOPS: [RGBColor; 4] = [
        RGBColor(243, 244, 246),
        RGBColor(250, 204, 96),
        RGBColor(214, 69, 65),
        RGBColor(66, 10, 74),
    ];
    along(&STOPS, part)
}

/// Layout of a shape's vertices in a plane: its first dimensions go down, the others to the right.
struct Grid {
    /// Number of dimensions that go down.
    down: usize,
    /// Numbers of cells, and the numbers of rows and columns of vertices that share a cell.
    width: usize,
    height: usize,
    share: [usize; 2],
    meaning: String,
}

impl Grid {
    fn new(shape: &Shape) -> Self {
        let size = |dims: std::ops::Range<usize>| -> usize {
            dims.map(|dim| shape.size(dim) as usize).product()
        };
        let n_dims = shape.n_dims();
        // As square as possible, rather wider than high.
        let down = (0..n_dims).rfind(|&down| size(0..down) <= size(down..n_dims)).unwrap_or(0);
        let [rows, columns] = [size(0..down), size(down..n_dims)];
        let share = [rows, columns].map(|cells| cells.div_ceil(MOST_CELLS));
        let [height, width] = [rows.div_ceil(share[0]), columns.div_ceil(share[1])];
        let name = |dims: std::ops::Range<usize>| {
            let dims: Vec<String> = dims.map(|dim| dim.to_string()).collect();
            match dims.len() {
                1 => format!("dimension {}", dims[0]),
                _ => format!("dimensions {}", dims.join(", ")),
            }
        };
        let mut meaning = format!(
            "one picture for each direction of links; a cell is the node at which a link starts; to the right: {}",
            name(down..n_dims)
        );
        if down > 0 {
            meaning.push_str(&format!("; down: {}", name(0..down)));
        }
        if share != [1, 1] {
            meaning.push_str(&format!("; the busiest of {} links", share[0] * share[1]));
        }
        Grid { down, width, height, share, meaning }
    }

    /// Index of a vertex's cell.
    fn cell(&self, shape: &Shape, vertex: Vertex) -> usize {
        let coord = shape.coord(vertex);
        let number = |dims: std::ops::Range<usize>| {
            dims.fold(0, |number, dim| number * shape.size(dim) as usize + coord[dim] as usize)
        };
        let row = number(0..self.down) / self.share[0];
        row * self.width + number(self.down..shape.n_dims()) / self.share[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_have_cells_of_their_own_until_there_are_too_many() {
        for (text, width, height) in [("7", 7, 1), ("4x4x4", 16, 4), ("8x8", 8, 8), ("16x2", 32, 1)]
        {
            let shape: Shape = text.parse().unwrap();
            let grid = Grid::new(&shape);
            assert_eq!((grid.width, grid.height), (width, height), "{text}");
            let mut cells: Vec<usize> =
                shape.vertices().map(|vertex| grid.cell(&shape, vertex)).collect();
            cells.sort_unstable();
            assert_eq!(cells, (0..shape.n_ranks() as usize).collect::<Vec<_>>(), "{text}");
        }
        let shape: Shape = "24x24x24".parse().unwrap();
        let grid = Grid::new(&shape);
        assert_eq!((grid.width, grid.height, grid.share), (96, 24, [1, 6]));
        assert!(grid.meaning.ends_with("the busiest of 6 links"), "{}", grid.meaning);
    }
}
