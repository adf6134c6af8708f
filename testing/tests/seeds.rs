//! Runs the seeds of the fuzz targets. This test is not in the library's package, because the address sanitizer runs
//! it in every test run, and the library with its tests takes long to compile.

use std::path::Path;

/// Runs the seeds that are checked in: some for each target, and inputs that once failed.
#[test]
fn seeds_do_no_harm() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    for (name, play) in hopbine::fuzz::TARGETS {
        let files = std::fs::read_dir(seeds.join(name)).expect(name);
        let seeds = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        let played = seeds.map(|seed| play(&seed)).count();
        assert!(played > 0, "no seed of {name}");
    }
}
