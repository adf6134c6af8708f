//! The expected results of every rank, computed from the definition of the collectives and the ranks' inputs, without
//! the library's arithmetic, plans or buffers.

use hopbine::reduce::Op;
use hopbine_torus::Collective;
use rayon::prelude::*;

use super::data::{Data, PERIOD};
use super::element::Number;
use crate::counts::CountsArg;

/// Number of elements from which several threads combine elements faster than one.
const WORTH_THREADS: usize = 4096;

/// A collective with its sizes.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCase {
    pub collective: Collective,
    pub data: Data,
    pub root: u32,
    /// Elements of the vector or of each block; of the largest block, if blocks differ.
    pub count: usize,
    /// Distribution of the blocks' sizes, if they differ.
    pub counts: Option<CountsArg>,
    /// For a gather or scatter with different blocks: ranks other than the root know only their own block.
    pub only_root_knows: bool,
    /// As with MPI_IN_PLACE, which only the root passes in a rooted collective. Blocks of an alltoall then have one
    /// size in both directions.
    pub in_place: bool,
}

/// Consecutive elements of a result with the source of their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultSegment {
    pub len: usize,
    pub source: ValueSource,
    /// Index of the first element in the source's data.
    pub start: usize,
}

/// The source of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// One rank's input.
    Rank(u32),
    /// The combined inputs of all ranks.
    All,
    /// The combined inputs of the ranks below this one.
    Below(u32),
}

impl CollectiveCase {
    /// Memory for the input and the result of a rank, in words so that it is aligned for every type, each with its
    /// bytes.
    pub fn buffers(&self, rank: u32) -> [(Vec<u64>, usize); 2] {
        [self.input_len(rank), self.result_len(rank)].map(|len| {
            let n_bytes = len * self.data.dtype.size_bytes();
            (vec![0; n_bytes.div_ceil(size_of::<u64>())], n_bytes)
        })
    }

    /// Bytes of the vector, or of all blocks of a rank.
    pub fn total_bytes(&self) -> u64 {
        use Collective as C;
        let (size, n_ranks) = (self.data.dtype.size_bytes(), self.data.n_ranks);
        let count = match self.collective {
            _ if self.is_vector() => self.count,
            // The mean over the ranks.
            C::Alltoall if self.counts.is_some() => {
                (0..n_ranks).map(|rank| self.input_len(rank)).sum::<usize>() / n_ranks as usize
            }
            _ => (0..n_ranks).map(|rank| self.block(rank, 0)).sum(),
        };
        (count * size) as u64
    }

    /// Elements of the block from rank `from` to rank `to`; for blocks that are not for a single rank, of the block
    /// of `from`.
    pub fn block(&self, from: u32, to: u32) -> usize {
        let is_pairs = self.collective == Collective::Alltoall;
        let (from, to) =
            if is_pairs && self.in_place { (from.min(to), from.max(to)) } else { (from, to) };
        let to = is_pairs.then_some(to);
        let Data { seed, n_ranks, .. } = self.data;
        self.counts.map_or(self.count, |counts| counts.of(seed, n_ranks, self.count, from, to))
    }

    /// Whether ranks do not know the sizes of the blocks that they forward.
    pub fn is_learnt(&self) -> bool {
        let is_pairs = self.collective == Collective::Alltoall;
        self.counts.is_some() && (is_pairs || self.only_root_knows)
    }

    /// Bytes of the longest block of an alltoall.
    pub fn longest_bytes(&self) -> u64 {
        let n_ranks = self.data.n_ranks;
        let pairs = (0..n_ranks).flat_map(|from| (0..n_ranks).map(move |to| (from, to)));
        let longest = pairs.map(|(from, to)| self.block(from, to)).max().unwrap_or(0);
        longest as u64 * self.data.dtype.size_bytes() as u64
    }

    /// Elements of the blocks of all ranks below `end`.
    fn blocks_below(&self, end: u32) -> usize {
        (0..end).map(|rank| self.block(rank, 0)).sum()
    }

