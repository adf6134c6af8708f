//! Tests `libhopbine_preload.so` with programs linked to stand-ins for MPI libraries: which kind of MPI it finds,
//! that calls with their arguments reach the library that serves them, and what it prints if there is none. Tests
//! with real MPIs: ci/mpi.sh, ci/mpis.sh.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use hopbine_testing::processes::run;
use tempfile::TempDir;

const FAMILIES: [(&str, &str, &str, &str); 3] = [
    ("openmpi", "libmpi.so.40", "OMPI_C_MPI_DUP_FN", "Open MPI"),
    ("mpich", "libmpi.so.12", "MPIR_Dup_fn", "MPICH"),
    ("abi", "libmpi_abi.so.1", "PMPI_Abi_get_version", "an MPI of the standard ABI"),
];
const PASSED: &str = "MPI's: 1 2 3 4 5 6 7 8 -9\nMPI's: 2 2 3 4 5 6 7 8 -9\n";

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A directory with the preload library and an MPI.
struct Place {
    directory: TempDir,
    mpi: &'static str,
    function: Option<&'static str>,
}

/// The preload library, which is the same for all kinds of MPI.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libhopbine_preload.so");
    let files = ["preload", "mpi", "slots"].map(|name| source(&format!("preload/{name}.c")));
    let shared = ["-fPIC", "-fvisibility=hidden", "-shared"];
    compile(&library, &shared, &files.each_ref().map(PathBuf::as_path));
    library
});

fn compile(made: &Path, options: &[&str], sources: &[&Path]) {
    let mut command = Command::new("gcc");
    command.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]).args(options).args(sources);
    command.arg("-o").arg(made).args(["-ldl", "-lpthread"]);
    let outcome = run(&mut command);
    assert!(outcome.status.success(), "{}", outcome.stderr);
}

