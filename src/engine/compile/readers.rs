//! Selects the messages that may be read in the wire's memory (a view): only one local task reads the message, and
//! its region is in staging, or is where that task stores its result.

use super::program::{Buffer, Fold, PortProgram, Region, Task};

/// For each receive, the only local task that reads its message, if that may be in a view; [`NOBODY`] otherwise, and
/// for other tasks.
pub(crate) fn readers(code: &PortProgram) -> Box<[u32]> {
    let reader = |(index, task): (usize, &Task)| match *task {
        // A task of another port reads the message in its region.
        Task::Recv { into, .. } if into.len > 0 && code.flag(index as u32).is_none() => {
            let reader = only_reader(code, index as u32, into);
            let stays = into.buffer != Buffer::Staging
                && reader != NOBODY
                && !replaces(code, code.tasks[reader as usize], into);
            if stays { NOBODY } else { reader }
        }
        _ => NOBODY,
    };
    code.tasks.iter().enumerate().map(reader).collect()
}

/// Whether the task only combines the contents of `region` with something else, in place.
fn replaces(code: &PortProgram, task: Task, region: Region) -> bool {
    let Task::Fold(span) = task else { return false };
    matches!(code.folds[span.range()], [Fold { into, own_at: Some(_), .. }] if into == region)
}

/// No task.
pub(crate) const NOBODY: u32 = u32::MAX;

/// The only reader of the region after the receive, which is its last writer, so that readers directly wait for it.
fn only_reader(code: &PortProgram, recv: u32, into: Region) -> u32 {
    let mut reader = NOBODY;
    for &next in code.successors(recv) {
        let mut reads = false;
        let mut crosses = false;
        let mut note = |region: Region| {
            let (start, end) = (region.offset, region.offset + region.len);
            let meets =
                region.buffer == into.buffer && start < into.offset + into.len && into.offset < end;
            reads |= meets;
            crosses |= meets && (start < into.offset || end > into.offset + into.len);
        };
        match code.tasks[next as usize] {
            Task::Send { from, .. } => {
                note(from);
                crosses |= reads;
            }
            // A later message to the same place.
            Task::Recv { .. } => {}
            Task::Copy(span) => {
                code.moves[span.range()].iter().for_each(|copy| note(copy.from));
            }
            Task::Fold(span) => {
                for fold in &code.folds[span.range()] {
                    let operands = &code.operands[fold.operands.range()];
                    let own = fold.own_at.map(|_| fold.into);
                    operands.iter().copied().chain(own).for_each(&mut note);
                }
            }
        }
        if reads {
            if reader != NOBODY || crosses {
                return NOBODY;
            }
            reader = next;
        }
    }
    reader
}