    /// Whether a rank's input and result share one buffer.
    pub fn has_one_buffer(&self, rank: u32) -> bool {
        use Collective as C;
        match self.collective {
            C::Bcast => rank == self.root,
            C::Barrier => false,
            C::Reduce | C::Gather | C::Scatter => self.in_place && rank == self.root,
            _ => self.in_place,
        }
    }

    /// Offsets, in elements, of a rank's input and result in their buffers.
    pub fn starts(&self, rank: u32) -> [usize; 2] {
        use Collective as C;
        match self.collective {
            C::Allgather | C::Gather if self.has_one_buffer(rank) => [self.blocks_below(rank), 0],
            C::Scatter if self.has_one_buffer(rank) => [0, self.blocks_below(rank)],
            _ => [0, 0],
        }
    }

    /// Elements of the input of a rank.
    pub fn input_len(&self, rank: u32) -> usize {
        use Collective as C;
        let n_ranks = self.data.n_ranks;
        let is_root = rank == self.root;
        match self.collective {
            C::Allreduce | C::Reduce | C::Scan | C::Exscan => self.count,
            C::Allgather | C::Gather => self.block(rank, 0),
            C::ReduceScatter => self.blocks_below(n_ranks),
            C::Alltoall => (0..n_ranks).map(|to| self.block(rank, to)).sum(),
            C::Bcast if is_root => self.count,
            C::Scatter if is_root => self.blocks_below(n_ranks),
            C::Bcast | C::Scatter | C::Barrier => 0,
        }
    }

    /// The definition of the collectives: the segments of a rank's result.
    pub fn result(&self, rank: u32) -> Vec<ResultSegment> {
        use Collective as C;
        let root = self.root;
        let vector = |source| vec![ResultSegment { len: self.count, source, start: 0 }];
        let own = |source| {
            let (len, start) = (self.block(rank, 0), self.blocks_below(rank));
            vec![ResultSegment { len, source, start }]
        };
        let each = |start: &dyn Fn(u32) -> usize| {
            let of = |from| ResultSegment {
                len: self.block(from, rank),
                source: ValueSource::Rank(from),
                start: start(from),
            };
            (0..self.data.n_ranks).map(of).collect()
        };
        match self.collective {
            C::Allreduce => vector(ValueSource::All),
            C::Reduce if rank == root => vector(ValueSource::All),
            C::ReduceScatter => own(ValueSource::All),
            C::Bcast => vector(ValueSource::Rank(root)),
            C::Scatter => own(ValueSource::Rank(root)),
            C::Allgather => each(&|_| 0),
            C::Gather if rank == root => each(&|_| 0),
            C::Alltoall => each(&|from| (0..rank).map(|to| self.block(from, to)).sum()),
            C::Scan => vector(ValueSource::Below(rank + 1)),
            C::Exscan if rank > 0 => vector(ValueSource::Below(rank)),
            C::Reduce | C::Gather | C::Exscan | C::Barrier => vec![],
        }
    }

    /// Elements of the result of a rank.
    pub fn result_len(&self, rank: u32) -> usize {
        self.result(rank).iter().map(|segment| segment.len).sum()
    }

    /// Whether the data are a vector, or none, rather than blocks.
    pub fn is_vector(&self) -> bool {
        use hopbine_torus::collectives::Payload;
        matches!(self.collective.payload(), Payload::Vector | Payload::Token)
    }

    /// Whether all ranks must have the same bits in the end.
    pub fn is_same_everywhere(&self) -> bool {
        matches!(self.collective, Collective::Allreduce | Collective::Bcast | Collective::Allgather)
    }
}

/// One expected element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// Exactly these numbers, as raw bits. Floating-point numbers are compared as values, so that the sign of a zero,
    /// which may depend on the order of operations, is ignored.
    Exactly(u64, u64),
    /// Numbers that differ from the first by at most the second.
    Near([f64; 2], [f64; 2]),
}

/// The expected values of a case.
pub struct Reference {
    pub case: CollectiveCase,
    number: Number,
    per_element: usize,
    /// The combined inputs of all ranks, for one period.
    combined: Vec<Want>,
}

