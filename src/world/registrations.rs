//! Settings of the registration cache.

use std::num::NonZeroU32;

use hopbine_meet::variables::{
    Lookup, REG_CACHE, REG_CACHE_MAX_BYTES, REG_CACHE_MAX_REGIONS, STAGE_BYTES,
};

use crate::comm::choice::tuning::Tuning;
use crate::error::Error;
use crate::memory::{CacheConfig, KeepRule};

/// The settings of the registration cache in the environment; the staging limit is by default that of the decision
/// table.
///
/// # Errors
/// [`Error::Setting`].
pub(super) fn parse_cache(get: Lookup<'_>, table: &Tuning) -> Result<CacheConfig, Error> {
    let keep = match REG_CACHE.switch_or_word(get, true)? {
        Some(false) => KeepRule::Off,
        Some(true) => KeepRule::Events,
        None => KeepRule::Trust,
    };
    let max_bytes = REG_CACHE_MAX_BYTES.number(get)?;
    let max_regions = REG_CACHE_MAX_REGIONS.number(get)?.and_then(NonZeroU32::new);
    let max_regions = max_regions.unwrap_or(CacheConfig::default().max_regions);
    let stage_bytes = STAGE_BYTES.number(get)?.unwrap_or_else(|| stage_bytes(table));
    Ok(CacheConfig { keep, max_bytes, max_regions, stage_bytes })
}

/// The most bytes that a call copies to avoid two registrations, by a table.
pub(super) fn stage_bytes(table: &Tuning) -> u64 {
    table.table().stage_bytes().unwrap_or(CacheConfig::default().stage_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_of_the_cache_are_read_or_refused_by_name() {
        let with = |value: &str, name: &str| {
            let name = format!("HOPBINE_REG_CACHE{name}");
            let get = |asked: &str| (asked == name).then(|| value.to_owned());
            let config = parse_cache(&get, Tuning::tofu_d());
            config.map_err(|error| assert!(error.to_string().contains(&name), "{error}"))
        };
        let default = CacheConfig::default();
        let max_regions = NonZeroU32::new(7).unwrap();
        assert_eq!(with("7", "_UNKNOWN"), Ok(default));
        assert_eq!(with("1", ""), Ok(default));
        assert_eq!(with("0", ""), Ok(CacheConfig { keep: KeepRule::Off, ..default }));
        assert_eq!(with("trust", ""), Ok(CacheConfig { keep: KeepRule::Trust, ..default }));
        let bytes = CacheConfig { max_bytes: Some(1 << 32), ..default };
        assert_eq!(with("4294967296", "_MAX_BYTES"), Ok(bytes));
        assert_eq!(with("7", "_MAX_REGIONS"), Ok(CacheConfig { max_regions, ..default }));
        for (value, name) in [("maybe", ""), ("", ""), ("1k", "_MAX_BYTES"), ("0", "_MAX_REGIONS")]
        {
            assert_eq!(with(value, name), Err(()));
        }
        assert!(with("18446744073709551616", "_MAX_BYTES").is_err());
        assert!(with("4294967296", "_MAX_REGIONS").is_err());
    }

    #[test]
    fn what_is_copied_is_said_by_the_environment_or_else_the_table() {
        let table = |key: &str| {
            let head =
                "version = 1\nname = \"mine\"\nwire = \"network\"\notherwise = \"network\"\n";
            format!("{head}{key}").parse::<Tuning>().unwrap()
        };
        let [unsaid, said, none] = ["", "stage_bytes = \"2MiB\"", "stage_bytes = 0"].map(table);
        let default = CacheConfig::default().stage_bytes;
        let of = |table: &Tuning, value: Option<&str>| {
            let get = |asked: &str| value.filter(|_| asked == STAGE_BYTES.name).map(str::to_owned);
            parse_cache(&get, table).map(|config| config.stage_bytes).unwrap()
        };
        for (table, by_itself) in [(&unsaid, default), (&said, 2 << 20), (&none, 0)] {
            assert_eq!(of(table, None), by_itself);
            assert_eq!(of(table, Some("4096")), 4096);
        }
        assert_ne!(default, 2 << 20);
    }

    proptest! {
        /// Whatever the environment says, the answer is settings or an error that names the variable.
        #[test]
        fn no_setting_does_harm(text in "[0-9]{0,21}|-?[0-9.]{0,9}e?[0-9]{0,4}|[a-z]{0,8}|\\PC{0,8}") {
            if let Err(error) = parse_cache(&|_| Some(text.clone()), Tuning::tofu_d()) {
                let said = error.to_string();
                prop_assert!(said.starts_with("HOPBINE_REG_CACHE"), "{}", said);
                prop_assert!(said.contains("it must be"), "{}", said);
            }
        }
    }
}
