//! `hopbine info`: the environment that hopbine finds on this machine, and how it would use it.

use std::fmt::Write;

use hopbine::{CacheStats, GatesInfo, Info};

use super::error::{CliError, Outcome};
use super::output::OutputArg;

/// Show backend, device, place, cores and caches
///
/// The command joins the world that the environment describes, or is one rank alone. So it also runs under
/// `hopbine launch` or a job launcher.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine info
  hopbine info --format json
  HOPBINE_BACKEND=tofu hopbine info")]
pub struct Args {
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// A clause about the groups of a flat buffer's ranks; empty without groups.
pub fn in_groups(n: usize) -> String {
    match n {
        0 => String::new(),
        n => format!("; barriers and reductions in {n} groups of ranks"),
    }
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let world = hopbine::init()?;
    let info = world.info();
    let text = match args.format {
        Format::Text => text(&info),
        Format::Json => {
            let json = serde_json::to_string_pretty(&info);
            json.map_err(std::io::Error::from).map_err(CliError::Output)? + "\n"
        }
    };
    args.output.write(&text)?;
    world.finish()?;
    Ok(Outcome::Well)
}

fn text(info: &Info) -> String {
    let mut lines = Lines(String::new());
    lines.add("hopbine", info.hopbine);
    lines.add("backend", format!("{} ({})", info.backend, info.device.library));
    for attempt in &info.tried {
        lines.add("passed over", format!("{}: {}", attempt.backend, attempt.reason));
    }
    lines.add(
        "versions",
        format!("uTofu {}, Tofu {}", info.device.utofu_version, info.device.tofu_version),
    );
    lines.add("TNIs", tnis(&info.device.onesided_tnis));
    if let Some(caps) = &info.device.onesided {
        lines.add(
            "one-sided",
            format!(
                "put/get up to {} bytes, piggyback {}, MTU {}, {} component ids, {} reserved STags \
                 each, cache line {}{}{}",
                caps.max_putget_size,
                caps.max_piggyback_size,
                caps.max_mtu,
                caps.num_cmp_ids,
                caps.num_reserved_stags,
                caps.cache_line_size,
                if caps.armw { ", ARMW" } else { "" },
                if caps.session_mode { ", session mode" } else { "" },
            ),
        );
    }
    lines.add("barrier TNIs", tnis(&info.device.barrier_tnis));
    if let Some(caps) = &info.device.barrier {
        lines.add(
            "barrier",
            format!(
                "reductions of {} u64 or {} f64, operations {:#x}",
                caps.max_uint64_reduction, caps.max_double_reduction, caps.reduce_ops
            ),
        );
    }
    lines.add(
        "gates",
        match &info.gates {
            GatesInfo::Connected { tni, arrangement } => {
                format!("connected as {arrangement} on TNI {tni}")
            }
            GatesInfo::FlatBuffer { bytes, groups } => {
                format!(
                    "a flat buffer in shared memory, for up to {bytes} bytes of a rank{}",
                    in_groups(*groups)
                )
            }
            GatesInfo::Absent { reason } => format!("none: {reason}"),
            other => format!("{other:?}"),
        },
    );
    lines.add(
        "rank",
        format!("{} of {}, {} on this node", info.rank, info.size, info.ranks_per_node),
    );
    lines.add("messages", info.wires());
    let place = joined(&info.coordinates, ",");
    lines.add("torus", format!("{} at ({place}), from {}", info.torus, info.torus_source));
    lines.add("node", format!("({}) in x, y, z, a, b, c", joined(&info.tofu_coordinates, ",")));
    lines.add("ports", format!("{}, driven by {}", info.ports, info.driven_by));
    lines.add("waiting", if info.own_cores { "spins" } else { "gives way" });
    lines.add("timeout", format!("{} s", info.timeout_seconds));
    lines.add(
        "registrations",
        info.registration_cache.as_ref().map_or_else(|| "not kept".to_owned(), CacheStats::policy),
    );
    if let Some(cache) = &info.registration_cache {
        let figures = format!(
            "{} made, {} ended, {} bytes copied instead; {} hits, {} misses, {} not kept, {} evicted, {} ended by events; {} regions of {} bytes",
            cache.registrations,
            cache.deregistrations,
            cache.staged_bytes,
            cache.hits,
            cache.misses,
            cache.uncached,
            cache.evictions,
            cache.invalidations,
            cache.registered_regions,
            cache.registered_bytes,
        );
        lines.add("", figures);
    }
    for (at, (name, value)) in info.environment.iter().enumerate() {
        lines.add(if at == 0 { "environment" } else { "" }, format!("{name}={value}"));
    }
    lines.0
}

struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{name:<14}{value}");
    }
}

/// The numbers of the TNIs, or `none`.
fn tnis(numbers: &[u16]) -> String {
    if numbers.is_empty() { "none".to_owned() } else { joined(numbers, " ") }
}

fn joined<T: ToString>(values: &[T], by: &str) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(by)
}
