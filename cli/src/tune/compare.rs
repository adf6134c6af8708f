//! How long calls take by one table and by another, predicted.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use hopbine::Tuning;
use hopbine_torus::Collective;
use hopbine_torus::sim::{Machine, Network};

use super::Tuned;
use super::case::{Case, Cases};
use crate::error::CliError;

/// By cell (shape, ports, size) how long a call takes by the new table, over how long by the one before.
#[derive(Default)]
pub struct Comparison(Vec<f64>);

impl Comparison {
    /// With the cells of a shape.
    ///
    /// # Errors
    /// [`CliError`] if the choice before does not serve.
    pub fn add(
        &mut self,
        (machine, network): (&Machine, &Network),
        (tuned, cases): &(Tuned, Cases<'_>),
        before: &Tuning,
        sizes: &[u64],
    ) -> Result<(), CliError> {
        let (collective, shape) = (tuned.collective, &tuned.shape);
        let mut others: HashMap<(String, u32), Case> = HashMap::new();
        let known = |name: &str, ports: u32| {
            cases.all.iter().find(|case| case.algorithm.name == name && case.ports == ports)
        };
        let blocks = u64::from(collective.n_blocks(shape.n_ranks()));
        for (ports, runs) in &tuned.by_ports {
            for &bytes in sizes {
                let is_its = |run: &&super::Run| run.up_to.is_none_or(|up_to| bytes <= up_to);
                let run = runs.iter().find(is_its).expect("runs cover all sizes");
                let case = known(&run.algorithm, run.ports).expect("it was chosen of these");
                let new = case.ns(machine, bytes, super::segment(run));
                let choice = before.choose(collective, shape, bytes / blocks, *ports);
                let name = &*choice.algorithm.name;
                let case = match known(name, choice.ports) {
                    Some(case) => case,
                    None => {
                        let key = (name.to_owned(), choice.ports);
                        if !others.contains_key(&key) {
                            let case = Case::new(network, shape, &choice.algorithm, choice.ports)?;
                            others.insert(key.clone(), case);
                        }
                        &others[&key]
                    }
                };
                self.0.push(new / case.ns(machine, bytes, choice.segment_bytes));
            }
        }
        Ok(())
    }
}

/// A line for each collective.
pub fn summary(before: &str, compared: &BTreeMap<Collective, Comparison>) -> String {
    let mut text =
        format!("Predicted time over that of table {before}, by cells (shape, ports, size):\n");
    for (collective, Comparison(ratios)) in compared {
        let mut sorted = ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part: usize| sorted[(sorted.len() - 1) * part / 2];
        let [least, median, most] = [0, 1, 2].map(at);
        let faster = ratios.iter().filter(|&&ratio| ratio < 0.97).count();
        let _ = writeln!(
            text,
            "  {:15} {:4} cells: median {median:.2}, {least:.2} to {most:.2}; {faster} are more than 3% sooner",
            collective.name(),
            ratios.len(),
        );
    }
    text
}
