//! What is installed, or built, with this command.

use std::path::{Path, PathBuf};

/// The directory of a library that was installed with this command, or built with it; `None` if there is none.
pub fn library_dir(library: &str) -> Option<PathBuf> {
    library_dir_of(std::env::current_exe().ok()?.parent()?, library)
}

/// As [`library_dir`], for a command in this directory: that directory, where cargo builds, or `lib` or `lib64` beside
/// it, or one of their subdirectories, which distributions have for each architecture.
fn library_dir_of(command: &Path, library: &str) -> Option<PathBuf> {
    let prefix = command.parent()?;
    let installed = ["lib", "lib64"].into_iter().flat_map(|name| {
        let lib = prefix.join(name);
        let below = std::fs::read_dir(&lib).into_iter().flatten().flatten();
        std::iter::once(lib).chain(below.map(|entry| entry.path()))
    });
    let built = [command.to_path_buf(), command.join("deps")];
    built.into_iter().chain(installed).find(|place| place.join(library).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_where_installations_have_it() {
        for place in ["bin", "bin/deps", "lib", "lib/aarch64-linux-gnu", "lib64", "lib64/hopbine"] {
            let prefix = tempfile::tempdir().unwrap();
            let (bin, place) = (prefix.path().join("bin"), prefix.path().join(place));
            std::fs::create_dir_all(&place).unwrap();
            assert_eq!(library_dir_of(&bin, "libx.so"), None);
            std::fs::write(place.join("libx.so"), "").unwrap();
            assert_eq!(library_dir_of(&bin, "libx.so"), Some(place));
        }
    }
}
