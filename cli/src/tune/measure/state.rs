//! Measurements so far, in a file beside the table, from which an interrupted command continues.

use std::path::{Path, PathBuf};

use hopbine_torus::Collective;
use serde::{Deserialize, Serialize};

use super::cell::CellResult;
use super::staging::StagingRatios;
use crate::args;
use crate::error::CliError;
use crate::output::{open_part, part_path, replace_part};

/// The measurements and their file, which is replaced as a whole.
pub struct MeasureState {
    path: PathBuf,
    saved: SavedState,
}

#[derive(Serialize, Deserialize)]
struct SavedState {
    /// All settings that the measurements depend on, as text.
    of: String,
    found: Vec<CellResult>,
    staging: Option<StagingRatios>,
}

impl MeasureState {
    /// Reads the measurements for the table in this file; empty if there are none yet.
    ///
    /// # Errors
    /// [`CliError::Read`]; [`CliError::Text`] if the file is invalid, or was measured with other settings.
    pub fn of(table: &Path, settings: &str) -> Result<Self, CliError> {
        let path = part_path(table);
        let fresh = SavedState { of: settings.to_owned(), found: Vec::new(), staging: None };
        let text = open_part(&path).and_then(|file| file.map(args::whole).transpose());
        let text = text.map_err(|source| CliError::Read { path: path.clone(), source })?;
        let Some(text) = text else { return Ok(MeasureState { path, saved: fresh }) };
        let wrong = |message: String| CliError::Text { path: path.clone(), message };
        let saved: SavedState = serde_json::from_str(&text).map_err(|error| {
            wrong(format!(
                "it does not hold measurements of `hopbine tune` ({error}); remove it to start again"
            ))
        })?;
        if saved.of != settings {
            let message = format!(
                "it was measured with {}, not with {settings}; remove it to start again",
                saved.of
            );
            return Err(wrong(message));
        }
        Ok(MeasureState { path, saved })
    }

    /// Whether a call has been measured.
    pub fn has(&self, collective: Collective, bytes: u64) -> bool {
        self.of_call(collective, bytes).is_some()
    }

    /// The result for a call.
    pub fn of_call(&self, collective: Collective, bytes: u64) -> Option<&CellResult> {
        let is_it =
            |found: &&CellResult| (&*found.collective, found.bytes) == (collective.name(), bytes);
        self.saved.found.iter().find(is_it)
    }

    /// All results.
    pub fn found(&self) -> &[CellResult] {
        &self.saved.found
    }

    /// Adds a result and writes the file.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn add(&mut self, found: CellResult) -> Result<(), CliError> {
        self.saved.found.push(found);
        self.write()
    }

    /// The measurements of copies.
    pub fn staging(&self) -> Option<&StagingRatios> {
        self.saved.staging.as_ref()
    }

    /// Sets the measurements of copies and writes the file.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn set_staging(&mut self, found: StagingRatios) -> Result<(), CliError> {
        self.saved.staging = Some(found);
        self.write()
    }

    fn write(&self) -> Result<(), CliError> {
        replace_part(&self.path, serde_json::to_string(&self.saved).expect("numbers and texts"))
    }

    /// Removes the file, since all measurements are complete.
    pub fn finish(self) {
        // If the file remains, the next command finds all measurements in it.
        let _ = std::fs::remove_file(self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_interrupted_goes_on_with_the_same_settings() {
        let directory = tempfile::tempdir().unwrap();
        let table = directory.path().join("mine.toml");
        let found = |bytes| CellResult {
            collective: "bcast".to_owned(),
            bytes,
            timed: Vec::new(),
            faster: None,
            wrong: Vec::new(),
        };
        let mut state = MeasureState::of(&table, "4 ranks").unwrap();
        state.add(found(8)).unwrap();
        state.add(found(64)).unwrap();
        state.set_staging(StagingRatios::default()).unwrap();
        let again = MeasureState::of(&table, "4 ranks").unwrap();
        assert!(again.has(Collective::Bcast, 64) && !again.has(Collective::Bcast, 512));
        assert!(!again.has(Collective::Reduce, 64));
        assert_eq!((again.found().len(), again.staging()), (2, Some(&StagingRatios::default())));
        let refused = MeasureState::of(&table, "5 ranks").map(drop).unwrap_err().to_string();
        assert!(
            refused.contains("mine.toml.part: it was measured with 4 ranks, not with 5"),
            "{refused}"
        );
        again.finish();
        assert!(MeasureState::of(&table, "5 ranks").unwrap().found().is_empty());
        std::fs::write(directory.path().join("mine.toml.part"), "{").unwrap();
        let refused = MeasureState::of(&table, "5 ranks").map(drop).unwrap_err().to_string();
        assert!(refused.contains("remove it to start again"), "{refused}");
    }

    /// Another user may put a link or a pipe into a shared directory, also before the first measurement is kept.
    #[test]
    fn what_is_no_file_is_neither_read_nor_written() {
        let directory = tempfile::tempdir().unwrap();
        let [table, target] = ["mine.toml", "target"].map(|name| directory.path().join(name));
        let part = part_path(&table);
        let mut state = MeasureState::of(&table, "4 ranks").unwrap();
        state.set_staging(StagingRatios::default()).unwrap();
        std::fs::rename(&part, &target).unwrap();
        let before = std::fs::read(&target).unwrap();
        std::os::unix::fs::symlink(&target, &part).unwrap();
        state.saved.of.push_str(" or more");
        assert!(state.write().is_err() && MeasureState::of(&table, "4 ranks").is_err());
        assert_eq!(std::fs::read(&target).unwrap(), before);
        assert!(part.is_symlink());
        std::fs::remove_file(&part).unwrap();
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, &part, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = MeasureState::of(&table, "4 ranks").map(drop).unwrap_err().to_string();
        assert!(refused.contains("mine.toml.part: it is not a regular file"), "{refused}");
    }
}
