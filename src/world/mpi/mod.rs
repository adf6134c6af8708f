//! MPI as a backend, and as the exchange at start-up for ranks of any backend.

mod exchange;
pub(super) mod session;

use std::sync::Arc;
use std::time::Duration;

use hopbine_torus::choose::Wire;

use crate::comm::choice::tuning::Tuning;
use crate::endpoint::mpi::ffi;
use hopbine_meet::variables::{BACKEND, Lookup};
use hopbine_meet::{Exchange, Launched, Place};

pub(super) use session::Session;

use super::backend::{Backend, Layout, Opened};
use super::config::{DEFAULT_TIMEOUT, Drive};
use super::info::DeviceInfo;
use super::node_memory::with_node_memory;
use crate::endpoint::mpi::{Library, is_finalised, is_running};
use crate::error::{Error, WireError};
use exchange::MpiExchange;

/// The session of a program that gives no communicator of MPI. There is one if `HOPBINE_BACKEND` is `mpi`, or if the
/// environment does not give this process's rank and MPI is running or a launcher of MPI has started the process. Once
/// MPI has been finalised there is none.
///
/// # Errors
/// [`Error::Backend`].
pub(super) fn find(get: Lookup<'_>) -> Result<Option<Arc<Session>>, Error> {
    let asks = BACKEND.get(get).as_deref() == Some("mpi");
    let is_set_by_hopbine = Place::is_set_by_hopbine(get);
    if is_running() {
        // SAFETY: all ranks of the program, in a communicator that always exists.
        let session =
            (asks || !is_set_by_hopbine).then(|| unsafe { Session::over(session::world(), false) });
        return session.transpose().map_err(unusable);
    }
    if is_finalised() {
        // It cannot be initialised again: `get` says so, or ranks meet as where there is no MPI.
        return if asks { Library::get().map(|_| None).map_err(unusable) } else { Ok(None) };
    }
    if !ffi::is_provided() {
        if !asks {
            return Ok(None);
        }
        let reason = "this program has no MPI backend, since it does not provide an MPI (crate hopbine-mpi); use tofu, shm or emu"
            .to_owned();
        return Err(unusable(WireError::new("MPI", reason)));
    }
    let launched = if is_set_by_hopbine { None } else { Launched::find(get)? };
    let is_rank = launched.is_some() || !is_set_by_hopbine && Launched::without_size(get).is_some();
    if !asks && !is_rank {
        return Ok(None);
    }
    let session = Session::start().map_err(unusable)?;
    match launched {
        Some(Launched { size, .. }) if size != session.n_ranks as usize => {
            let reason = format!(
                "{size} ranks were started, but MPI sees {}: the launcher is not that of this MPI; use its launcher, or srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH",
                session.n_ranks
            );
            session.give_up(DEFAULT_TIMEOUT, &reason);
            Err(unusable(WireError::new("MPI_Comm_size", reason)))
        }
        _ => Ok(Some(session)),
    }
}

pub(super) fn unusable(error: WireError) -> Error {
    let tried = vec![("mpi".to_owned(), error.to_string())];
    Error::Backend { wanted: "mpi".to_owned(), tried }
}

impl Session {
    /// The exchange between the ranks of this session.
    pub(super) fn exchange(self: &Arc<Self>, timeout: Duration) -> Box<dyn Exchange> {
        Box::new(MpiExchange { session: self.clone(), timeout })
    }

    /// Tells the other ranks that this one, whose endpoints have ended, cannot start. They learn of it in their next
    /// exchange, for which this waits up to `timeout`. Then all ranks free their communicators, which stay if some
    /// ranks do not come.
    pub(super) fn give_up(self: &Arc<Self>, timeout: Duration, reason: &str) {
        MpiExchange { session: self.clone(), timeout }.give_up(reason);
        if self.has_given_up() {
            // The reason for giving up is the error to report.
            let _ = self.free();
        }
    }

    /// This session as a backend.
    pub(super) fn backend(self: &Arc<Self>) -> Box<dyn Backend> {
        Box::new(Mpi(self.clone()))
    }

    /// This process's rank, and the number of ranks.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.rank as usize, self.n_ranks as usize)
    }
}

/// See the module documentation.
struct Mpi(Arc<Session>);

impl Backend for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn wire(&self) -> Wire {
        Wire::Network
    }

    fn tuning(&self) -> &'static Tuning {
        Tuning::mpi()
    }

    fn drive(&self, wanted: Drive) -> Result<Drive, String> {
        match wanted {
            Drive::Workers | Drive::Worker if !self.0.library.is_free() => Err(
                "over MPI, workers need MPI_THREAD_MULTIPLE, but MPI was initialised without it"
                    .to_owned(),
            ),
            // Threads that poll MPI slow each other down.
            Drive::Auto => Ok(Drive::Inline),
            wanted => Ok(wanted),
        }
    }

    fn open(&self, exchange: &mut dyn Exchange, layout: &Layout<'_>) -> Result<Opened, WireError> {
        if layout.n_ports > 1 {
            // This fails if a rank has given up: such a rank makes no communicators.
            exchange.barrier().map_err(|error| WireError::new("joining a world", error))?;
        }
        let ports = self.0.endpoints(layout.n_ports)?;
        let (endpoints, reading) = with_node_memory(layout, ports, exchange)?;
        Ok(Opened {
            endpoints,
            small: Err("MPI has no barrier gates".to_owned()),
            small_pool: None,
            cache: None,
            reading,
        })
    }

    fn describe(&self) -> DeviceInfo {
        let mut text = vec![0u8; 8192];
        let mut len = 0;
        let inside = self.0.library.enter();
        // SAFETY: the buffer is longer than MPI_MAX_LIBRARY_VERSION_STRING of any MPI.
        let code = inside
            .map(|_| unsafe { ffi::PMPI_Get_library_version(text.as_mut_ptr().cast(), &mut len) });
        text.truncate(if code == Ok(0) { len.max(0) as usize } else { 0 });
        let name = String::from_utf8_lossy(&text);
        let first = name.lines().next().unwrap_or_default();
        let first = first.split(", package").next().unwrap_or_default().trim();
        DeviceInfo::without_tofu(if first.is_empty() { "MPI" } else { first })
    }
}
