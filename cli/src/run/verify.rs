//! Compares a rank's result with the reference, element by element.

use std::fmt;

use super::element::Number;
use super::reference::{Reference, Want};

/// The wrong elements of one rank.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Wrong {
    /// The rank.
    pub rank: u32,
    /// Index of the first wrong element.
    pub index: usize,
    /// Its expected value.
    pub expected: String,
    /// Its value.
    pub found: String,
    /// Number of wrong elements.
    pub n_wrong: usize,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { rank, index, expected, found, n_wrong } = self;
        write!(f, "rank {rank}, index {index}: expected {expected}, found {found}")?;
        if *n_wrong > 1 {
            write!(f, " (and {} more elements)", n_wrong - 1)?;
        }
        Ok(())
    }
}

/// Checks every element of a rank's result; returns what is wrong.
pub fn verify(reference: &Reference, rank: u32, result: &[u8]) -> Option<Wrong> {
    let (number, per_element) = reference.number();
    let mut wrong: Option<Wrong> = None;
    let mut index = 0;
    for segment in reference.case.result(rank) {
        for within in 0..segment.len {
            let want = reference.want(segment, within);
            let at = index * per_element;
            let found = (
                number.read(result, at),
                if per_element == 2 { number.read(result, at + 1) } else { 0 },
            );
            if !is_as_wanted(number, want, found) {
                match &mut wrong {
                    Some(wrong) => wrong.n_wrong += 1,
                    None => {
                        wrong = Some(Wrong {
                            rank,
                            index,
                            expected: show_want(number, per_element, want),
                            found: show(number, per_element, found),
                            n_wrong: 1,
                        });
                    }
                }
            }
            index += 1;
        }
    }
    wrong
}

/// Checks that a rank's result has the same bits as rank 0's.
pub fn verify_same(reference: &Reference, rank: u32, result: &[u8], first: &[u8]) -> Option<Wrong> {
    if result == first {
        return None;
    }
    let (number, per_element) = reference.number();
    let size = number.size() * per_element;
    let mut differing = result
        .chunks(size)
        .zip(first.chunks(size))
        .enumerate()
        .filter(|(_, (own, first))| own != first);
    let (index, (own, first)) = differing.next()?;
    let bits = |bytes: &[u8]| {
        let raw = (number.read(bytes, 0), if per_element == 2 { number.read(bytes, 1) } else { 0 });
        let hex: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        format!("{} (0x{hex})", show(number, per_element, raw))
    };
    Some(Wrong {
        rank,
        index,
        expected: format!("rank 0's bits, {}", bits(first)),
        found: bits(own),
        n_wrong: 1 + differing.count(),
    })
}

fn is_as_wanted(number: Number, want: Want, found: (u64, u64)) -> bool {
    match (want, number) {
        (Want::Exactly(first, second), Number::Int { .. }) => found == (first, second),
        (Want::Exactly(first, second), _) => {
            number.value(found.0) == number.value(first)
                && number.value(found.1) == number.value(second)
        }
        (Want::Near(values, tolerances), _) => {
            let found = [number.value(found.0), number.value(found.1)];
            // NaN compares as wrong.
            (0..2).all(|part| (found[part] - values[part]).abs() <= tolerances[part])
        }
    }
}

fn show(number: Number, per_element: usize, (first, second): (u64, u64)) -> String {
    match per_element {
        1 => number.show(first),
        _ => format!("({}, {})", number.show(first), number.show(second)),
    }
}

