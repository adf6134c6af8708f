//! The best family of algorithms by size and shape, with its gain over the best other family (after Fig. 9a of the
//! Bine paper).

use hopbine_torus::sizes;
use serde_json::Value;

use super::families::{EQUAL, Family, Gain, families};
use super::predict::Predicted;
use crate::cells::{Cell, Column};
use crate::error::CliError;
use crate::report::Report;

/// The best family of a shape at a size.
pub struct BestFamily<'a> {
    /// Index of the family in [`Heatmap::families`].
    pub family: usize,
    pub gain: Gain<'a>,
}

/// A family that is the best in some cell.
pub struct Named<'a> {
    /// The letter of the family in pictures.
    pub letter: char,
    pub name: &'a str,
    /// Families with equal times in all its cells.
    pub equals: Vec<&'a str>,
}

/// The best families by shape and size.
pub struct Heatmap<'a> {
    /// Predictions for the shapes on one machine, in the order given.
    pub shapes: Vec<&'a Predicted>,
    /// Sizes in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Families that are the best in some cell, by decreasing number of cells.
    pub families: Vec<Named<'a>>,
    /// The best family by shape and size.
    pub cells: Vec<Vec<BestFamily<'a>>>,
}

impl<'a> Heatmap<'a> {
    /// Finds the best family of each shape and size. Among families with equal times, the one that is the best in
    /// most cells counts.
    ///
    /// # Errors
    /// As [`families`].
    pub fn of(shapes: &'a [Predicted]) -> Result<Self, CliError> {
        let sizes = shapes[0].sizes.clone();
        let all = shapes.iter().map(families).collect::<Result<Vec<_>, _>>()?;
        // Indices of the fastest families, by shape and size.
        let fastest = |shape: &Vec<Family<'a>>, size: usize| -> Vec<usize> {
            let least = shape.iter().map(|family| family.ns(size)).fold(f64::INFINITY, f64::min);
            let is_fastest = |own: &usize| shape[*own].ns(size) <= least * (1.0 + EQUAL);
            (0..shape.len()).filter(is_fastest).collect()
        };
        let of_shape = |shape| (0..sizes.len()).map(|size| fastest(shape, size)).collect();
        let fastest: Vec<Vec<Vec<usize>>> = all.iter().map(of_shape).collect();
        let names_of = |shape: usize, size: usize| {
            fastest[shape][size].iter().map(|&own| all[shape][own].name).collect::<Vec<_>>()
        };
        let places =
            || (0..all.len()).flat_map(|shape| (0..sizes.len()).map(move |size| (shape, size)));
        let mut names: Vec<(usize, &str)> = Vec::new();
        for name in places().flat_map(|(shape, size)| names_of(shape, size)) {
            match names.iter_mut().find(|(_, known)| *known == name) {
                Some((count, _)) => *count += 1,
                None => names.push((1, name)),
            }
        }
        names.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let rank = |name: &str| names.iter().position(|(_, known)| *known == name);
        let own = |shape: usize, size: usize| {
            let in_order =
                fastest[shape][size].iter().min_by_key(|&&own| rank(all[shape][own].name));
            *in_order.expect("some family is the fastest")
        };
        // The families that have cells, in order.
        let mut named: Vec<&str> =
            places().map(|(shape, size)| all[shape][own(shape, size)].name).collect();
        named.sort_by_key(|name| rank(name));
        named.dedup();
        let best = |(shape, size): (usize, usize)| {
            let own = own(shape, size);
            let is_it = |name: &&str| *name == all[shape][own].name;
            let family = named.iter().position(is_it).expect("it has a cell");
            BestFamily { family, gain: Gain::of(&all[shape], own, size) }
        };
        let column = |shape| (0..sizes.len()).map(|size| best((shape, size))).collect();
        let cells: Vec<Vec<BestFamily<'_>>> = (0..all.len()).map(column).collect();
        let equals = |family: usize| -> Vec<&str> {
            let mut own = places().filter(|&(shape, size)| cells[shape][size].family == family);
            let mut found = own.next().map_or(Vec::new(), |(shape, size)| names_of(shape, size));
            own.for_each(|(shape, size)| found.retain(|name| names_of(shape, size).contains(name)));
            found.retain(|name| *name != named[family]);
            found
        };
        let families = letters(&named).into_iter().zip(&named).enumerate();
        let name = |(number, (letter, name)): (usize, (char, &&'a str))| Named {
            letter,
            name,
            equals: equals(number),
        };
        let families: Vec<Named<'_>> = families.map(name).collect();
        Ok(Heatmap { shapes: shapes.iter().collect(), sizes, families, cells })
    }

