//! Start-up: the ranks of a host find each other, and one of them creates the segment.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hopbine_meet::{Exchange, fresh_number, host, permit_access, yama_scope};
use hopbine_torus::PortId;
use hopbine_torus::choose::ShmLimits;

use super::bell::{self, Doorbell};
use super::cma::{Cma, read_process};
use super::flat_buffers::{self, FlatBuffers};
use super::layout::{SLOT_BYTES, ShmLayout};
use super::peer::{RendezvousMode, ShmPeer, WINDOW_BYTES};
use super::process::{Process, Watch};
use super::queue::{Inbox, Outbox};
use super::segment::Segment;
use super::staging::StagingSlots;
use super::{ConnectedShm, Reading, ShmEndpoint};
use crate::endpoint::calls::CALLS;
use crate::endpoint::matcher::Matcher;
use crate::endpoint::meeting::{agree, check_protocol, exchange_error, with_protocol};
use crate::endpoint::validation::{InvalidField, check_range};
use crate::endpoint::{Bell, Rank, WireError};
use crate::slab::Slab;

/// The call that errors name.
const CALL: &str = "shared memory";

/// Configuration of the shared-memory wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShmConfig {
    /// Ports per rank.
    pub n_ports: usize,
    /// Only ranks of one host with the same number are connected.
    pub node: u64,
    /// Whether ranks may read long messages from the senders' memory, if the system permits it. Must be the same on
    /// all ranks.
    pub may_read: bool,
    /// Whether each rank has its own core, so that two ranks copy at the same time.
    pub own_cores: bool,
    /// The limits of the decision table.
    pub limits: ShmLimits,
}

/// The start-up record of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShmRecord {
    host: u64,
    node: u64,
    process: Process,
    /// Address of the rank's probe: a word that holds `token`.
    probe: u64,
    token: u64,
}

const RECORD_BYTES: usize = 56;

impl ShmRecord {
    /// The key that is equal on ranks to be connected.
    fn place(self) -> (u64, u64) {
        (self.host, self.node)
    }

