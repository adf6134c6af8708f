//! Running a port's program over an endpoint.
//!
//! A [`PortRun`] holds the counters of one execution. It allocates when it is made, never
//! afterwards. Receives are posted in plan order, a bounded number at a time; sends and local
//! tasks in plan order among those that are ready. Local tasks are done one at a time, so
//! that a port polls between them.

use std::sync::Arc;

use crate::endpoint::{Endpoint, Posted, Slot, Tag, WireError, WireRegion};
use crate::error::Awaited;
use crate::reduce::{Operand, Reducer};

use super::program::{Buffer, Fold, PortProgram, Program, Region, Task};
use super::ready::ReadySet;

/// Marks a finished task among the counters of unfinished predecessors.
const DONE: u32 = u32::MAX;

/// The memory behind one of a program's buffers.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// First byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: u64,
    /// Registration of the first byte with the port's endpoint, if the wire needs one.
    pub key: u64,
}

impl Memory {
    /// No memory.
    pub const NONE: Memory = Memory { ptr: std::ptr::null_mut(), len: 0, key: 0 };
}

/// One execution of one port's program.
pub struct PortRun {
    program: Arc<Program>,
    port: usize,
    reducer: Option<Reducer>,
    memories: Memories,
    operation: u32,
    /// For each task how many predecessors are unfinished, or [`DONE`].
    waiting: Box<[u32]>,
    sends: ReadySet,
    locals: ReadySet,
    /// What `sends` and `locals` are at the start.
    first_sends: ReadySet,
    first_locals: ReadySet,
    /// Receives posted so far.
    recvs_posted: usize,
    recvs_open: u32,
    unfinished: usize,
    /// The operands of the fold at hand; empty otherwise. Kept for its capacity.
    scratch: Vec<&'static [u8]>,
}

// SAFETY: the pointers in `memories` are only used by `start`'s contract: whoever runs the
// program has exclusive use of that memory until it has finished, on whatever thread.
unsafe impl Send for PortRun {}

impl PortRun {
    /// A run of port `port` of `program`. A program with folds needs a reducer.
    pub fn new(program: Arc<Program>, port: usize, reducer: Option<Reducer>) -> Self {
        let code = &program.ports[port];
        assert!(code.folds.is_empty() || reducer.is_some(), "a program with folds needs a reducer");
        let n_tasks = code.tasks.len();
        let (mut first_sends, mut first_locals) = (ReadySet::new(n_tasks), ReadySet::new(n_tasks));
        for (task, what) in
            code.tasks.iter().enumerate().filter(|(task, _)| code.n_deps[*task] == 0)
        {
            match what {
                Task::Send { .. } => first_sends.insert(task as u32),
                Task::Copy(_) | Task::Fold(_) => first_locals.insert(task as u32),
                Task::Recv { .. } => {}
            }
        }
        let most_operands = code.folds.iter().map(|fold| fold.operands.len).max().unwrap_or(0);
        PortRun {
            reducer,
            memories: Memories([Memory::NONE; Buffer::COUNT]),
            operation: 0,
            waiting: code.n_deps.clone(),
            sends: first_sends.clone(),
            locals: first_locals.clone(),
            first_sends,
            first_locals,
            recvs_posted: 0,
            recvs_open: 0,
            unfinished: n_tasks,
            scratch: Vec::with_capacity(most_operands as usize),
            program,
            port,
        }
    }

    fn code(&self) -> &PortProgram {
        &self.program.ports[self.port]
    }

    /// Makes ready for an execution as operation `operation` on the given memory.
    ///
    /// # Safety
    /// Until the run has finished or is dropped, the memories must stay valid, the send
    /// buffer for reads and the others for reads and writes; no other program or thread may
    /// use what this port's program touches. Their keys must be those of the endpoint that
    /// the run will be driven with.
    ///
    /// # Panics
    /// If a memory is smaller than the program needs.
    pub unsafe fn start(&mut self, operation: u32, memories: [Memory; Buffer::COUNT]) {
        let code = &self.program.ports[self.port];
        for (memory, &need) in memories.iter().zip(&code.needs) {
            assert!(memory.len >= need, "a buffer of {} bytes, {need} needed", memory.len);
        }
        self.operation = operation;
        self.memories = Memories(memories);
        self.waiting.copy_from_slice(&code.n_deps);
        self.sends.copy_from(&self.first_sends);
        self.locals.copy_from(&self.first_locals);
        self.recvs_posted = 0;
        self.recvs_open = 0;
        self.unfinished = code.tasks.len();
    }

    /// True if every task has finished.
    pub fn is_finished(&self) -> bool {
        self.unfinished == 0
    }

    /// The step of a task.
    pub fn step_of(&self, task: u32) -> u32 {
        self.code().steps[task as usize]
    }

    /// Posts what can be posted; `run` is the number by which events will name this run.
    /// Returns whether anything was.
    ///
    /// # Errors
    /// The wire's failure, with the task that was posted.
    pub fn post(
        &mut self,
        endpoint: &mut dyn Endpoint,
        run: u32,
    ) -> Result<bool, (u32, WireError)> {
        let code = &self.program.ports[self.port];
        let mut posted = false;
        while let Some(&task) = code.recvs.get(self.recvs_posted) {
            if self.recvs_open >= code.recv_window || self.waiting[task as usize] != 0 {
                break;
            }
            let Task::Recv { from, message, into } = code.tasks[task as usize] else {
                unreachable!("`recvs` lists receives");
            };
            let tag = Tag { operation: self.operation, message, call: self.program.call };
            let region = self.memories.wire(into);
            // SAFETY: `start`'s caller keeps the memory valid until the run has finished, and
            // it has not before this receive has. The task's hazards keep every other task
            // from the region meanwhile.
            let taken = unsafe { endpoint.post_recv(Slot { run, task }, from, tag, region) };
            match taken.map_err(|error| (task, error))? {
                Posted::Accepted => {}
                Posted::Later => break,
            }
            self.recvs_posted += 1;
            self.recvs_open += 1;
            posted = true;
        }
        while let Some(task) = self.sends.pop() {
            let Task::Send { to, message, from } = code.tasks[task as usize] else {
                unreachable!("`sends` holds sends");
            };
            let tag = Tag { operation: self.operation, message, call: self.program.call };
            let region = self.memories.wire(from);
            // SAFETY: as for receives; the hazards keep writers away until it is sent.
            let taken = unsafe { endpoint.post_send(Slot { run, task }, to, tag, region) };
            match taken.map_err(|error| (task, error))? {
                Posted::Accepted => posted = true,
                Posted::Later => {
                    self.sends.insert(task);
                    break;
                }
            }
        }
        Ok(posted)
    }

