//! The last level of caches, as the kernel lists it.

use std::fs;
use std::path::Path;

use hopbine_torus::sizes::parse_size;

use super::config::core_list;

/// Where the kernel lists the caches of each core.
pub(super) const LISTED: &str = "/sys/devices/system/cpu";

/// The last level of the caches of a core.
struct LastLevel {
    /// The cores that share it.
    sharers: Vec<usize>,
    bytes: Option<u64>,
}

impl LastLevel {
    fn of_core(listed: &Path, core: usize) -> Option<Self> {
        let caches = fs::read_dir(listed.join(format!("cpu{core}/cache"))).ok()?;
        let of_cache = |cache: fs::DirEntry| {
            let text = |name| fs::read_to_string(cache.path().join(name)).ok();
            let level: u32 = text("level")?.trim().parse().ok()?;
            let sharers = core_list(&text("shared_cpu_list")?)?;
            let bytes = text("size").as_deref().and_then(bytes);
            Some((level, LastLevel { sharers, bytes }))
        };
        let caches = caches.flatten().filter_map(of_cache);
        caches.max_by_key(|&(level, _)| level).map(|(_, last)| last)
    }
}

/// Bytes of a size as the kernel writes it, such as `32768K`.
fn bytes(size: &str) -> Option<u64> {
    let size = size.trim();
    let unit = if size.ends_with(['K', 'M']) { "iB" } else { "" };
    parse_size(&format!("{size}{unit}")).ok()
}

/// The first core of the last-level cache that all of `cores` share; `None` if they share none.
pub(super) fn shared_cache(listed: &Path, cores: &[usize]) -> Option<u64> {
    let LastLevel { sharers, .. } = LastLevel::of_core(listed, *cores.first()?)?;
    let first = *sharers.iter().min()?;
    cores.iter().all(|core| sharers.contains(core)).then_some(first as u64)
}

/// Bytes of the last level of caches for each of `n_ranks` ranks of this host that are spread evenly over its cores;
/// `cores` are those of this rank. `None` if the kernel does not list them.
pub(super) fn llc_bytes(cores: &[usize], n_ranks: usize) -> Option<u64> {
    share(Path::new(LISTED), cores, n_ranks)
}

fn share(listed: &Path, cores: &[usize], n_ranks: usize) -> Option<u64> {
    let LastLevel { sharers, bytes } = LastLevel::of_core(listed, *cores.first()?)?;
    let n_cores = core_list(&fs::read_to_string(listed.join("online")).ok()?)?.len();
    let ranks_of_cache = (n_ranks * sharers.len()).div_ceil(n_cores.max(1));
    Some(bytes? / ranks_of_cache.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_level_of_caches_is_found_and_shared() {
        let dir = std::env::temp_dir().join(format!("hopbine-caches-{}", std::process::id()));
        for (core, index, level, shared, size) in [
            (0, 0, "1", "0", "32K\n"),
            (0, 3, "3", "0-1", "32768K\n"),
            (1, 3, "3", "0-1\n", "32M"),
            (2, 2, "2", "2,7", "2X"),
            (3, 1, "x", "3", "1K"),
        ] {
            let cache = dir.join(format!("cpu{core}/cache/index{index}"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("level"), level).unwrap();
            fs::write(cache.join("shared_cpu_list"), shared).unwrap();
            fs::write(cache.join("size"), size).unwrap();
        }
        fs::write(dir.join("online"), "0-3\n").unwrap();
        let found: Vec<_> = (0..5).map(|core| shared_cache(&dir, &[core])).collect();
        let of = |cores: &[usize]| shared_cache(&dir, cores);
        let several = [of(&[0, 1]), of(&[1, 2]), of(&[3]), of(&[])];
        let share = |cores: &[usize], n_ranks| share(&dir, cores, n_ranks);
        let shares =
            [share(&[0], 1), share(&[1, 2], 4), share(&[1], 5), share(&[2], 1), share(&[], 1)];
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found, [Some(0), Some(0), Some(2), None, None]);
        assert_eq!(several, [Some(0), None, None, None]);
        // Two of four cores share 32 MiB: of four ranks two, of five up to three.
        let mib = |n: u64| Some(n << 20);
        assert_eq!(shares, [mib(32), mib(16), Some((32 << 20) / 3), None, None]);
    }

    #[test]
    fn sizes_of_caches_are_those_of_the_kernel() {
        let sizes = ["512", "48K", "2M", "", "K", "1G", "99999999999999999999K"];
        assert_eq!(
            sizes.map(bytes),
            [Some(512), Some(48 << 10), Some(2 << 20), None, None, None, None]
        );
    }
}
