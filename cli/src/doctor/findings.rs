//! The findings of the checks, with advice.

use hopbine::{CacheMode, FreeQueues, GatesInfo, Info, Reading};
use hopbine_meet::variables::ALL;

use crate::info::in_groups;

/// The result of one check.
pub struct Finding {
    pub what: &'static str,
    pub verdict: Verdict,
    pub found: String,
    /// What to do; empty if nothing.
    pub advice: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No problem.
    Well,
    /// Calls work, but could be faster.
    Slow,
    /// Calls fail, or do not do what was requested.
    Wrong,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Well => "well",
            Verdict::Slow => "slow",
            Verdict::Wrong => "WRONG",
        }
    }
}

pub fn well(what: &'static str, found: impl Into<String>) -> Finding {
    Finding { what, verdict: Verdict::Well, found: found.into(), advice: String::new() }
}

pub fn slow(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what, verdict: Verdict::Slow, found: found.into(), advice: advice.into() }
}

pub fn wrong(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what, verdict: Verdict::Wrong, found: found.into(), advice: advice.into() }
}

/// Findings about the world of this job.
pub fn of_world(info: &Info) -> Vec<Finding> {
    vec![device(info), ranks(info), gates(info), registrations(info), reading(info), threads(info)]
}

fn device(info: &Info) -> Finding {
    let found = format!("{} ({})", info.backend, info.device.library);
    let tofu = info.tried.iter().find(|attempt| attempt.backend == "tofu");
    match (info.backend, tofu) {
        ("tofu", _) => {
            let device = &info.device;
            let tnis = device.onesided_tnis.len();
            well(
                "device",
                format!(
                    "{found}, uTofu {}, Tofu {}, {tnis} TNIs, {} of them with barrier gates",
                    device.utofu_version,
                    device.tofu_version,
                    device.barrier_tnis.len()
                ),
            )
        }
        (_, Some(attempt)) => well("device", format!("{found}; no Tofu: {}", attempt.reason)),
        (_, None) => well("device", found),
    }
}

/// The queues that are free after rank 0 has created its ports; None on wires without such queues.
pub fn queues(free: &[FreeQueues], ports: u32) -> Option<Finding> {
    let least = free.iter().map(|of_tni| of_tni.vcqs).min()?;
    let each = free
        .iter()
        .map(|FreeQueues { tni, vcqs, cqs, .. }| format!("TNI {tni}: {vcqs} on {cqs} CQs"));
    let each: Vec<String> = each.collect();
    let found =
        format!("{ports} taken, one for each port; VCQs free for rank 0: {}", each.join(", "));
    Some(match least {
        0 => slow(
            "queues",
            found,
            "start fewer ranks on each node, or set HOPBINE_PORTS lower: no VCQ is left for other software of this job",
        ),
        _ => well("queues", found),
    })
}

fn ranks(info: &Info) -> Finding {
    let found = format!("{}: {}", info.size, info.wires());
    match info.size {
        1 => slow(
            "ranks",
            found,
            "examine a job: mpiexec -n RANKS hopbine doctor, or hopbine launch -n RANKS hopbine doctor",
        ),
        _ => well("ranks", found),
    }
}

fn gates(info: &Info) -> Finding {
    match &info.gates {
        GatesInfo::Connected { tni, arrangement } => {
            well("short calls", format!("barrier gates, connected as {arrangement} on TNI {tni}"))
        }
        GatesInfo::FlatBuffer { bytes, groups } => well(
            "short calls",
            format!("a flat buffer in shared memory, up to {bytes} bytes{}", in_groups(*groups)),
        ),
        GatesInfo::Absent { reason } if info.backend == "tofu" && info.size > 1 => slow(
            "short calls",
            format!("no barrier gates: {reason}"),
            "read on barrier gates in docs/fugaku.md",
        ),
        GatesInfo::Absent { reason } => well("short calls", format!("by messages: {reason}")),
        other => well("short calls", format!("{other:?}")),
    }
}

fn registrations(info: &Info) -> Finding {
    let what = "registrations";
    let Some(cache) = &info.registration_cache else {
        return well(what, "none: this backend registers no memory");
    };
    match &cache.mode {
        CacheMode::Events { source } => {
            well(what, format!("kept between calls; freed memory is noticed by {source}"))
        }
        mode @ CacheMode::Trusted { .. } => well(what, mode.to_string()),
        CacheMode::NoEvents { .. } => slow(
            what,
            cache.policy(),
            "use persistent collectives, or register buffers with hopbine_register()",
        ),
        other => slow(what, format!("{other:?}"), "leave HOPBINE_REG_CACHE unset"),
    }
}

fn reading(info: &Info) -> Finding {
    let what = "ranks of a node";
    match &info.memory_reading {
        Reading::Off { reason } => slow(
            what,
            format!("long messages are copied twice: {reason}"),
            "ask the system's administrator for kernel.yama.ptrace_scope=0",
        ),
        Reading::On => well(what, "read each other's memory"),
        Reading::Unused => well(what, "one rank on this node, or no shared memory"),
        other => well(what, format!("{other:?}")),
    }
}

fn threads(info: &Info) -> Finding {
    let found = format!("{} ports, driven by {}", info.ports, info.driven_by);
    match info.own_cores {
        true => well("cores", found),
        false => slow(
            "cores",
            format!("{found}; waiting threads yield, since there are more ranks than cores"),
            "start at most as many ranks on a node as it has cores",
        ),
    }
}

/// Reports `HOPBINE_` variables that do not exist: a misspelt name would otherwise have no effect and no message.
pub fn of_variables() -> Vec<Finding> {
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("HOPBINE_"))
        .collect();
    names.sort();
    let (known, unknown): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| ALL.iter().any(|variable| variable.name == *name));
    let found = match known.is_empty() {
        true => "no HOPBINE_ variable is set".to_owned(),
        false => known.join(", "),
    };
    let mut all = vec![well("variables", found)];
    all.extend(unknown.into_iter().map(|name| {
        wrong("variables", format!("hopbine has no variable {name}"), "see the list of hopbine env")
    }));
    all
}
