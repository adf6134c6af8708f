//! Divides a finished graph into the programs of its ports.
//!
//! Mostly a graph belongs to one port. If ports share lanes, a task may wait for a task of another port: that port
//! sets a flag when its task has ended ([`PortProgram::task_flags`]), and the waiting port polls the flag
//! ([`PortProgram::flag_waits`]).

use hopbine_torus::PortId;

use super::graph::Graph;
use super::program::{Buffer, FlagWait, Fold, ListRange, Move, NO_FLAG, PortProgram, Region, Task};
use super::readers::readers;

/// The lists that tasks refer to.
#[derive(Default)]
pub(crate) struct TaskLists {
    pub(crate) moves: Vec<Move>,
    pub(crate) folds: Vec<Fold>,
    pub(crate) operands: Vec<Region>,
}

/// The programs of `ports`. Flags are numbered from `n_flags`, which is increased by their number.
pub(crate) fn programs(
    graph: &Graph,
    lists: TaskLists,
    ports: &[PortId],
    n_flags: &mut u32,
) -> Vec<PortProgram> {
    if let [_] = ports {
        let all: Vec<u32> = (0..graph.len()).collect();
        return vec![program(graph, &all, (graph.tasks.as_slice().into(), lists), &[])];
    }
    let flags = flags(graph, n_flags);
    let of_port = |&port: &PortId| {
        let tasks: Vec<u32> =
            (0..graph.len()).filter(|&task| graph.at[task as usize].port == port).collect();
        let mut own = TaskLists::default();
        let renumbered: Box<[Task]> =
            tasks.iter().map(|&task| own.take(graph.tasks[task as usize], &lists)).collect();
        program(graph, &tasks, (renumbered, own), &flags)
    };
    ports.iter().map(of_port).collect()
}

/// By task, its flag, if a task of another port waits for it.
fn flags(graph: &Graph, n_flags: &mut u32) -> Vec<u32> {
    let mut flags = vec![NO_FLAG; graph.tasks.len()];
    for task in 0..graph.len() {
        for &dep in graph.deps(task) {
            if graph.crosses(dep, task) {
                flags[dep as usize] = 0;
            }
        }
    }
    for flag in flags.iter_mut().filter(|flag| **flag != NO_FLAG) {
        *flag = *n_flags;
        *n_flags += 1;
    }
    flags
}

/// The program of a port that has some of a graph's tasks, in order; `own_tasks` are these tasks, and refer to
/// `lists`.
fn program(
    graph: &Graph,
    tasks: &[u32],
    (own_tasks, lists): (Box<[Task]>, TaskLists),
    flags: &[u32],
) -> PortProgram {
    let mut number = vec![u32::MAX; graph.tasks.len()];
    (0..).zip(tasks).for_each(|(own, &task)| number[task as usize] = own);
    let deps = |task: u32| graph.deps(task).iter().map(|dep| (*dep, number[*dep as usize]));
    let local = || {
        (0..).zip(tasks).flat_map(|(own, &task)| {
            deps(task).filter(|(_, dep)| *dep != u32::MAX).map(move |(_, dep)| (dep, own))
        })
    };
    let (successor_start, successors) = successors(tasks.len(), local);
    let mut flag_waits: Vec<(PortId, Vec<FlagWait>)> = Vec::new();
    for (own, &task) in (0..).zip(tasks) {
        for (dep, _) in deps(task).filter(|(_, dep)| *dep == u32::MAX) {
            let heard = FlagWait { flag: flags[dep as usize], task: own };
            let port = graph.at[dep as usize].port;
            match flag_waits.iter_mut().find(|(of, _)| *of == port) {
                Some((_, of_port)) => of_port.push(heard),
                None => flag_waits.push((port, vec![heard])),
            }
        }
    }
    // In the order in which the other port executes them.
    flag_waits.iter_mut().for_each(|(_, of_port)| of_port.sort_unstable_by_key(|heard| heard.flag));
    let has_flags =
        tasks.iter().any(|&task| flags.get(task as usize).is_some_and(|&f| f != NO_FLAG));
    let task_flags = tasks.iter().filter(|_| has_flags).map(|&task| flags[task as usize]);
    let recvs = (0..).zip(&own_tasks).filter(|(_, task)| matches!(task, Task::Recv { .. }));
    let mut program = PortProgram {
        steps: tasks.iter().map(|&task| graph.at[task as usize].step).collect(),
        n_deps: tasks.iter().map(|&task| graph.deps(task).len() as u32).collect(),
        successor_start,
        successors,
        recvs: recvs.map(|(task, _)| task).collect(),
        needs: lists.needs(&own_tasks),
        wire_bytes: wire_bytes(&own_tasks),
        moves: lists.moves.into(),
        folds: lists.folds.into(),
        operands: lists.operands.into(),
        task_flags: task_flags.collect(),
        flag_waits: flag_waits.into_iter().map(|(_, of_port)| of_port.into()).collect(),
        tasks: own_tasks,
        ..PortProgram::default()
    };
    program.readers = readers(&program);
    program
}

