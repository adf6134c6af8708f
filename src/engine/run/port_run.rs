//! The execution of a port's program over an endpoint.
//!
//! A [`PortRun`] holds the counters of one execution. It allocates memory only when it is created. Receives are
//! posted in plan order, a bounded number at a time; sends and local tasks run in plan order among those that are
//! ready.

mod awaited;

use std::sync::Arc;

use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::{Arrival, Endpoint, Posted, RecvPost, SendPost, Slot, Tag, View, WireError};
use crate::reduce::Reducer;
use crate::timeline::{Record, RecordKind, Sink};

use super::memories::{Memories, Memory};
use super::port_flags::PortFlags;
use super::progress::Progress;
use crate::engine::compile::program::{Buffer, PortProgram, Program, Task};

/// Bytes that local tasks of a run write before its port polls again. Tasks that read messages in the wire's memory
/// exceed it: before a poll these messages would be copied, which takes as long.
const WORK_BYTES: u64 = 64 * 1024;

/// Longest message in bytes that is sent before receives are posted.
const SHORT_BYTES: u64 = 4096;

/// When an operation starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartOrder {
    /// After all earlier operations of its communicator, on all ranks.
    InOrder,
    /// When another operation has delivered what it needs, perhaps after later operations.
    Late,
}

/// One execution of one port's program.
pub struct PortRun {
    program: Arc<Program>,
    port: PortId,
    reducer: Option<Reducer>,
    memories: Memories,
    context: u64,
    operation: u32,
    order: StartOrder,
    progress: Progress,
    /// Receives posted so far.
    recvs_posted: usize,
    recvs_open: u32,
    /// Something may be left to post: the wire did not take it, a poll was due, or an event has come since.
    has_more: bool,
    /// A peer that makes another call. The run continues to its end, so that no rank waits for this one in vain, and
    /// marks its further messages as invalid.
    differing: Option<Rank>,
}

// SAFETY: the pointers in `memories` are only used under `start`'s contract: the thread that runs the program has
// exclusive use of that memory until the run has finished.
unsafe impl Send for PortRun {}

impl PortRun {
    /// A run of port `port` of `program`; the runs of all ports share `port_flags`. A program with folds needs a
    /// reducer.
    pub fn new(
        program: Arc<Program>,
        port: PortId,
        reducer: Option<Reducer>,
        port_flags: Arc<PortFlags>,
    ) -> Self {
        let code = &program.ports[port.index()];
        assert!(code.folds.is_empty() || reducer.is_some(), "a program with folds needs a reducer");
        PortRun {
            reducer,
            memories: Memories::with_room(code.most_operands() + 1, code.most_views()),
            context: 0,
            operation: 0,
            order: StartOrder::InOrder,
            progress: Progress::new(code, port_flags),
            recvs_posted: 0,
            recvs_open: 0,
            has_more: false,
            differing: None,
            program,
            port,
        }
    }

    fn code(&self) -> &PortProgram {
        &self.program.ports[self.port.index()]
    }

    /// Prepares an execution on the given memory, as operation `operation` of the communicator with context
    /// `context`.
    ///
    /// # Safety
    /// Until the run has finished or is dropped, the memories must stay valid, the send buffer for reads and the
    /// others for reads and writes. No other program or thread may use bytes that this port's program touches. The
    /// keys must be from the endpoint that the run will be driven with.
    ///
    /// # Panics
    /// If a memory is smaller than the program needs.
    pub unsafe fn start(
        &mut self,
        (context, operation): (u64, u32),
        order: StartOrder,
        memories: [Memory; Buffer::COUNT],
    ) {
        let code = &self.program.ports[self.port.index()];
        for (memory, &need) in memories.iter().zip(&code.needs) {
            assert!(memory.len >= need, "a buffer of {} bytes, {need} needed", memory.len);
        }
        (self.context, self.operation, self.order) = (context, operation, order);
        self.memories.set(memories);
        self.progress.start(code);
        self.recvs_posted = 0;
        self.recvs_open = 0;
        self.has_more = true;
        self.differing = None;
    }

    /// Context and number of the operation, if its order is kept.
    #[inline]
    pub(crate) fn ordered(&self) -> Option<(u64, u32)> {
        (self.order == StartOrder::InOrder).then_some((self.context, self.operation))
    }

    /// Context and number of the operation, in one number.
    pub(crate) fn id(&self) -> u64 {
        let (context, operation) = (self.context, self.operation);
        Tag { context, operation, message: 0, call: 0 }.operation_id()
    }