    fn encode(self) -> [u8; RECORD_BYTES] {
        let ShmRecord { host, node, process, probe, token } = self;
        let Process { pid, proc_pid, started } = process;
        let words = [host, node, u64::from(pid), u64::from(proc_pid), started, probe, token];
        let mut bytes = [0; RECORD_BYTES];
        for (into, word) in bytes.chunks_exact_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes the record of `rank`; `me` is this rank.
    ///
    /// # Errors
    /// Names the invalid field, or the other rank's protocol if it differs.
    fn decode(bytes: &[u8], rank: Rank, me: Rank) -> Result<Self, String> {
        let record = check_protocol(bytes, rank, me)?;
        let of_rank = |invalid: InvalidField| format!("rank {rank} sent {invalid}");
        let (words, _) = record.as_chunks::<8>();
        let words: &[_; RECORD_BYTES / 8] = match words.try_into() {
            Ok(words) if record.len() == RECORD_BYTES => words,
            _ => return Err(format!("rank {rank} sent a record of {} bytes", record.len())),
        };
        let [host, node, pid, proc_pid, started, probe, token] = words.map(u64::from_le_bytes);
        // The system interprets 0 and numbers beyond a pid_t's range differently.
        let most = i32::MAX as u64;
        let pid = check_range("its process number", pid, (1, most)).map_err(of_rank)? as u32;
        let proc_pid =
            check_range("its number in /proc", proc_pid, (0, most)).map_err(of_rank)? as u32;
        Ok(ShmRecord { host, node, process: Process { pid, proc_pid, started }, probe, token })
    }
}

#[cfg(feature = "fuzzing")]
/// Decodes arbitrary bytes as the record of another process.
pub(crate) fn check_startup_record(bytes: &[u8]) {
    if let Ok(record) = ShmRecord::decode(bytes, 1, 0) {
        assert!((1..=i32::MAX as u32).contains(&record.process.pid));
        assert_eq!(with_protocol(&record.encode()), bytes);
    }
}

/// Connects the ports of this rank with those of all other ranks of its host and node; collective over `exchange`.
///
/// # Errors
/// [`WireError`] if the exchange fails, or if a rank cannot create or open the segment; in the second case on all
/// ranks.
pub fn connect(exchange: &mut dyn Exchange, config: ShmConfig) -> Result<ConnectedShm, WireError> {
    let (rank, token) = (exchange.rank(), fresh_number());
    // The probe stays allocated until all ranks have read it.
    let probe = Box::new(AtomicU64::new(token));
    let record = ShmRecord {
        host: host(),
        node: config.node,
        process: Process::own(),
        probe: probe.as_ptr().expose_provenance() as u64,
        token,
    };
    let records = exchange
        .allgather(&with_protocol(&record.encode()))
        .map_err(|error| exchange_error(&error))?;
    let decode = |(other, bytes): (Rank, &[u8])| ShmRecord::decode(bytes, other, rank as Rank);
    let records: Result<Vec<ShmRecord>, String> = (0..).zip(records.iter()).map(decode).collect();
    let records = records.map_err(|reason| failed(&reason))?;
    let locals: Vec<(Rank, ShmRecord)> =
        (0..).zip(records).filter(|(_, other)| other.place() == record.place()).collect();
    let (n_locals, is_all) = (locals.len(), locals.len() == exchange.size());
    let layout = ShmLayout {
        n_ranks: n_locals,
        n_ports: config.n_ports,
        flats_per_rank: if is_all { flat_buffers::per_rank(n_locals) } else { 0 },
    };

    // Permission must be given before any rank reads a probe: other ranks do so after they have been told of the
    // segment.
    let others = locals.iter().map(|(_, record)| record.process.pid);
    let others: Vec<u32> = others.filter(|&pid| pid != record.process.pid).collect();
    if config.may_read && !others.is_empty() {
        permit_access(&others);
    }

    // The first rank makes the segment. It can be opened until the file is closed.
    let (leader, leaders_record) = locals[0];
    let made = (leader as usize == rank).then(|| Segment::create(layout.len(), token));
    let told = match &made {
        Some(Ok((_, file))) => Ok(file.as_raw_fd().to_le_bytes().to_vec()),
        Some(Err(error)) => Err(format!("a segment of {} bytes: {error}", layout.len())),
        None => Ok(Vec::new()),
    };
    let told = agree(exchange, CALL, told.as_deref().map_err(Clone::clone))?;
    let (opened, file) = match (made, &told[leader as usize]) {
        // The creator does not open the segment by name: a rank that is alone needs no /proc.
        (Some(Ok((segment, file))), _) => (Ok(segment), Some(file)),
        (_, &[a, b, c, d]) => {
            let (pid, fd) = (leaders_record.process.proc_pid, u32::from_le_bytes([a, b, c, d]));
            let token = leaders_record.token;
            let open = || Segment::open(pid, fd, layout.len(), token);
            let opened = Segment::made_here(token).map_or_else(open, Ok);
            (opened.map_err(|error| format!("the segment of rank {leader}: {error}")), None)
        }
        _ => (Err(format!("no segment of rank {leader}")), None),
    };
    // Which rank this rank cannot read, and why; empty if it can read all ranks.
    let refused = match config.may_read {
        true => locals.iter().find_map(|(other, record)| refused(rank, *other, record)),
        false => Some("HOPBINE_SHM_READ is off".to_owned()),
    };
    let refused = refused.unwrap_or_default();
    let mine = opened.as_ref().map(|_| refused.as_bytes()).map_err(Clone::clone);
    let all = agree(exchange, CALL, mine)?;
    // All ranks have read the probe and opened the file.
    drop((probe, file));
    let refused = locals.iter().map(|(rank, _)| &all[*rank as usize]).find(|why| !why.is_empty());
    let reading = match refused {
        _ if n_locals == 1 => Reading::Unused,
        None => Reading::On,
        Some(why) => Reading::Off { reason: String::from_utf8_lossy(why).into_owned() },
    };
    let can_read = refused.is_none();
    let segment = opened.map_err(|reason| failed(&reason))?;
    let Some(me) = locals.iter().position(|(local, _)| *local as usize == rank) else {
        return Err(failed("this rank is not on its own host"));
    };
    let flats = is_all.then(|| FlatBuffers::new(&segment, layout, me));
    let flat = flats.as_ref().map(|flats| flats.of_all());
    bell::register_barriers();
    let own_bell: Arc<dyn Bell> = Arc::new(Doorbell::new(&segment, layout, me));
    let watched =
        |&(rank, record): &(Rank, ShmRecord)| (rank, Arc::new(Watch::new(record.process)));
    let locals: Vec<_> = locals.iter().map(watched).collect();
    let n_ranks = exchange.size() as u32;
    let ShmLimits { staged, staged_pair, .. } = config.limits;
    // Longer ones have no place in a slot.
    let staged = if n_locals > 2 { staged } else { staged_pair }.min(SLOT_BYTES as u64) as usize;
    let port = |port| {
        let ranks = (&locals[..], n_ranks);
        let mut port = ShmEndpoint::new(&segment, layout, (port, me), ranks, can_read, &own_bell);
        port.own_cores = config.own_cores;
        port.staged = staged;
        port
    };
    let ports = PortId::first(config.n_ports as u16).map(port);
    Ok(ConnectedShm { endpoints: ports.collect(), flat, flats, reading })
}

impl ShmEndpoint {
    /// A port of the rank with index `me` of `locals`, which are some of the `n_ranks` ranks of the world.
    pub(super) fn new(
        segment: &Arc<Segment>,
        layout: ShmLayout,
        (port, me): (PortId, usize),
        (locals, n_ranks): (&[(Rank, Arc<Watch>)], u32),
        can_read: bool,
        bell: &Arc<dyn Bell>,
    ) -> Self {
        let bell_of = |index| Doorbell::new(segment, layout, index);
        let peer = |(index, (rank, process)): (usize, &(Rank, Arc<Watch>))| ShmPeer {
            rank: *rank,
            process: process.clone(),
            outbox: Outbox::new(segment, layout.queue(port, me, index), bell_of(index)),
            inbox: Inbox::new(segment, layout.queue(port, index, me), bell_of(index)),
            costs: Default::default(),
            is_held: false,
            rendezvous_mode: RendezvousMode::of(can_read),
        };
        let mut matcher = Matcher::new(CALLS);
        matcher.bytes.add_window(locals.len() * WINDOW_BYTES);
        locals.iter().for_each(|_| _ = matcher.add_peer(0));
        ShmEndpoint {
            rank: locals[me].0,
            n_ranks,
            port,
            me,
            layout,
            peers: locals.iter().enumerate().map(peer).collect(),
            staging: StagingSlots::new(segment.clone(), layout, port, me),
            cma: Cma::new(segment.clone(), layout, port, me),
            segment: segment.clone(),
            bell: bell.clone(),
            can_read,
            own_cores: true,
            staged: ShmLimits::default().staged_pair as usize,
            rendezvous_sends: Slab::default(),
            cma_due: Default::default(),
            cico_recvs: Slab::default(),
            cico_sends: Default::default(),
            early_recvs: Vec::new(),
            early_pieces: Vec::new(),
            last_early: 0,
            backlog: Default::default(),
            events: Vec::with_capacity(64),
            views: Vec::with_capacity(16),
            next_views: Vec::with_capacity(16),
            matcher,
            n_held: 0,
            n_polls: 0,
            n_parts: 0,
            is_abandoned: false,
            answer: None,
            reported: None,
        }
    }
}

/// Why this rank cannot read the probe of another rank of this host; `None` if it can.
fn refused(me: usize, other: Rank, record: &ShmRecord) -> Option<String> {
    if record.process.pid == std::process::id() {
        return None;
    }
    let mut word = [0u8; 8];
    // SAFETY: a buffer of the length given.
    let read = unsafe { read_process(record.process, record.probe, word.as_mut_ptr(), 8) };
    match read {
        Ok(8) if u64::from_ne_bytes(word) == record.token => None,
        Ok(_) => Some(format!("rank {me} reads wrong data from the memory of rank {other}")),
        Err(error) => Some(why(me, other, &error, yama_scope())),
    }
}

/// The reason as a text: the system's error, and which processes may read instead if Yama forbids it.
fn why(me: usize, other: Rank, error: &io::Error, yama: Option<u32>) -> String {
    let yama = match yama.filter(|_| error.raw_os_error() == Some(libc::EPERM)) {
        None | Some(0) => String::new(),
        Some(scope) => {
            let may = match scope {
                1 => "a process's ancestors and to processes that it names",
                2 => "administrators",
                _ => "nobody",
            };
            format!("; Yama permits it only to {may} (kernel.yama.ptrace_scope is {scope})")
        }
    };
    format!("rank {me} may not read the memory of rank {other}: {error}{yama}")
}

fn failed(reason: &str) -> WireError {
    WireError::new(CALL, reason)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopbine_meet::{BootstrapError, LocalExchange, Records};

    use super::*;

    /// An exchange that changes a byte of the first record of this rank.
    struct Changed(LocalExchange, Option<usize>);

    impl Exchange for Changed {
        fn rank(&self) -> usize {
            self.0.rank()
        }
        fn size(&self) -> usize {
            self.0.size()
        }
        fn set_timeout(&mut self, timeout: Duration) {
            self.0.set_timeout(timeout);
        }
        fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError> {
            let mut mine = mine.to_vec();
            if let Some(at) = self.1.take() {
                mine[at] ^= 0x80;
            }
            self.0.allgather(&mine)
        }
    }

    /// The errors of both ranks if rank 1 changes a byte of its record.
    fn refusals(at: usize) -> Vec<String> {
        let limits = ShmLimits::default();
        let config = ShmConfig { n_ports: 1, node: 0, may_read: false, own_cores: true, limits };
        let ranks = LocalExchange::group(2, Duration::from_secs(20)).into_iter().enumerate();
        let run = |(rank, exchange)| {
            let mut exchange = Changed(exchange, (rank == 1).then_some(at));
            std::thread::spawn(move || connect(&mut exchange, config).map(drop))
        };
        let threads: Vec<_> = ranks.map(run).collect();
        threads.into_iter().map(|rank| rank.join().unwrap().unwrap_err().to_string()).collect()
    }

    #[test]
    fn the_reason_names_yama_where_it_is_yamas_doing() {
        let [denied, unknown] = [libc::EPERM, libc::ENOSYS].map(io::Error::from_raw_os_error);
        for scope in 1..4 {
            let why = why(3, 5, &denied, Some(scope));
            assert!(why.starts_with("rank 3 may not read the memory of rank 5"), "{why}");
            assert!(why.contains(&format!("ptrace_scope is {scope}")), "{why}");
        }
        for (error, scope) in [(&denied, None), (&denied, Some(0)), (&unknown, Some(1))] {
            assert!(!why(3, 5, error, scope).contains("Yama"));
        }
    }

    #[test]
    fn two_releases_are_refused_on_both_sides() {
        // The protocol's version follows the mark.
        let found = refusals(4);
        assert!(found[0].contains("rank 1 uses protocol 129, rank 0 protocol 1"), "{found:?}");
    }
}
