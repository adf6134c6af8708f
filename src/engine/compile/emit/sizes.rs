//! The exchange of lengths of blocks that pass through ranks: it has the messages of a plan, with a word in place of
//! every block.
//!
//! Every message begins with the length of the longest block that its sender knows of. So a rank that messages from
//! all ranks reach, directly or through others, knows the longest block of all. Received words are not overwritten:
//! they go to a log, in the order of the plan's steps.

use hopbine_torus::plan::{Lane, Plan, Transfer};
use hopbine_torus::{PortId, Position};

use super::{ALIGN, Common, PortCompiler, TrackedRanges};
use crate::engine::compile::geometry::{Geometry, Learnt, Sizes};
use crate::engine::compile::passing::positions;
use crate::engine::compile::program::{
    Buffer, Fold, ListRange, PortProgram, Program, Region, Task,
};
use crate::engine::compile::regions::{Regions, push_joined};
use crate::engine::compile::transfer::pair_up;

/// Bytes of a word.
const WORD: u64 = size_of::<u64>() as u64;

/// The program in which ranks exchange the lengths of the blocks in the messages of `plan`. Its send buffer has a
/// word for the block to each rank, and one for the longest of them. Its receive buffer has [`log_words`] words,
/// which [`learnt`] reads. It reduces words by their maximum, and its working memory belongs to the operation.
pub fn compile_sizes(plan: &Plan) -> Program {
    let geometry = Geometry {
        sizes: Sizes::Equal(0),
        elem_bytes: WORD,
        in_place: false,
        segment_bytes: None,
        staged: None,
    };
    let log_bytes = log_words(plan) * WORD;
    let (mut log, mut packed) = (0, log_bytes.next_multiple_of(ALIGN));
    let numbers: Vec<PortId> = PortId::first(plan.n_ports() as u16).collect();
    let port = |own| (PortCompiler::new(&geometry, own, Vec::new()), Vec::new());
    let mut ports: Vec<(PortCompiler<'_>, Vec<LaneLog<'_>>)> =
        numbers.chunks(1).map(port).collect();
    for lane in &plan.lanes {
        ports[lane.port.index()].1.push(LaneLog::new(plan, lane, log));
        log += lane_words(lane) * WORD;
    }
    let ports: Vec<PortProgram> =
        ports.into_iter().flat_map(|(port, lanes)| port.run_sizes(lanes, &mut packed)).collect();
    let work_bytes = ports.iter().map(|port| port.needs[Buffer::Work as usize]).max().unwrap_or(0);
    let rank = plan.rank.0;
    Program {
        rank,
        ports,
        closing: Box::default(),
        staged_bytes: 0,
        work_bytes,
        n_flags: 0,
        past_caches: false,
        call: 0,
    }
}

/// Words in the log of a plan's sizes.
pub fn log_words(plan: &Plan) -> u64 {
    plan.lanes.iter().map(lane_words).sum()
}

/// Words in the log of a lane: one for every block received, one for every message, and one for every step with
/// receives.
fn lane_words(lane: &Lane) -> u64 {
    let receiving = lane.steps.iter().filter(|step| !step.recvs.is_empty());
    receiving.map(|step| 1 + step.recvs.iter().map(message_words).sum::<u64>()).sum()
}

fn message_words(transfer: &Transfer) -> u64 {
    1 + hopbine_torus::plan::n_positions(&transfer.runs)
}

/// The sizes that a rank has learnt, if the longest block that it gives has `own_longest` elements.
pub fn learnt(plan: &Plan, own_longest: u64, log: &[u64]) -> Learnt {
    let mut learnt = Learnt { received: Vec::new(), longest: own_longest };
    let mut at = 0;
    for lane in &plan.lanes {
        let mut received = Vec::new();
        for step in lane.steps.iter().filter(|step| !step.recvs.is_empty()) {
            for recv in &step.recvs {
                let end = at + message_words(recv) as usize;
                received.extend_from_slice(&log[at + 1..end]);
                at = end;
            }
            learnt.longest = learnt.longest.max(log[at]);
            at += 1;
        }
        learnt.received.push(received.into());
    }
    learnt
}