    /// True if nothing can be done before the wire reports an event, for this run or for another.
    pub(crate) fn waits_for_wire(&self) -> bool {
        let Progress { sends, locals, n_flags_pending, .. } = &self.progress;
        !self.has_more && *n_flags_pending == 0 && sends.is_empty() && locals.is_empty()
    }

    /// True if every task has finished.
    pub fn is_finished(&self) -> bool {
        self.progress.unfinished == 0
    }

    /// The step of a task.
    pub fn step_of(&self, task: u32) -> u32 {
        self.code().steps[task as usize]
    }

    /// Posts what can be posted and executes the local tasks that are ready, until nothing moves or the wire should
    /// be polled again. `run` is the number of this run in events. `room` bounds the posted and unfinished receives,
    /// unless the step needs more. `sink` records what is done. Returns whether anything was done.
    ///
    /// # Errors
    /// The wire's failure, with the task that was posted.
    #[inline]
    pub fn advance(
        &mut self,
        endpoint: &mut dyn Endpoint,
        run: u32,
        room: u32,
        sink: &mut impl Sink,
    ) -> Result<bool, (u32, WireError)> {
        let mut moved = false;
        let mut bytes = 0;
        loop {
            if self.progress.n_flags_pending > 0 {
                moved |= self.poll_flags();
            }
            moved |= self.post(endpoint, run, room, sink)?;
            // After the post, since a poll may copy long messages: a peer may wait for what is ready now.
            if bytes >= WORK_BYTES && !self.has_view_to_read() {
                self.has_more = true;
                break;
            }
            // Only local tasks make others ready at once.
            let Some(written) = self.execute_local(run, sink) else { break };
            moved = true;
            bytes += written;
            if self.is_finished() {
                self.has_more = true;
                break;
            }
        }
        self.settle();
        Ok(moved)
    }

    /// Checks which tasks of other ports have ended that tasks of this run wait for. Returns whether any has.
    #[cold]
    pub fn poll_flags(&mut self) -> bool {
        let code = &self.program.ports[self.port.index()];
        let (any_set, differing) = self.progress.poll_flags(code);
        self.differing = self.differing.or(differing);
        any_set
    }

    /// Posts what can be posted; see [`advance`](PortRun::advance).
    ///
    /// # Errors
    /// As [`advance`](PortRun::advance).
    #[inline]
    pub fn post(
        &mut self,
        endpoint: &mut dyn Endpoint,
        run: u32,
        room: u32,
        sink: &mut impl Sink,
    ) -> Result<bool, (u32, WireError)> {
        self.has_more = false;
        let PortRun { program, progress, memories, .. } = self;
        let code = &program.ports[self.port.index()];
        let (context, operation, call) = (self.context, self.operation, program.call);
        let late = if self.order == StartOrder::Late { Tag::LATE } else { 0 };
        // The last task that was posted.
        let mut posted = None;
        let window = code.recv_window.min(room.max(code.step_window));
        // Short sends go first: peers wait for them. Receives go before long sends, which take long: a peer may wait
        // to learn that it can send a long message here.
        let mut longest = SHORT_BYTES;
        let id = Tag { context, operation, message: 0, call }.operation_id();
        let mut start = sink.since();
        let mut note = |kind, task, (peer, message, bytes), posting| {
            sink.note(|posted| {
                let start = std::mem::replace(&mut start, posted);
                let end = if posting == Posted::Done { posted } else { 0 };
                let step = code.steps[task as usize];
                Record { start, posted, end, id, bytes, run, task, step, peer, message, kind }
            });
        };
        loop {
            let mut is_full = false;
            while let Some(task) = progress.sends.first() {
                let Task::Send { to, message, from } = code.tasks[task as usize] else {
                    unreachable!("`sends` holds sends");
                };
                if from.len > longest {
                    break;
                }
                let call = if self.differing.is_some() { Tag::other_call(call) } else { call };
                let tag = Tag { context, operation, message: message | late, call };
                let region = memories.wire(from);
                // SAFETY: `start`'s caller keeps the memory valid until the run has finished, which includes this
                // send. The task's hazards keep writers away until then.
                let taken = unsafe {
                    endpoint.post_send(to, SendPost { slot: Slot { run, task }, tag, region })
                };
                let posting = taken.map_err(|error| (task, error))?;
                if posting == Posted::Later {
                    is_full = true;
                    break;
                }
                note(RecordKind::Send, task, (to, message, from.len), posting);
                progress.sends.pop();
                if posting == Posted::Done {
                    progress.finish(code, task, self.differing);
                }
                posted = Some(task);
            }
            while let Some(&task) = code.recvs.get(self.recvs_posted) {
                if self.recvs_open >= window || progress.waiting[task as usize] != 0 {
                    break;
                }
                let Task::Recv { from, message, into } = code.tasks[task as usize] else {
                    unreachable!("`recvs` lists receives");
                };
                let tag = Tag { context, operation, message: message | late, call };
                let region = memories.wire(into);
                let slot = Slot { run, task };
                let arrival = code.arrival(task, program.past_caches);
                // SAFETY: as for sends; the hazards keep every other task from the region.
                let taken =
                    unsafe { endpoint.post_recv(from, RecvPost { slot, tag, region, arrival }) };
                let posting = taken.map_err(|error| (task, error))?;
                match posting {
                    Posted::Accepted => self.recvs_open += 1,
                    Posted::Done => progress.finish(code, task, self.differing),
                    Posted::Later => {
                        self.has_more = true;
                        break;
                    }
                }
                note(RecordKind::Recv, task, (from, message, into.len), posting);
                self.recvs_posted += 1;
                posted = Some(task);
            }
            // A receive of a message that had arrived before may have made sends ready.
            if is_full || progress.sends.is_empty() {
                break;
            }
            longest = u64::MAX;
        }
        if let Some(task) = posted {
            // Before the local tasks, which may take long.
            endpoint.flush().map_err(|error| (task, error))?;
        }
        Ok(posted.is_some())
    }