impl Place {
    fn new(mpi: &'static str, function: Option<&'static str>) -> Self {
        let place = Place { directory: tempfile::tempdir().expect("a directory"), mpi, function };
        let library = "libhopbine_preload.so";
        std::fs::copy(&*LIBRARY, place.path(library)).expect("can be copied");
        place.shared(mpi, "mpi.c", &[&format!("-Wl,-soname,{mpi}")]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn compile(&self, name: &str, options: &[&str], sources: &[&Path]) {
        let family = self.function.map(|name| format!("-DFAMILY_FUNCTION={name}"));
        let options: Vec<&str> = options.iter().copied().chain(family.as_deref()).collect();
        compile(&self.path(name), &options, sources);
    }

    fn shared(&self, name: &str, from: &str, options: &[&str]) {
        let options: Vec<&str> = ["-fPIC", "-shared"].iter().chain(options).copied().collect();
        self.compile(name, &options, &[&source(&format!("tests/preload/{from}"))]);
    }

    /// Adds, for every kind, a library that cannot be loaded.
    fn add_broken_kinds(&self) {
        for (kind, ..) in FAMILIES {
            let directory = self.path("hopbine").join(kind);
            std::fs::create_dir_all(&directory).expect("can be made");
            std::fs::write(directory.join("libhopbine_mpi.so"), "torn").expect("can be written");
        }
    }

    /// Adds the library that serves the calls of `kind`.
    fn add_variant(&self, kind: &str) {
        let directory = self.path("hopbine").join(kind);
        std::fs::create_dir_all(&directory).expect("can be made");
        self.shared(&format!("hopbine/{kind}/libhopbine_mpi.so"), "variant.c", &[]);
    }

    /// Runs a program that is linked to the MPI, or whose extension is linked to it; returns the exit code and the
    /// output.
    fn run(&self, is_extension: bool, options: &[&str]) -> (Option<i32>, String) {
        let (calls, main) = (source("tests/preload/calls.c"), source("tests/preload/main.c"));
        let to_mpi = [&self.path(self.mpi).display().to_string()[..], "-Wl,-rpath,$ORIGIN"];
        let linked: Vec<&str> =
            ["-Wl,--no-as-needed"].iter().chain(&to_mpi).chain(options).copied().collect();
        if is_extension {
            let linked: Vec<&str> = ["-fPIC", "-shared"].iter().chain(&linked).copied().collect();
            self.compile("extension.so", &linked, &[&calls]);
            self.compile("program", &["-DEXTENSION"], &[&main]);
        } else {
            self.compile("program", &linked, &[&calls, &main]);
        }
        let mut command = Command::new(self.path("program"));
        command
            .arg(self.path("extension.so"))
            .env("LD_PRELOAD", self.path("libhopbine_preload.so"));
        for rank in ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"] {
            command.env_remove(rank);
        }
        let outcome = run(&mut command);
        (outcome.status.code(), outcome.text())
    }
}

#[test]
fn each_mpi_gets_what_was_built_for_its_kind() {
    for (kind, file, function, _) in FAMILIES {
        for is_extension in [false, true] {
            let place = Place::new(file, Some(function));
            // The libraries for other kinds are not opened.
            place.add_broken_kinds();
            place.add_variant(kind);
            let served = PASSED.replace("MPI's", "served\nMPI's");
            assert_eq!(place.run(is_extension, &[]), (Some(0), served), "{kind}, {is_extension}");
        }
    }
}

#[test]
fn without_a_build_for_it_mpi_serves_and_one_line_says_so() {
    for (kind, file, function, name) in FAMILIES {
        for is_extension in [false, true] {
            let place = Place::new(file, Some(function));
            let (code, said) = place.run(is_extension, &[]);
            assert_eq!(code, Some(0), "{kind}, {is_extension}: {said}");
            let line = said.strip_prefix(PASSED).unwrap_or_else(|| panic!("{kind}: {said}"));
            assert!(line.starts_with(&format!("hopbine: the program has {name} (")), "{line}");
            assert!(
                line.contains(file) && line.contains(&format!("{kind}/libhopbine_mpi.so")),
                "{line}"
            );
            assert!(
                line.ends_with("MPI serves all calls\n") && line.matches('\n').count() == 1,
                "{line}"
            );
        }
    }
}

#[test]
fn what_cannot_be_loaded_is_passed_over() {
    let (_, file, function, _) = FAMILIES[0];
    let place = Place::new(file, Some(function));
    place.add_broken_kinds();
    let (code, said) = place.run(false, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with(PASSED) && said.contains("cannot be loaded"), "{said}");
}

#[test]
fn an_mpi_of_no_known_kind_serves_its_program() {
    let place = Place::new("libmpi_other.so.1", None);
    place.add_broken_kinds();
    let (code, said) = place.run(false, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with(PASSED) && said.contains("of no kind that hopbine knows"), "{said}");
}

/// Builds MPI's Fortran procedures and a library that calls one twice; returns the path of the former, and the option
/// by which the program loads the latter after its first call.
fn with_procedures(place: &Place) -> [String; 2] {
    place.shared("libprocedures.so", "late.c", &["-DPROCEDURES", "-Wl,-soname,libprocedures.so"]);
    let procedures = place.path("libprocedures.so").display().to_string();
    let linked = ["-Wl,--no-as-needed", &procedures, "-Wl,-rpath,$ORIGIN"];
    place.shared("late.so", "late.c", &linked);
    let late = format!("-DLATE=\"{}\"", place.path("late.so").display());
    [procedures, late]
}

/// MPI's Fortran procedures that a library brings which is loaded after the first call.
#[test]
fn procedures_that_come_late_are_found() {
    let (kind, file, function, _) = FAMILIES[0];
    for is_served in [false, true] {
        let place = Place::new(file, Some(function));
        if is_served {
            place.add_variant(kind);
        }
        let [_, late] = with_procedures(&place);
        let (code, said) = place.run(false, &[&late]);
        assert_eq!(code, Some(0), "{is_served}: {said}");
        assert_eq!(said.matches("Fortran's barrier\n").count(), 2, "{is_served}: {said}");
    }
}

/// A tool that interposes MPI's Fortran procedures gets the calls only if hopbine serves none.
#[test]
fn the_procedures_are_those_of_mpi_and_not_of_a_tool() {
    let (kind, file, function, _) = FAMILIES[0];
    for (is_served, expected) in [(false, "a tool's barrier\n"), (true, "Fortran's barrier\n")] {
        let place = Place::new(file, Some(function));
        if is_served {
            place.add_variant(kind);
        }
        let [procedures, late] = with_procedures(&place);
        place.shared("libtool.so", "late.c", &["-DTOOL", "-Wl,-soname,libtool.so"]);
        let tool = place.path("libtool.so").display().to_string();
        let (code, said) = place.run(false, &[&tool, &procedures, &late]);
        assert_eq!(code, Some(0), "{is_served}: {said}");
        assert_eq!(said.matches(expected).count(), 2, "{is_served}: {said}");
        assert_eq!(said.matches("barrier\n").count(), 2, "{is_served}: {said}");
    }
}

#[test]
fn a_call_that_mpi_does_not_have_is_named() {
    let (_, file, function, _) = FAMILIES[1];
    let place = Place::new(file, Some(function));
    let (code, said) = place.run(false, &["-DMISSING"]);
    assert_eq!(code, None, "{said}");
    assert!(said.contains("the program calls MPI_Barrier, which its MPI"), "{said}");
}