fn show_want(number: Number, per_element: usize, want: Want) -> String {
    match (want, per_element) {
        (Want::Exactly(first, second), _) => show(number, per_element, (first, second)),
        (Want::Near([value, _], [tolerance, _]), 1) => format!("{value:?} +- {tolerance:.2e}"),
        (Want::Near([re, im], tolerance), _) => {
            format!("({re:?} +- {:.2e}, {im:?} +- {:.2e})", tolerance[0], tolerance[1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::data::{Data, PERIOD};
    use crate::run::reference::{CollectiveCase, ValueSource};
    use hopbine::reduce::{Dtype, Op};
    use hopbine_torus::Collective;

    fn reference(collective: Collective, dtype: Dtype, op: Op, count: usize) -> Reference {
        let op = collective.is_reduction().then_some(op);
        let data = Data { dtype, op, n_ranks: 5, seed: 3 };
        Reference::new(CollectiveCase {
            collective,
            data,
            root: 1,
            count,
            counts: None,
            only_root_knows: false,
            in_place: false,
        })
    }

    /// A correct result, made from the reference.
    fn right(reference: &Reference, rank: u32) -> Vec<u8> {
        let (number, per_element) = reference.number();
        let mut bytes = vec![];
        for segment in reference.case.result(rank) {
            for index in 0..segment.len {
                let raw = match reference.want(segment, index) {
                    Want::Exactly(first, second) => [first, second],
                    Want::Near(values, _) => values.map(|value| number.round(value)),
                };
                raw[..per_element].iter().for_each(|&raw| number.push(raw, &mut bytes));
            }
        }
        bytes
    }

    #[test]
    fn every_changed_element_is_found() {
        for collective in Collective::ALL {
            for (dtype, op) in [
                (Dtype::I8, Op::Sum),
                (Dtype::U64, Op::Max),
                (Dtype::Bf16, Op::Sum),
                (Dtype::F32, Op::Sum),
                (Dtype::F64, Op::Product),
                (Dtype::ComplexF32, Op::Product),
            ] {
                let reference = reference(collective, dtype, op, 7);
                let result = right(&reference, 1);
                assert_eq!(verify(&reference, 1, &result), None, "{collective} {dtype} {op}");
                for index in 0..result.len() / dtype.size_bytes() {
                    let mut bad = result.clone();
                    // Flips the sign and a high bit in either byte order.
                    let at = index * dtype.size_bytes();
                    bad[at..at + dtype.size_bytes()].iter_mut().for_each(|byte| *byte ^= 0xc1);
                    let wrong = verify(&reference, 1, &bad).unwrap();
                    assert_eq!((wrong.rank, wrong.index, wrong.n_wrong), (1, index, 1));
                }
            }
        }
    }

    #[test]
    fn rotated_blocks_are_found() {
        let reference = reference(Collective::Alltoall, Dtype::F64, Op::Sum, 6);
        let mut result = right(&reference, 2);
        result.rotate_left(6 * 8);
        assert!(verify(&reference, 2, &result).unwrap().n_wrong > 25);
    }

    #[test]
    fn a_missing_operand_is_beyond_every_bound() {
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64, Dtype::ComplexF64] {
            let reference = reference(Collective::Allreduce, dtype, Op::Sum, 200);
            let (number, _) = reference.number();
            let segment = reference.case.result(0)[0];
            assert_eq!(segment.source, ValueSource::All);
            let mut n_seen = 0;
            for index in 0..200 {
                let own = number.value(reference.case.data.element(3, index).0);
                let without = match reference.want(segment, index) {
                    Want::Exactly(first, _) => number.value(first) - own,
                    Want::Near([value, _], _) => value - own,
                };
                let found = (number.round(without), 0);
                n_seen += usize::from(!is_as_wanted(number, reference.want(segment, index), found));
            }
            assert!(n_seen > 120, "{dtype}: {n_seen} of 200 seen");
        }
    }

    #[test]
    fn messages_name_rank_index_and_values() {
        let reference = reference(Collective::Allreduce, Dtype::I32, Op::Sum, PERIOD + 3);
        let mut result = right(&reference, 4);
        let at = PERIOD + 1;
        result[4 * at..4 * at + 4].copy_from_slice(&77i32.to_ne_bytes());
        let wrong = verify(&reference, 4, &result).unwrap();
        let text = wrong.to_string();
        assert!(text.starts_with(&format!("rank 4, index {at}: expected ")), "{text}");
        assert!(text.ends_with("found 77"), "{text}");
        let same = verify_same(&reference, 4, &result, &right(&reference, 0)).unwrap();
        assert_eq!((same.index, same.n_wrong), (at, 1));
        assert!(same.to_string().contains("rank 0's bits"), "{same}");
    }

    #[test]
    fn not_a_number_is_wrong() {
        let reference = reference(Collective::Allreduce, Dtype::F32, Op::Sum, 2);
        let result: Vec<u8> = [f32::NAN; 2].iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert_eq!(verify(&reference, 0, &result).unwrap().n_wrong, 2);
    }
}
