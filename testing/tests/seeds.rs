//! The seeds of the fuzz targets. They are no test of the library's own so that the address sanitizer can play them in every
//! test run: the library with its tests takes long to compile.

use std::path::Path;

/// Those that are checked in: some of each target's, and what has failed once.
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