impl Reference {
    /// Computes the expected values.
    pub fn new(case: CollectiveCase) -> Self {
        let (number, per_element) = Number::of(case.data.dtype);
        let longest = if case.collective == Collective::ReduceScatter {
            case.blocks_below(case.data.n_ranks)
        } else {
            case.count
        };
        let n = longest.min(PERIOD);
        let combined = match case.data.op {
            Some(op) => {
                let of = |index| combine(&case.data, op, case.data.n_ranks, index);
                match n < WORTH_THREADS {
                    true => (0..n).map(of).collect(),
                    false => (0..n).into_par_iter().map(of).collect(),
                }
            }
            None => Vec::new(),
        };
        Reference { case, number, per_element, combined }
    }

    /// The type of the numbers in an element, and how many numbers an element has.
    pub fn number(&self) -> (Number, usize) {
        (self.number, self.per_element)
    }

    /// The expected element at `index` of a segment.
    pub fn want(&self, segment: ResultSegment, index: usize) -> Want {
        let at = (segment.start + index) % PERIOD;
        match segment.source {
            ValueSource::All => self.combined[at],
            ValueSource::Below(end) => {
                let data = &self.case.data;
                combine(data, data.op.unwrap_or(Op::Sum), end, at)
            }
            ValueSource::Rank(rank) => {
                let (first, second) = self.case.data.element(rank, at);
                Want::Exactly(first, second)
            }
        }
    }
}

/// Element `index` of the ranks below `end`, combined in rank order.
fn combine(data: &Data, op: Op, end: u32, index: usize) -> Want {
    let (number, _) = Number::of(data.dtype);
    let elements = (0..end).map(|rank| data.element(rank, index));
    if let Number::Int { .. } = number {
        let combined =
            elements.map(|(raw, _)| raw).reduce(|a, b| combine_integers(number, op, a, b));
        // A single rank's value is unchanged, whatever the operator.
        return Want::Exactly(combined.unwrap_or(0), 0);
    }
    let values = elements.map(|(re, im)| [number.value(re), number.value(im)]);
    let mut absolute = [0.0; 2];
    let combined = values
        .inspect(|value| (0..2).for_each(|part| absolute[part] += value[part].abs()))
        .reduce(|a, b| combine_reals(op, a, b))
        .unwrap_or_default();
    if data.is_exact(index) || end == 1 {
        return Want::Exactly(number.round(combined[0]), number.round(combined[1]));
    }
    let error = data.relative_error();
    let tolerance = match op {
        Op::Product => [error * combined[0].hypot(combined[1]); 2],
        _ => absolute.map(|absolute| error * absolute),
    };
    Want::Near(combined, tolerance)
}

fn combine_integers(number: Number, op: Op, a: u64, b: u64) -> u64 {
    let (x, y) = (number.integer(a), number.integer(b));
    number.truncate(match op {
        // The low bits of sums and products do not depend on signedness.
        Op::Sum => a.wrapping_add(b),
        Op::Product => a.wrapping_mul(b),
        Op::Min => {
            if x <= y {
                a
            } else {
                b
            }
        }
        Op::Max => {
            if x >= y {
                a
            } else {
                b
            }
        }
        Op::LogicalAnd => u64::from(a != 0 && b != 0),
        Op::LogicalOr => u64::from(a != 0 || b != 0),
        Op::LogicalXor => u64::from((a != 0) != (b != 0)),
        Op::BitAnd => a & b,
        Op::BitOr => a | b,
        Op::BitXor => a ^ b,
        location => unreachable!("{location} cannot be asked for"),
    })
}

