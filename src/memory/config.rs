//! Configuration of a registration cache, and its environment variables.

use std::num::NonZeroU32;

use thiserror::Error;

/// Default of [`CacheConfig::max_regions`]: well below the 6144 registrations that
/// one command queue of Tofu hands out, as several caches may share a queue.
const DEFAULT_REGIONS: NonZeroU32 = NonZeroU32::new(1024).expect("not zero");

/// Most regions a cache may be configured for.
const MOST_REGIONS: u32 = 1 << 20;

/// How a registration cache behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Keep registrations by itself. Without, every call registers and releases what the user
    /// has not registered.
    pub enabled: bool,
    /// Most bytes to keep registered; `None`: as many as the regions have.
    pub max_bytes: Option<u64>,
    /// Most regions to keep registered, at most 2^20.
    pub max_regions: NonZeroU32,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { enabled: true, max_bytes: None, max_regions: DEFAULT_REGIONS }
    }
}

/// A setting that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}={value:?} is not {valid}")]
pub struct ConfigError {
    /// Name of the variable.
    pub name: &'static str,
    /// What it holds.
    pub value: String,
    /// What it can be.
    pub valid: &'static str,
}

impl CacheConfig {
    /// Name of the variable that switches the cache on (`1`) or off (`0`).
    pub const ENABLED: &'static str = "HOPBINE_REG_CACHE";
    /// Name of the variable that limits the registered bytes.
    pub const MAX_BYTES: &'static str = "HOPBINE_REG_CACHE_MAX_BYTES";
    /// Name of the variable that limits the number of regions.
    pub const MAX_REGIONS: &'static str = "HOPBINE_REG_CACHE_MAX_REGIONS";

    /// The defaults, changed by what the environment says.
    ///
    /// # Errors
    /// [`ConfigError`] for the first variable that cannot be understood.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    /// The defaults, changed by what `lookup` answers for the three names.
    ///
    /// # Errors
    /// As [`CacheConfig::from_env`].
    pub fn from_lookup(
        lookup: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let refused = |name, value, valid| Err(ConfigError { name, value, valid });
        if let Some(value) = lookup(Self::ENABLED) {
            config.enabled = match value.as_str() {
                "0" => false,
                "1" => true,
                _ => return refused(Self::ENABLED, value, "0 (off) or 1 (on)"),
            };
        }
        if let Some(value) = lookup(Self::MAX_BYTES) {
            match value.parse() {
                Ok(bytes) if bytes > 0 => config.max_bytes = Some(bytes),
                _ => {
                    let valid = "a number of bytes from 1 to 2^64-1; unset it for no limit";
                    return refused(Self::MAX_BYTES, value, valid);
                }
            }
        }
        if let Some(value) = lookup(Self::MAX_REGIONS) {
            match value.parse::<NonZeroU32>() {
                Ok(regions) if regions.get() <= MOST_REGIONS => config.max_regions = regions,
                _ => {
                    let valid = "a number of regions from 1 to 2^20";
                    return refused(Self::MAX_REGIONS, value, valid);
                }
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> Result<CacheConfig, ConfigError> {
        CacheConfig::from_lookup(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn settings_are_read() {
        assert_eq!(CacheConfig::from_lookup(|_| None), Ok(CacheConfig::default()));
        assert!(!with(CacheConfig::ENABLED, "0").unwrap().enabled);
        assert!(with(CacheConfig::ENABLED, "1").unwrap().enabled);
        let config = with(CacheConfig::MAX_BYTES, "4294967296").unwrap();
        assert_eq!(config.max_bytes, Some(1 << 32));
        let config = with(CacheConfig::MAX_REGIONS, "7").unwrap();
        assert_eq!(config.max_regions.get(), 7);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let error = with(CacheConfig::ENABLED, "yes").unwrap_err();
        assert_eq!(error.to_string(), "HOPBINE_REG_CACHE=\"yes\" is not 0 (off) or 1 (on)");
        for value in ["", "0", "-1", "1k", "18446744073709551616"] {
            let error = with(CacheConfig::MAX_BYTES, value).unwrap_err();
            assert_eq!(error.name, CacheConfig::MAX_BYTES, "{value}");
        }
        for value in ["", "0", "-1", "1048577"] {
            let error = with(CacheConfig::MAX_REGIONS, value).unwrap_err();
            assert_eq!(error.name, CacheConfig::MAX_REGIONS, "{value}");
        }
    }
}
