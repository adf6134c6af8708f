//! The kernel's page sizes: registrations cover whole pages, and large pages make them cheaper.

use super::findings::{Finding, slow, well};
use crate::host::meminfo;

/// Findings about the pages of this host.
pub fn findings() -> Vec<Finding> {
    let base = rustix::param::page_size();
    let transparent = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let transparent = transparent.ok().and_then(|text| {
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    });
    let huge = match (meminfo("HugePages_Total"), meminfo("Hugepagesize")) {
        (Some(total @ 1..), Some(size)) => {
            let free = meminfo("HugePages_Free").unwrap_or(0);
            format!("{total} huge pages of {size} KiB, {free} free")
        }
        _ => "no huge pages are reserved".to_owned(),
    };
    let found = format!(
        "{} KiB; {huge}; transparent huge pages: {}",
        base >> 10,
        transparent.as_deref().unwrap_or("unknown")
    );
    let mut all = vec![well("pages", found)];
    // Fujitsu's library for large pages; without it each registration pins more and smaller pages.
    let of_fujitsu = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .find(|(name, value)| name == "XOS_MMM_L_HPAGE_TYPE" && value == "none");
    if let Some((name, value)) = of_fujitsu {
        all.push(slow("pages", format!("{name}={value}"), "unset it on Fugaku"));
    }
    all
}