    /// Executes the first local task that is ready; `run` is the number of this run. Returns the number of bytes that
    /// the task has written, if there was one.
    #[inline]
    pub fn execute_local(&mut self, run: u32, sink: &mut impl Sink) -> Option<u64> {
        let task = self.progress.locals.pop()?;
        let start = sink.since();
        let code = &self.program.ports[self.port.index()];
        let mut bytes = 0;
        let kind = match code.tasks[task as usize] {
            Task::Copy(span) => {
                let arrival = code.arrival(task, self.program.past_caches);
                for &copy in &code.moves[span.range()] {
                    self.memories.copy(copy, arrival == Arrival::PastCaches);
                    bytes += copy.into.len;
                }
                RecordKind::Copy
            }
            Task::Fold(span) => {
                let Some(reducer) = &self.reducer else { unreachable!("checked in `new`") };
                for fold in &code.folds[span.range()] {
                    let operands = &code.operands[fold.operands.range()];
                    self.memories.fold(reducer, fold, operands);
                    bytes += fold.into.len;
                }
                RecordKind::Fold
            }
            Task::Send { .. } | Task::Recv { .. } => unreachable!("`locals` holds local tasks"),
        };
        sink.note(|end| {
            let (id, step) = (self.id(), code.steps[task as usize]);
            Record { start, end, id, bytes, run, task, step, kind, ..Record::default() }
        });
        self.memories.read(task);
        self.progress.finish(code, task, self.differing);
        Some(bytes)
    }

    /// Performs the closing copies, once, when the runs of all ports have finished.
    pub fn close(&self) {
        let Program { closing, past_caches, .. } = &*self.program;
        closing.iter().for_each(|&copy| self.memories.copy(copy, *past_caches));
    }

    /// Whether the next local task reads a message in the wire's memory.
    fn has_view_to_read(&self) -> bool {
        self.progress.locals.first().is_some_and(|task| self.memories.has_view_for(task))
    }

    /// Copies messages in views that have not been read yet to their regions, before the next poll.
    #[inline]
    pub fn settle(&mut self) {
        self.memories.settle();
    }

    /// Notes that a posted receive has got its message, in `view`.
    #[inline]
    pub fn viewed(&mut self, task: u32, view: View) {
        let code = &self.program.ports[self.port.index()];
        if let Task::Recv { into, .. } = code.tasks[task as usize] {
            self.memories.viewed(into, view, code.readers[task as usize]);
        }
        self.finished(task);
    }

    /// Notes that a message of this run has matched one of another call, of rank `peer`.
    pub fn note_differing(&mut self, peer: Rank) {
        self.differing.get_or_insert(peer);
    }

    /// A peer that makes another call, if one has been found.
    pub fn differing(&self) -> Option<Rank> {
        self.differing
    }

    /// Number of receives posted and unfinished.
    pub fn recvs_open(&self) -> u32 {
        self.recvs_open
    }

    /// Notes that a posted task has finished.
    #[inline]
    pub fn finished(&mut self, task: u32) {
        let code = &self.program.ports[self.port.index()];
        if matches!(code.tasks[task as usize], Task::Recv { .. }) {
            self.recvs_open -= 1;
        }
        self.has_more = true;
        self.progress.finish(code, task, self.differing);
    }
}
