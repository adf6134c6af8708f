//! Set-up of a job whose ranks are processes: rank 0 creates the memory, the other ranks open it, and each rank
//! checks that it can reach its neighbour's memory.

use crate::job::core::Job;
use crate::job::nodes::NodePlacement;
use crate::job::records::{ArenaHeader, ArenaLayout};
use crate::limits::error::JobError;
use crate::shared::arena::{Arena, Offset};
use crate::shared::copy;
use crate::sync::Ordering;
use crate::timing::model::Model;
use hopbine_meet::{
    Exchange, create_memory, fresh_number, host, open_memory, permit_access, proc_pid,
};
use rustc_hash::FxBuildHasher;
use std::fs::File;
use std::hash::BuildHasher;
use std::os::fd::AsRawFd;

/// Other ranks read this word to check that they can read this process's memory.
static PROBE: u64 = WORD;

const WORD: u64 = 0x686f_7062_696e_6521;

/// Data that a rank publishes to the other ranks, as numbers.
#[derive(Clone, Copy, PartialEq)]
struct RankInfo {
    host: u64,
    /// Hash of everything that must be equal on all ranks.
    settings: u64,
    process: u64,
    /// Address of [`PROBE`] in the rank's process.
    probe: u64,
    /// Rank 0: its number in `/proc`, the descriptor of the memory, and the token in the memory's header.
    memory: [u64; 3],
}

const WORDS: usize = 7;

impl RankInfo {
    fn encode(&self) -> Vec<u8> {
        let RankInfo { host, settings, process, probe, memory: [a, b, c] } = *self;
        let words: [u64; WORDS] = [host, settings, process, probe, a, b, c];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Returns `None` if the bytes are not an encoded record.
    fn decode(bytes: &[u8]) -> Option<RankInfo> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: &[_; WORDS] = words.try_into().ok()?;
        let [host, settings, process, probe, a, b, c] = words.map(u64::from_le_bytes);
        // 0 and numbers above the range of pid_t have other meanings in system calls.
        let is_process = (1..=i32::MAX as u64).contains(&process);
        let info = RankInfo { host, settings, process, probe, memory: [a, b, c] };
        is_process.then_some(info)
    }
}

/// Creates the job of all ranks of `exchange`, which are processes of one host.
///
/// # Errors
/// [`JobError`], the same on all ranks unless the exchange fails.
pub(crate) fn job(
    exchange: &mut dyn Exchange,
    placement: NodePlacement,
    model: Model,
) -> Result<Job, JobError> {
    let (rank, layout) = (exchange.rank(), ArenaLayout::of(&placement));
    let created = (rank == 0).then(|| create(layout)).transpose();
    let NodePlacement { shape, node_of, sharing, .. } = &placement;
    let settings = FxBuildHasher.hash_one((layout.len, shape, node_of, sharing));
    let info = created.as_ref().map(|created| {
        let info = RankInfo {
            host: host(),
            settings,
            process: std::process::id().into(),
            probe: &raw const PROBE as u64,
            memory: created.as_ref().map_or([0; 3], |(_, _, memory)| *memory),
        };
        info.encode()
    });
    let infos = exchange.agree(info.as_deref().map_err(|reason| String::clone(reason)))??;
    let mismatch = |rank, what| JobError::Mismatch { rank, what };
    let decode = |(rank, bytes): (usize, &[u8])| {
        RankInfo::decode(bytes).ok_or(mismatch(rank, "is of another release"))
    };
    let infos: Vec<RankInfo> = infos.iter().enumerate().map(decode).collect::<Result<_, _>>()?;
    for (rank, info) in infos.iter().enumerate() {
        if info.host != infos[0].host {
            return Err(mismatch(
                rank,
                "is on another host than rank 0; the emulated device needs all ranks on one host",
            ));
        }
        if info.settings != infos[0].settings {
            return Err(mismatch(
                rank,
                "has other settings than rank 0: all ranks need the same HOPBINE_TORUS, \
                 HOPBINE_RANKS_PER_NODE and HOPBINE_EMU_CQS",
            ));
        }
    }
    let processes: Vec<u32> = infos.iter().map(|info| info.process as u32).collect();
    permit_access(&processes);
    let opened = match created {
        Ok(Some((file, arena, _))) => Ok((file, arena)),
        _ => open(infos[0].memory, layout),
    };
    // After this exchange all ranks have opened the memory, and may access each other's.
    exchange.agree(opened.as_ref().map(|_| &[][..]).map_err(Clone::clone))??;
    let next = (rank + 1) % infos.len();
    let reached = match copy::probe(processes[next], infos[next].probe) {
        Ok(WORD) => Ok(&[][..]),
        Ok(_) => Err(unreachable(next, "it holds something else")),
        Err(error) => Err(unreachable(next, &error.to_string())),
    };
    // No rank goes on before all have probed: a process that has ended cannot be probed.
    exchange.agree(reached)??;
    let arena =
        opened.map(|(_, arena)| arena).map_err(|reason| hopbine_meet::Refusal { rank, reason })?;
    Job::of_processes(arena, placement, model, rank, processes)
}

fn unreachable(peer: usize, why: &str) -> String {
    format!(
        "cannot reach the memory of rank {peer}: {why}; ranks as processes need \
         process_vm_readv/writev, which this system refuses (emulated processor, seccomp or ptrace \
         policy): run the ranks as threads of one process"
    )
}

/// Creates zeroed memory, of which only the fixed part takes up room at first. Also returns the place where other
/// ranks find the memory. It is in no file system, so that no size limit of a file system applies; a lack of memory
/// shows up here.
fn create(layout: ArenaLayout) -> Result<(File, Arena, [u64; 3]), String> {
    let make = || {
        let memory = create_memory("hopbine-emu", layout.len)?;
        rustix::fs::fallocate(&memory, rustix::fs::FallocateFlags::empty(), 0, layout.heap)?;
        let arena = Arena::shared(&memory, layout.len)?;
        Ok((memory, arena))
    };
    let failed = |error: std::io::Error| {
        format!("cannot map {} bytes for queues and tables: {error}", layout.len)
    };
    let (memory, arena) = make().map_err(failed)?;
    let token = fresh_number();
    // Relaxed: the exchange synchronises the other ranks with this store.
    arena.at::<ArenaHeader>(Offset::new(0)).token.store(token, Ordering::Relaxed);
    let place = [u64::from(proc_pid().unwrap_or(0)), memory.as_raw_fd() as u64, token];
    Ok((memory, arena, place))
}

/// Opens the memory that rank 0 has created.
fn open([process, fd, token]: [u64; 3], layout: ArenaLayout) -> Result<(File, Arena), String> {
    let open = || {
        let memory = open_memory(process as u32, fd as u32, layout.len)?;
        let arena = Arena::shared(&memory, layout.len)?;
        // Relaxed: see `create`.
        match arena.at::<ArenaHeader>(Offset::new(0)).token.load(Ordering::Relaxed) == token {
            true => Ok((memory, arena)),
            false => Err(std::io::Error::other("it belongs to another job")),
        }
    };
    open().map_err(|error: std::io::Error| format!("cannot open the memory of rank 0: {error}"))
}
