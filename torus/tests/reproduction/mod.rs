//! The papers' statements about traffic, computed from the plans of all ranks and written to
//! `docs/reproduction.md`; the tests also assert every statement.
//!
//! `HOPBINE_BLESS=1 cargo test -p hopbine-torus --test torus reproduction` rewrites the page.

mod bine;
mod fan;
mod fugaku;
mod simulated;
mod swing;

use std::fmt::Write;
use std::path::Path;

use hopbine_torus::geometry::{RankMap, Shape, Topology};
use hopbine_torus::plan::{Schedule, Traffic, traffic};
use hopbine_torus::{Collective, Rank, Request, registry};

fn schedule(collective: Collective, name: &str, shape: &str, ports: Option<u32>) -> Schedule {
    let shape: Shape = shape.parse().unwrap();
    let request = Request { shape, map: RankMap::RowMajor, root: Rank(0), ports };
    registry::find(collective, name).unwrap().schedule(&request).unwrap()
}

fn count(schedule: &Schedule, topology: &dyn Topology) -> Traffic {
    let expansion = schedule.expand().unwrap();
    traffic(&expansion, topology, |rank| schedule.map.vertex_of(&schedule.shape, rank))
}

struct Page(String);

impl Page {
    fn say(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn table(&mut self, header: &str) {
        let columns = header.matches('|').count() + 1;
        self.say(&format!("\n| {header} |\n|{}", " --- |".repeat(columns)));
    }

    fn row(&mut self, cells: &[String]) {
        self.say(&format!("| {} |", cells.join(" | ")));
    }

    fn statement(&mut self, statement: &str, paper: &str, ours: &str, agrees: &str) {
        self.row(&[statement, paper, ours, agrees].map(str::to_owned));
    }
}

const STATEMENT: &str = "statement | paper | hopbine | agreement";

#[test]
fn the_papers_figures_follow_from_the_plans() {
    let mut page = Page(String::new());
    page.say("# What the papers state, and what comes out here\n");
    page.say(
        "The test `torus/tests/reproduction` writes this page. It computes every figure from the \
         messages of all ranks in\nhopbine's plans, and fails if a statement no longer holds or the \
         page differs (`HOPBINE_BLESS=1` rewrites it).\n`hopbine traffic` counts the messages of any \
         schedule. [algorithms.md](algorithms.md) names the papers.",
    );
    bine::write(&mut page);
    fugaku::write(&mut page);
    swing::write(&mut page);
    simulated::write(&mut page);
    fan::write(&mut page);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reproduction.md");
    if std::env::var_os("HOPBINE_BLESS").is_some() {
        std::fs::write(&file, &page.0).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    let mut difference = String::new();
    for (old, new) in written.lines().zip(page.0.lines()).filter(|(old, new)| old != new) {
        writeln!(difference, "- {old}\n+ {new}").unwrap();
    }
    assert_eq!(written, page.0, "HOPBINE_BLESS=1 rewrites docs/reproduction.md\n{difference}");
}
