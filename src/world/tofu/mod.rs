//! uTofu devices as backends: the vendor's library, and the device in software.

mod agreement;
mod chains;
#[cfg(feature = "emu")]
mod emulated;
#[cfg(not(feature = "emu"))]
#[path = "no_emulated.rs"]
mod emulated;
mod gates;
mod topology;

#[cfg(feature = "sim")]
pub(super) use emulated::gates_under;
pub(super) use emulated::{Emulation, of_environment};

use std::collections::BTreeSet;

use hopbine_meet::Exchange;
use utofu::handles::{Vcq, VcqFlags};
use utofu::{Api, BarrierCaps, OnesidedCaps, UtofuError};

use hopbine_torus::choose::Wire;

use super::backend::{Backend, Layout, Opened};
use super::info::{Barrier, DeviceInfo, FreeQueues, Onesided};
use super::node_memory::with_node_memory;
use crate::comm::choice::tuning::Tuning;
use crate::comm::state::small::CacheStatsFn;
use crate::endpoint::Time;
use crate::endpoint::utofu::{Registrar, connect};
use crate::error::WireError;
use crate::memory::CacheConfig;

/// A uTofu device.
#[derive(Clone)]
pub(super) struct Tofu {
    api: Api,
    is_physical: bool,
    /// Configuration of the registration cache; `None`: no cache.
    cache: Option<CacheConfig>,
}

impl Tofu {
    /// The vendor's library, if it can be opened and reports TNIs.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn vendor(cache: CacheConfig) -> Result<Self, String> {
        let api = Api::vendor().map_err(|error| error.to_string())?;
        match api.onesided_tnis() {
            Ok(tnis) if !tnis.is_empty() => Ok(Tofu { api, is_physical: true, cache: Some(cache) }),
            Ok(_) => Err(format!("{} reports no TNI", api.origin())),
            Err(error) => Err(format!("{}: {error}", api.origin())),
        }
    }
}

impl Backend for Tofu {
    fn name(&self) -> &'static str {
        if self.is_physical { "tofu" } else { "emu" }
    }

    fn coordinates(&self) -> Result<[u8; 6], WireError> {
        self.api.my_coords().map_err(failed)
    }

    fn is_physical(&self) -> bool {
        self.is_physical
    }

    fn wire(&self) -> Wire {
        Wire::Network
    }

    fn tuning(&self) -> &'static Tuning {
        Tuning::tofu_d()
    }

    fn n_interfaces(&self) -> Result<usize, WireError> {
        self.api.onesided_tnis().map(|tnis| tnis.len()).map_err(failed)
    }

    fn open(&self, exchange: &mut dyn Exchange, layout: &Layout<'_>) -> Result<Opened, WireError> {
        let (registrars, cache) = match self.cache {
            None => ((0..layout.n_ports).map(|_| Registrar::default()).collect(), None),
            Some(config) => {
                let (registrars, view) = Registrar::with_cache(config, layout.n_ports);
                (registrars, Some(Box::new(move || view.stats()) as CacheStatsFn))
            }
        };
        let ports = connect(self.api, exchange, layout.on_node, registrars, &Time::default())?;
        let (endpoints, reading) = with_node_memory(layout, ports, exchange)?;
        let (small, small_pool) = chains::open(self.api, exchange, layout)?;
        Ok(Opened { endpoints, small, small_pool, cache, reading })
    }

    fn describe(&self) -> DeviceInfo {
        let api = self.api;
        // There were TNIs at the start; if they cannot be queried now, none are shown.
        let onesided_tnis = api.onesided_tnis().unwrap_or_default();
        let barrier_tnis = api.barrier_tnis().unwrap_or_default();
        let onesided = onesided_tnis.first().and_then(|&tni| api.onesided_caps(tni).ok());
        let barrier = barrier_tnis.first().and_then(|&tni| api.barrier_caps(tni).ok());
        DeviceInfo {
            library: api.origin().to_owned(),
            utofu_version: api.utofu_version().to_string(),
            tofu_version: api.tofu_version().to_string(),
            onesided_tnis,
            onesided: onesided.map(onesided_info),
            barrier_tnis,
            barrier: barrier.map(barrier_info),
        }
    }

    fn free_queues(&self) -> Vec<FreeQueues> {
        // uTofu has no query for this, so all free VCQs are created.
        let free = |tni| {
            let one = || Vcq::create(self.api, tni, VcqFlags::THREAD_SAFE).ok();
            let taken: Vec<Vcq> = std::iter::from_fn(one).take(MOST_VCQS).collect();
            let cqs: BTreeSet<u16> = taken.iter().map(|vcq| vcq.id().info().cq).collect();
            FreeQueues { tni, vcqs: taken.len(), cqs: cqs.len() }
        };
        self.api.onesided_tnis().unwrap_or_default().into_iter().map(free).collect()
    }
}

/// The VCQs of one TNI: 11 CQs with 8 VCQs each.
const MOST_VCQS: usize = 88;

fn onesided_info(caps: OnesidedCaps) -> Onesided {
    use utofu::abi::{UTOFU_ONESIDED_CAP_FLAG_ARMW, UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE};
    Onesided {
        num_cmp_ids: caps.num_cmp_ids,
        num_reserved_stags: caps.num_reserved_stags,
        cache_line_size: caps.cache_line_size,
        stag_address_alignment: caps.stag_address_alignment,
        max_putget_size: caps.max_putget_size,
        max_piggyback_size: caps.max_piggyback_size,
        max_edata_size: caps.max_edata_size,
        max_mtu: caps.max_mtu,
        armw: caps.flags & UTOFU_ONESIDED_CAP_FLAG_ARMW != 0,
        session_mode: caps.flags & UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE != 0,
    }
}

fn barrier_info(caps: BarrierCaps) -> Barrier {
    let BarrierCaps { reduce_ops, max_uint64_reduction, max_double_reduction, .. } = caps;
    Barrier { reduce_ops, max_uint64_reduction, max_double_reduction }
}

fn failed(error: UtofuError) -> WireError {
    WireError::new(error.call, error.reason())
}
