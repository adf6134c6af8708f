//! Selects the messages that may be read in the wire's memory (a view): only one local task reads the message, and
//! its region is in staging, or is where that task stores its result. And selects what is a part of the result that
//! no task reads.

use crate::endpoint::Arrival;

use super::program::{Buffer, Fold, PortProgram, Region, Task};

/// For each receive, the only local task that reads its message, if that may be in a view. For each receive and copy
/// into the user's output that no task reads: [`RESULT`]. For all other tasks: [`NOBODY`].
pub(crate) fn readers(code: &PortProgram) -> Box<[u32]> {
    let reader = |(index, task): (usize, &Task)| match *task {
        Task::Recv { into, .. } if into.len > 0 => match only_reader(code, index as u32, into) {
            reader @ (NOBODY | RESULT) => reader,
            reader if into.buffer == Buffer::Staging => reader,
            reader if replaces(code, code.tasks[reader as usize], into) => reader,
            _ => NOBODY,
        },
        Task::Copy(span) => {
            let mut moves = code.moves[span.range()].iter();
            match moves.all(|copy| only_reader(code, index as u32, copy.into) == RESULT) {
                true => RESULT,
                false => NOBODY,
            }
        }
        _ => NOBODY,
    };
    code.tasks.iter().enumerate().map(reader).collect()
}

impl PortProgram {
    /// The most messages that the program has in views at a time.
    pub(crate) fn most_views(&self) -> usize {
        let viewable = self.readers.iter().filter(|&&reader| reader < RESULT).count();
        viewable.min(self.recv_window as usize)
    }

    /// Where the bytes may go that a receive or a copy writes; `past_caches`: as [`Program`](super::program::Program)
    /// says.
    pub(crate) fn arrival(&self, task: u32, past_caches: bool) -> Arrival {
        match self.readers[task as usize] {
            RESULT if past_caches => Arrival::PastCaches,
            NOBODY | RESULT => Arrival::InRegion,
            _ => Arrival::Anywhere,
        }
    }
}

/// Whether the task only combines the contents of `region` with something else, in place.
fn replaces(code: &PortProgram, task: Task, region: Region) -> bool {
    let Task::Fold(span) = task else { return false };
    matches!(code.folds[span.range()], [Fold { into, own_at: Some(_), .. }] if into == region)
}

/// No task.
pub(crate) const NOBODY: u32 = u32::MAX;

/// No task: the bytes are a part of the result that the program does not read.
pub(crate) const RESULT: u32 = u32::MAX - 1;

/// The only local task that reads `into`, which `writer` writes last, so that its readers directly wait for it.
/// Without readers: [`RESULT`] in the user's output, [`NOBODY`] elsewhere. [`NOBODY`] also for several readers, and for
/// a reader on another port, which reads the message in its region.
fn only_reader(code: &PortProgram, writer: u32, into: Region) -> u32 {
    if code.flag(writer).is_some() {
        return NOBODY;
    }
    let none = if into.buffer == Buffer::Recv { RESULT } else { NOBODY };
    let mut reader = none;
    for &next in code.successors(writer) {
        let task = code.tasks[next as usize];
        let mut reads = false;
        let mut crosses = false;
        for_each_read(code, task, |region| {
            let meets = region.meets(into);
            let (of_region, of_into) = (region.range(), into.range());
            reads |= meets;
            crosses |= meets && (of_region.start < of_into.start || of_region.end > of_into.end);
        });
        crosses |= reads && matches!(task, Task::Send { .. });
        if reads {
            if reader != none || crosses {
                return NOBODY;
            }
            reader = next;
        }
    }
    reader
}

/// Calls `note` with each region that the task reads.
fn for_each_read(code: &PortProgram, task: Task, mut note: impl FnMut(Region)) {
    match task {
        Task::Send { from, .. } => note(from),
        Task::Recv { .. } => {}
        Task::Copy(span) => code.moves[span.range()].iter().for_each(|copy| note(copy.from)),
        Task::Fold(span) => {
            for fold in &code.folds[span.range()] {
                let operands = &code.operands[fold.operands.range()];
                let own = fold.own_at.map(|_| fold.into);
                operands.iter().copied().chain(own).for_each(&mut note);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::compile::program::{ListRange, Move};

    #[test]
    fn results_are_what_no_task_reads() {
        let region = |buffer, offset| Region { buffer, offset, len: 8 };
        let recv = |into| Task::Recv { from: 1, message: 0, into };
        let own = Move { from: region(Buffer::Send, 0), into: region(Buffer::Recv, 16) };
        let mut code = PortProgram {
            tasks: [
                recv(region(Buffer::Recv, 0)),
                Task::Send { to: 2, message: 1, from: region(Buffer::Recv, 4) },
                recv(region(Buffer::Recv, 8)),
                Task::Copy(ListRange { start: 0, len: 1 }),
                recv(region(Buffer::Work, 0)),
            ]
            .into(),
            // The send reads a part of what the first task and the third receive.
            successor_start: [0, 1, 1, 2, 2, 2].into(),
            successors: [1, 1].into(),
            moves: [own].into(),
            ..PortProgram::default()
        };
        let arrivals = |code: &mut PortProgram, past_caches| -> Vec<Arrival> {
            code.readers = readers(code);
            (0..5).map(|task| code.arrival(task, past_caches)).collect()
        };
        use Arrival::{InRegion, PastCaches};
        let all = [InRegion; 5];
        assert_eq!(arrivals(&mut code, false), all);
        assert_eq!(arrivals(&mut code, true), [InRegion, InRegion, InRegion, PastCaches, InRegion]);
        code.tasks[1] = Task::Send { to: 2, message: 1, from: region(Buffer::Recv, 0) };
        assert_eq!(
            arrivals(&mut code, true),
            [InRegion, InRegion, PastCaches, PastCaches, InRegion]
        );
        // A task of another port may read it.
        code.task_flags = [7, u32::MAX, 8, u32::MAX, u32::MAX].into();
        assert_eq!(arrivals(&mut code, true), [InRegion, InRegion, InRegion, PastCaches, InRegion]);
    }
}
