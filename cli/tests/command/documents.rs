//! Tests of the documents: every command in them, links, pictures, lengths.
//!
//! A shell block runs with the build that this test is part of, not with the release build that the block asks for,
//! which would take minutes. For a `cargo build` the test checks that it would build what the block uses
//! afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopbine_testing::cores::one_core;
use hopbine_testing::processes::OutputInTime;

/// First lines of blocks that are not run here, with the reason.
const NOT_RUN: [(&str, &str); 2] = [
    ("./test.sh", "this test is a part of it"),
    ("cargo build --release --features mpi", "ci/mpi.sh does the same, where there is MPI"),
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The shell blocks of a document.
pub(super) fn blocks(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    assert!(!text.contains("```bash") && !text.contains("```console"), "{document}: say ```sh");
    let begins = text.split("```sh\n").skip(1);
    begins.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Directory of the build that this test is part of, for instance `target/debug`.
fn build() -> PathBuf {
    let hopbine = Path::new(env!("CARGO_BIN_EXE_hopbine"));
    hopbine.parent().unwrap().to_owned()
}

/// The block without its cargo commands: `cargo run` becomes the built command, `cargo build` is checked.
fn without_cargo(document: &str, block: &str) -> String {
    let mut rest = String::new();
    for line in block.lines() {
        if let Some(args) = line.strip_prefix("cargo run --release -- ") {
            rest.push_str(&format!("hopbine {args}\n"));
        } else if let Some(args) = line.strip_prefix("cargo build --release ") {
            let args: Vec<&str> = args.split_whitespace().collect();
            let says = |flag| args.contains(&flag);
            // Without any of these flags cargo builds libraries and programs; with some of them it builds only
            // those targets.
            let chosen = ["--bins", "--examples", "--lib"].into_iter().any(says);
            let builds_bins = !chosen || says("--bins");
            let builds_all = says("--workspace");
            let capi = args.windows(2).any(|pair| pair == ["-p", "utofu-emu-capi"]);
            let complain = |what: &str| panic!("{document}: `{line}` does not build {what}");
            if block.contains("target/release/hopbine") && !(builds_bins && builds_all) {
                complain("the command");
            }
            if block.contains("target/release/examples/") && !says("--examples") {
                complain("the examples");
            }
            if block.contains("-ltofucom_emu") && (chosen || !(builds_all || capi)) {
                complain("the device's C library");
            }
        } else {
            assert!(!line.starts_with("cargo "), "{document}: this test does not know `{line}`");
            rest.push_str(line);
            rest.push('\n');
        }
    }
    rest
}

/// Runs the blocks of a document in sequence, in a directory with the project's sources and this build.
fn run(document: &str, blocks: &[String]) {
    let directory = tempfile::tempdir().unwrap();
    let link = |from: &Path, to: &str| {
        std::os::unix::fs::symlink(from, directory.path().join(to)).unwrap();
    };
    link(&root().join("sys"), "sys");
    link(&root().join("examples"), "examples");
    let release = directory.path().join("target/release");
    std::fs::create_dir_all(&release).unwrap();
    for entry in std::fs::read_dir(build()).unwrap().flatten() {
        link(&entry.path(), &format!("target/release/{}", entry.file_name().to_string_lossy()));
    }
    // A test build has its C libraries only in the directory of dependencies.
    let libraries = build().join("deps");
    if !release.join("libtofucom_emu.so").exists() {
        link(&libraries.join("libtofucom_emu.so"), "target/release/libtofucom_emu.so");
    }
    let _core = one_core();
    for block in blocks {
        let script = without_cargo(document, block);
        let script = format!("set -e\nPATH={}:$PATH\n{script}", release.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(directory.path());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HOPBINE_")) {
            command.env_remove(name);
        }
        command.env("LIBRARY_PATH", &libraries).env("LD_LIBRARY_PATH", &libraries);
        let output = command.output_in_time();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(output.status.success(), "{document}: {}\n{script}\n{text}", output.status);
    }
}

fn run_all(document: &str, at_least: usize) {
    let blocks = blocks(document);
    assert!(blocks.len() >= at_least, "{document} has {} blocks", blocks.len());
    let is_run =
        |block: &String| !NOT_RUN.iter().any(|(command, _)| block.trim().starts_with(command));
    run(document, &blocks.into_iter().filter(is_run).collect::<Vec<_>>());
}

#[test]
fn the_readmes_commands_work() {
    run_all("README.md", 3);
}

#[test]
#[ignore = "takes long: cargo test -p hopbine-cli --test command -- --ignored"]
fn the_guides_commands_work() {
    for (page, at_least) in
        [("command", 2), ("rust", 1), ("emulator", 1), ("clusters", 1), ("trace", 2)]
    {
        run_all(&format!("docs/guide/{page}.md"), at_least);
    }
}

#[test]
fn the_c_examples_commands_work() {
    run_all("examples/utofu-c/README.md", 2);
}

/// Commands inside a sentence, such as `hopbine list --torus 5x7`.
#[test]
fn commands_within_texts_work() {
    let mut commands = vec![];
    for document in
        ["README.md", "docs/algorithms.md", "docs/guide/command.md", "examples/utofu-c/README.md"]
    {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        // Every second part is a code span; blocks have been removed.
        let outside: String = text.split("```").step_by(2).collect();
        for span in outside.split('`').skip(1).step_by(2) {
            let words: Vec<&str> = span.split_whitespace().collect();
            // A name alone is only a mention; `launch` needs a program.
            let is_whole = matches!(words[..], ["hopbine", "list" | "info"])
                || matches!(words[..], ["hopbine", command, _, ..] if command != "launch");
            if is_whole {
                commands.push(span.to_owned());
            }
        }
    }
    assert!(commands.len() >= 2, "{commands:?}");
    run("text", &commands);
}

/// Paths of all pages for readers.
fn pages() -> Vec<String> {
    let mut pages = vec![];
    for directory in ["", "docs/", "docs/guide/", "examples/utofu-c/"] {
        for entry in std::fs::read_dir(root().join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                pages.push(format!("{directory}{name}"));
            }
        }
    }
    pages
}

fn text_of(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

/// The anchor of a heading in GitHub and mdBook.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The targets of a page's links, without links to other sites.
fn links(text: &str) -> Vec<String> {
    let outside: String = text.split("```").step_by(2).collect();
    let targets = outside.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut found = 0;
    for page in pages() {
        let text = text_of(&page);
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = root().join(&page).parent().unwrap().join(file);
            let target = if file.is_empty() { root().join(&page) } else { target };
            assert!(target.exists(), "{page}: nothing is at {link}");
            if page.starts_with("docs/") {
                let target = target.canonicalize().unwrap();
                let book = root().join("docs").canonicalize().unwrap();
                assert!(target.starts_with(book), "{page}: {link} leads out of the book");
            }
            if !heading.is_empty() {
                let there = std::fs::read_to_string(&target).unwrap();
                let mut headings = there.lines().filter(|line| line.starts_with('#'));
                let is_there =
                    headings.any(|line| anchor(line.trim_start_matches('#').trim()) == heading);
                assert!(is_there, "{page}: {file} has no heading for {link}");
            }
            found += 1;
        }
    }
    assert!(found > 50, "{found} links");
}

/// The book lists every page, and no page is too long.
#[test]
fn pages_are_listed_and_short() {
    let summary = links(&text_of("docs/SUMMARY.md"));
    for page in pages() {
        let most = if page == "README.md" { 150 } else { 400 };
        let text = text_of(&page);
        let lines = text.lines().count();
        assert!(lines <= most, "{page} has {lines} lines");
        // mdBook and rustdoc take a block without a language for Rust.
        let mut fences = text.lines().filter(|line| line.starts_with("```")).step_by(2);
        assert!(fences.all(|line| line != "```"), "{page}: a block of code names no language");
        if let Some(name) = page.strip_prefix("docs/").filter(|name| *name != "SUMMARY.md") {
            assert!(summary.iter().any(|link| link == name), "docs/SUMMARY.md lacks {name}");
        }
    }
}

#[test]
fn the_readmes_picture_is_the_commands() {
    let plan = "plan allreduce --torus 8x8 --rank 27 --algorithm bine --format svg";
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopbine"));
    let output = command.args(plan.split(' ')).output_in_time();
    assert!(output.status.success());
    let picture = text_of("docs/pictures/allreduce-8x8.svg");
    assert!(String::from_utf8(output.stdout).unwrap() == picture, "hopbine {plan} draws another");
}

/// The README's program in C compiles, without a warning.
#[test]
fn the_readmes_c_compiles() {
    let text = text_of("README.md");
    let program = text.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("readme.c");
    std::fs::write(&file, program).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Werror", "-fsyntax-only", "-I"]).arg(root().join("include"));
    let output = cc.arg(&file).output_in_time();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