    /// Does the first of the local tasks that are ready; returns whether there was one.
    pub fn work(&mut self) -> bool {
        let Some(task) = self.locals.pop() else { return false };
        let code = &self.program.ports[self.port];
        match code.tasks[task as usize] {
            Task::Copy(span) => {
                for copy in &code.moves[span.range()] {
                    self.memories.copy(copy.from, copy.into);
                }
            }
            Task::Fold(span) => {
                let Some(reducer) = &self.reducer else { unreachable!("checked in `new`") };
                for fold in &code.folds[span.range()] {
                    let operands = &code.operands[fold.operands.range()];
                    self.memories.fold(reducer, fold, operands, &mut self.scratch);
                }
            }
            Task::Send { .. } | Task::Recv { .. } => unreachable!("`locals` holds local tasks"),
        }
        self.finish(task);
        true
    }

    /// Notes that a posted task has finished.
    pub fn finished(&mut self, task: u32) {
        if matches!(self.code().tasks[task as usize], Task::Recv { .. }) {
            self.recvs_open -= 1;
        }
        self.finish(task);
    }

    fn finish(&mut self, task: u32) {
        self.waiting[task as usize] = DONE;
        self.unfinished -= 1;
        let code = &self.program.ports[self.port];
        for &next in code.successors(task) {
            let waiting = &mut self.waiting[next as usize];
            *waiting -= 1;
            if *waiting == 0 {
                match code.tasks[next as usize] {
                    Task::Send { .. } => self.sends.insert(next),
                    Task::Copy(_) | Task::Fold(_) => self.locals.insert(next),
                    // Found by `post`, in plan order.
                    Task::Recv { .. } => {}
                }
            }
        }
    }

    /// What an unfinished run waits for: the first unfinished task, whose predecessors have
    /// all finished because they come earlier.
    pub fn awaited(&self) -> Option<(u32, Awaited)> {
        let task = self.waiting.iter().position(|&waiting| waiting != DONE)?;
        let awaited = match self.code().tasks[task] {
            Task::Send { to, .. } => Awaited::ReadyFrom(to),
            Task::Recv { from, .. } => Awaited::MessageFrom(from),
            Task::Copy(_) | Task::Fold(_) => Awaited::Interface,
        };
        Some((self.code().steps[task], awaited))
    }
}

/// The memories of a run.
#[derive(Clone, Copy)]
struct Memories([Memory; Buffer::COUNT]);

impl Memories {
    fn ptr(&self, region: Region) -> *mut u8 {
        // `start` has checked that all regions of the program lie within their memory, so the
        // offset stays inside of it, and fits a usize. A wrapping add because a region of no
        // bytes may belong to a buffer that is absent.
        self.0[region.buffer as usize].ptr.wrapping_add(region.offset as usize)
    }

    fn wire(&self, region: Region) -> WireRegion {
        WireRegion {
            ptr: self.ptr(region),
            len: region.len as usize,
            key: self.0[region.buffer as usize].key.wrapping_add(region.offset),
        }
    }

    fn copy(&self, from: Region, into: Region) {
        debug_assert!(from.len == into.len);
        // SAFETY: both regions lie within memory that is valid by `start`'s contract, and the
        // task's hazards keep writers from `from` and everybody from `into`. They do not
        // overlap by `Move`'s contract.
        unsafe {
            std::ptr::copy_nonoverlapping(self.ptr(from), self.ptr(into), into.len as usize);
        }
    }

    /// Combines `operands` into `into`; `scratch` is empty before and after.
    fn fold(
        &self,
        reducer: &Reducer,
        fold: &Fold,
        operands: &[Region],
        scratch: &mut Vec<&'static [u8]>,
    ) {
        let len = fold.into.len as usize;
        // SAFETY: as in `copy`, and `into` is none of the operands by `Fold`'s contract.
        let target = unsafe { std::slice::from_raw_parts_mut(self.ptr(fold.into), len) };
        for &operand in operands {
            debug_assert!(operand.len == fold.into.len);
            // SAFETY: as in `copy`. The slices live in `scratch` only until the end of this
            // call, during which the memory stays valid.
            let slice = unsafe { std::slice::from_raw_parts(self.ptr(operand).cast_const(), len) };
            scratch.push(slice);
        }
        match (fold.own_at, &scratch[..]) {
            (Some(0), [other]) => reducer.reduce_into(target, other, Operand::Left),
            (Some(_), [other]) => reducer.reduce_into(target, other, Operand::Right),
            (Some(own_at), others) => reducer.fold(target, others, own_at as usize),
            (None, [first, second, more @ ..]) => {
                reducer.reduce3(target, first, second);
                reducer.fold(target, more, 0);
            }
            (None, _) => unreachable!("a fold without an own value has at least two operands"),
        }
        scratch.clear();
    }
}