/// State of a lane while its sizes are compiled.
struct LaneLog<'a> {
    lane: &'a Lane,
    /// By position, the word for the block that is there.
    words: Vec<Region>,
    /// The word for the longest block so far.
    longest: Region,
    /// Start of the lane's part of the log, and offset of the next word.
    start: u64,
    next: u64,
}

impl<'a> LaneLog<'a> {
    fn new(plan: &Plan, lane: &'a Lane, start: u64) -> Self {
        let given = |index: u32| {
            let offset = u64::from(index) * WORD;
            Region { buffer: Buffer::Send, offset, len: WORD }
        };
        let word = |position| {
            // A position that starts without a block is not sent before it has been received.
            let block = lane.space.block_at_start(plan.rank, position);
            given(block.map_or(plan.n_ranks, |block| block.0))
        };
        let words = Position::first(lane.space.n_positions).map(word).collect();
        LaneLog { lane, words, longest: given(plan.n_ranks), start, next: start }
    }

    fn log(&mut self, words: u64) -> Region {
        let offset = self.next;
        self.next += words * WORD;
        Region { buffer: Buffer::Work, offset, len: words * WORD }
    }
}

impl PortCompiler<'_> {
    /// Emits all tasks of the lanes. Packed messages start at `packed`, which becomes their end.
    fn run_sizes(mut self, mut lanes: Vec<LaneLog<'_>>, packed: &mut u64) -> Vec<PortProgram> {
        let n_steps = lanes.iter().map(|log| log.lane.steps.len()).max().unwrap_or(0);
        let mut most_recvs = 0;
        for index in 0..n_steps {
            self.step = index as u32;
            for log in &mut lanes {
                let Some(step) = log.lane.steps.get(index) else { continue };
                most_recvs = most_recvs.max(step.recvs.len());
                for send in &step.sends {
                    self.emit_size_send(log, send, packed);
                }
                self.emit_size_recvs(log, &step.recvs);
            }
        }
        self.step = n_steps as u32;
        for log in lanes.iter().filter(|log| log.next > log.start) {
            let from =
                Region { buffer: Buffer::Work, offset: log.start, len: log.next - log.start };
            self.emit_copy(0, &[(from, Region { buffer: Buffer::Recv, ..from })]);
        }
        self.finish(most_recvs as u32, &mut Common::default()).0
    }

    fn emit_size_send(&mut self, log: &LaneLog<'_>, send: &Transfer, packed: &mut u64) {
        let mut words = Regions::from_elem(log.longest, 1);
        for position in positions(std::slice::from_ref(send)) {
            push_joined(&mut words, log.words[position as usize]);
        }
        let len = message_words(send) * WORD;
        let message = Region { buffer: Buffer::Work, offset: *packed, len };
        *packed += len.next_multiple_of(ALIGN);
        self.emit_copy(0, &pair_up(&words, &[message]));
        self.emit_send(send.peer, 0, message, &[message.tracked()]);
    }

    fn emit_size_recvs(&mut self, log: &mut LaneLog<'_>, recvs: &[Transfer]) {
        if recvs.is_empty() {
            return;
        }
        let mut longest = vec![log.longest];
        for recv in recvs {
            let message = log.log(message_words(recv));
            self.emit_recv(recv.peer, 0, message);
            longest.push(Region { len: WORD, ..message });
            let mut offset = message.offset;
            for position in positions(std::slice::from_ref(recv)) {
                offset += WORD;
                log.words[position as usize] = Region { offset, len: WORD, ..message };
            }
        }
        log.longest = log.log(1);
        let into = log.longest;
        let reads: TrackedRanges = longest.iter().map(|word| word.tracked()).collect();
        let operands =
            ListRange { start: self.lists.operands.len() as u32, len: longest.len() as u32 };
        self.lists.operands.extend(longest);
        let fold = ListRange { start: self.lists.folds.len() as u32, len: 1 };
        self.lists.folds.push(Fold { into, operands, own_at: None });
        self.graph.emit(self.at(0), Task::Fold(fold), &reads, &[into.tracked()]);
    }
}