/// Inverts dependencies: by task, the start of its successors, and all successors.
fn successors<I: Iterator<Item = (u32, u32)>>(
    n_tasks: usize,
    waits: impl Fn() -> I,
) -> (Box<[u32]>, Box<[u32]>) {
    let mut start = vec![0u32; n_tasks + 1];
    waits().for_each(|(dep, _)| start[dep as usize + 1] += 1);
    for index in 1..start.len() {
        start[index] += start[index - 1];
    }
    let mut next = start.clone();
    let mut tasks = vec![0u32; start[n_tasks] as usize];
    for (dep, task) in waits() {
        tasks[next[dep as usize] as usize] = task;
        next[dep as usize] += 1;
    }
    (start.into(), tasks.into())
}

/// For each buffer, the longest message in bytes that is sent from it or received into it.
fn wire_bytes(tasks: &[Task]) -> [u64; Buffer::COUNT] {
    let mut bytes = [0; Buffer::COUNT];
    for region in tasks.iter().copied().filter_map(Task::on_wire) {
        let longest = &mut bytes[region.buffer as usize];
        *longest = region.len.max(*longest);
    }
    bytes
}

impl TaskLists {
    /// Copies the entries that a task of `all` refers to. Returns the task with references to the copies.
    fn take(&mut self, task: Task, all: &TaskLists) -> Task {
        let range = |start: usize, len: usize| ListRange { start: start as u32, len: len as u32 };
        match task {
            Task::Copy(span) => {
                let start = self.moves.len();
                self.moves.extend_from_slice(&all.moves[span.range()]);
                Task::Copy(range(start, span.len as usize))
            }
            Task::Fold(span) => {
                let start = self.folds.len();
                for fold in &all.folds[span.range()] {
                    let operands = range(self.operands.len(), fold.operands.len as usize);
                    self.operands.extend_from_slice(&all.operands[fold.operands.range()]);
                    self.folds.push(Fold { operands, ..*fold });
                }
                Task::Fold(range(start, span.len as usize))
            }
            Task::Send { .. } | Task::Recv { .. } => task,
        }
    }

    /// For each buffer, the end of the bytes that tasks touch. The folds' targets are never in staging.
    fn needs(&self, tasks: &[Task]) -> [u64; Buffer::COUNT] {
        let mut needs = [0; Buffer::COUNT];
        let mut note = |region: Region| {
            let need = &mut needs[region.buffer as usize];
            *need = region.range().end.max(*need);
        };
        tasks.iter().copied().filter_map(Task::on_wire).for_each(&mut note);
        for copy in &self.moves {
            note(copy.from);
            note(copy.into);
        }
        self.folds.iter().for_each(|fold| note(fold.into));
        self.operands.iter().copied().for_each(note);
        needs
    }
}