fn combine_reals(op: Op, a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    match op {
        Op::Product => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]],
        Op::Min => [a[0].min(b[0]), 0.0],
        Op::Max => [a[0].max(b[0]), 0.0],
        // Sum; other operators are not defined for reals and are refused earlier.
        _ => [a[0] + b[0], a[1] + b[1]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopbine::reduce::Dtype;

    fn data(dtype: Dtype, op: Op, n_ranks: u32) -> Data {
        Data { dtype, op: Some(op), n_ranks, seed: 7 }
    }

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        let i8 = Number::Int { bytes: 1, signed: true };
        let u8 = Number::Int { bytes: 1, signed: false };
        assert_eq!(combine_integers(i8, Op::Sum, 0x7f, 1), 0x80);
        assert_eq!(combine_integers(i8, Op::Product, 0xff, 0xff), 1);
        assert_eq!(combine_integers(i8, Op::Min, 0xff, 1), 0xff);
        assert_eq!(combine_integers(u8, Op::Min, 0xff, 1), 1);
        assert_eq!(combine_integers(u8, Op::LogicalAnd, 2, 4), 1);
        assert_eq!(combine_integers(u8, Op::LogicalXor, 2, 4), 0);
    }

    #[test]
    fn results_of_every_operator_differ_between_elements() {
        for dtype in Dtype::ALL {
            for op in Op::ALL.into_iter().filter(|op| op.defined_for(dtype)) {
                for n_ranks in [2, 64, 300] {
                    let data = data(dtype, op, n_ranks);
                    let wants: Vec<Want> =
                        (0..600).map(|i| combine(&data, op, n_ranks, i)).collect();
                    let alike = wants.iter().filter(|want| **want == wants[1]).count();
                    assert!(alike < 580, "{dtype} {op} {n_ranks}: {alike} of 600 alike");
                }
            }
        }
    }

    #[test]
    fn bounds_say_something() {
        for dtype in Dtype::ALL.into_iter().filter(|dtype| !dtype.is_integer()) {
            for op in [Op::Sum, Op::Product] {
                for n_ranks in [2, 16, 64, 1000] {
                    let data = data(dtype, op, n_ranks);
                    for index in 0..200 {
                        if let Want::Near(value, tolerance) = combine(&data, op, n_ranks, index) {
                            assert!(value.iter().all(|v| v.is_finite()), "{dtype} {op}");
                            assert!(tolerance[0] < 0.5 * f64::from(n_ranks), "{dtype} {op}");
                        }
                    }
                }
            }
        }
        let tight = combine(&data(Dtype::F32, Op::Sum, 64), Op::Sum, 64, 1);
        assert!(matches!(tight, Want::Near(_, tolerance) if tolerance[0] < 3e-4), "{tight:?}");
    }

    #[test]
    fn exact_elements_are_exact_in_any_order() {
        for dtype in Dtype::ALL.into_iter().filter(|dtype| !dtype.is_integer()) {
            for op in [Op::Sum, Op::Product] {
                for n_ranks in [3, 200] {
                    let data = data(dtype, op, n_ranks);
                    let (number, _) = Number::of(dtype);
                    for index in (0..100).step_by(2) {
                        // In reverse order, rounded at every step as the type requires.
                        let round = |v: [f64; 2]| v.map(|v| number.value(number.round(v)));
                        let backwards = (0..n_ranks)
                            .rev()
                            .map(|rank| data.element(rank, index))
                            .map(|(re, im)| [number.value(re), number.value(im)])
                            .reduce(|a, b| round(combine_reals(op, a, b)))
                            .unwrap();
                        let Want::Exactly(re, im) = combine(&data, op, n_ranks, index) else {
                            panic!("{dtype} {op} {index} is exact");
                        };
                        assert_eq!(backwards, [number.value(re), number.value(im)]);
                    }
                }
            }
        }
    }

    #[test]
    fn results_have_the_lengths_of_their_collective() {
        let data = data(Dtype::I32, Op::Sum, 4);
        for (collective, input, at_root, elsewhere) in [
            (Collective::Allreduce, 3, 3, 3),
            (Collective::ReduceScatter, 12, 3, 3),
            (Collective::Allgather, 3, 12, 12),
            (Collective::Reduce, 3, 3, 0),
            (Collective::Gather, 3, 12, 0),
            (Collective::Scatter, 12, 3, 3),
            (Collective::Alltoall, 12, 12, 12),
            (Collective::Bcast, 3, 3, 3),
            (Collective::Scan, 3, 3, 3),
            (Collective::Exscan, 3, 3, 3),
            (Collective::Barrier, 0, 0, 0),
        ] {
            let case = CollectiveCase {
                collective,
                data,
                root: 2,
                count: 3,
                counts: None,
                only_root_knows: false,
                in_place: false,
            };
            let found = (case.input_len(2), case.result_len(2), case.result_len(1));
            assert_eq!(found, (input, at_root, elsewhere), "{collective}");
        }
    }
}
