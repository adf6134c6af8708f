//! What the host can give: how much memory is left.
//!
//! Emulated ranks and the checker hold everything in one process; what is nothing to a rank
//! may be too much for the host, which would then kill the process without a word.

use super::error::CliError;

/// Refuses work that needs more memory than there is.
///
/// # Errors
/// [`CliError::Memory`] saying what would help.
pub fn check_memory(what: String, needed: u64, instead: &'static str) -> Result<(), CliError> {
    match available_memory() {
        Some(available) if needed > available => Err(CliError::Memory {
            what,
            needed_mib: needed >> 20,
            available_mib: available >> 20,
            instead,
        }),
        _ => Ok(()),
    }
}

/// Bytes that the host can still give, where it says so.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_host_has_is_refused() {
        assert!(check_memory("nothing".to_owned(), 0, "").is_ok());
        if available_memory().is_some() {
            let error = check_memory("all".to_owned(), u64::MAX, "use less").unwrap_err();
            assert!(error.to_string().ends_with("are available; use less"), "{error}");
        }
    }
}