    /// A title: collective, machine and contents.
    pub fn title(&self) -> String {
        let first = self.shapes[0];
        format!("{} on {}: predicted best algorithm, and its gain", first.collective, first.machine)
    }

    /// A row for each shape and size.
    pub fn report(&self) -> Report {
        let mut columns = vec![
            Column::text("torus", "torus"),
            Column::number("ranks", "ranks").yields(2),
            Column::number("bytes", "bytes"),
            Column::text("letter", ""),
            Column::text("best", "best"),
        ];
        columns.extend(Gain::columns());
        let mut rows = Vec::new();
        for (predicted, of_shape) in self.shapes.iter().zip(&self.cells) {
            for (&bytes, best) in self.sizes.iter().zip(of_shape) {
                let Named { letter, name, .. } = &self.families[best.family];
                let mut cells = vec![
                    Cell::text(predicted.shape.to_string()),
                    Cell::count(predicted.shape.n_ranks()),
                    Cell::new(bytes, sizes::show(bytes)),
                    Cell::text(*letter),
                    Cell::text(*name),
                ];
                cells.extend(best.gain.cells());
                rows.push(cells);
            }
        }
        let mut notes = vec![
            "Predicted by the network model, not measured. Gain: the time of the best slower family over \
             that of the best."
                .to_owned(),
        ];
        for note in self.shapes.iter().flat_map(|predicted| &predicted.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        let first = self.shapes[0];
        Report {
            about: vec![
                ("predicted", Value::from(true)),
                ("collective", Value::from(first.collective.name())),
                ("machine", Value::from(first.machine.as_str())),
            ],
            heading: self.title(),
            columns,
            rows,
            notes,
        }
    }
}

/// A different letter for each name: the first of its letters that is not in use yet.
fn letters(names: &[&str]) -> Vec<char> {
    let mut found = Vec::new();
    for name in names {
        let mut own = name.chars().map(|letter| letter.to_ascii_uppercase()).chain('A'..='Z');
        let is_free = |letter: &char| letter.is_ascii_uppercase() && !found.contains(letter);
        // If all letters are in use, the name gets `*`.
        let letter = own.find(is_free).unwrap_or('*');
        found.push(letter);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::families::tests::predicted;
    use super::*;

    #[test]
    fn families_have_letters_of_their_own() {
        let letters: String =
            letters(&["bine", "bucket", "bruck", "mixed", "bbb"]).iter().collect();
        assert_eq!(letters, "BURMA");
    }

    #[test]
    fn of_equals_the_one_counts_that_is_the_best_of_most_cells() {
        let shapes = [
            predicted(
                "4",
                &[8, 64],
                &[("mixed", &[1.0, 2.0]), ("bine", &[1.0, 2.0]), ("bucket", &[3.0, 4.0])],
            ),
            predicted(
                "8",
                &[8, 64],
                &[("mixed", &[5.0, 6.0]), ("bine", &[2.0, 6.0]), ("bucket", &[3.0, 3.0])],
            ),
        ];
        let map = Heatmap::of(&shapes).unwrap();
        let families: Vec<(char, &str)> =
            map.families.iter().map(|family| (family.letter, family.name)).collect();
        assert_eq!(families, [('B', "bine"), ('U', "bucket")]);
        // On shape 8, mixed is slower than bine.
        assert!(map.families.iter().all(|family| family.equals.is_empty()));
        let cells: Vec<(usize, f64)> =
            map.cells.iter().flatten().map(|best| (best.family, best.gain.gain)).collect();
        assert_eq!(cells, [(0, 3.0), (0, 2.0), (0, 1.5), (1, 2.0)]);
        let map = Heatmap::of(&shapes[..1]).unwrap();
        assert_eq!((map.families[0].name, &map.families[0].equals[..]), ("mixed", &["bine"][..]));
    }
}
