//! Validation of schedules.

use super::schedule::{Placement, Recipe, Schedule, ScheduleError, TreeWays, max_ports};
use super::walk::Interleave;
use crate::collectives::{Collective, Sums, WalkForm};
use crate::geometry::{Cycles, Trees, Vertex};
use crate::names::Rank;
use crate::plan::exchange::{ExchangeRecipe, ExchangeStages};
use crate::plan::ir::grid::NodeGroups;

/// Most turns in which whole blocks are dealt. With more turns than a line has coordinates, lanes would have their
/// share of the blocks on few lines only.
const MOST_TURNS: u32 = 64;

/// The divisors of a number as a list in a sentence.
fn divisors(number: u32) -> String {
    let divisors = (1..=number).filter(|&divisor| number.is_multiple_of(divisor));
    divisors.map(|divisor| divisor.to_string()).collect::<Vec<_>>().join(", ")
}

impl Schedule {
    /// Checks that the schedule can be expanded.
    ///
    /// # Errors
    /// [`ScheduleError`] with the reason and the values that would fit.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        let shape = || self.shape.to_string();
        let max = max_ports(&self.shape);
        if !(1..=max).contains(&self.ports) {
            return Err(ScheduleError::Ports { ports: self.ports, max, shape: shape() });
        }
        let last = Rank(self.shape.n_ranks() - 1);
        if self.root > last {
            return Err(ScheduleError::Root { root: self.root, last, shape: shape() });
        }
        self.validate_split()?;
        let collective = self.collective;
        let no_form = Err(ScheduleError::Form { collective, form: self.recipe.form() });
        let recipe = match &self.recipe {
            Recipe::Walk(recipe) => recipe,
            Recipe::Exchange(exchange) if collective.is_pairwise() => {
                return self.validate_exchange(exchange);
            }
            Recipe::Trees(ways) if collective.along_trees().is_some() => {
                let is_served = *ways == TreeWays::Lines || Cycles::n_of(&self.shape) > 0;
                let unserved = || ScheduleError::NoCycles { shape: shape() };
                return is_served.then_some(()).ok_or_else(unserved);
            }
            Recipe::Linear if collective.is_linear() => return Ok(()),
            Recipe::Prefix(_) if collective.sums() != Sums::Everyone => return Ok(()),
            _ => return no_form,
        };
        if collective.phases(recipe.form).is_none() {
            return no_form;
        }
        if recipe.patterns.len() != self.shape.n_dims() {
            return Err(ScheduleError::Patterns {
                found: recipe.patterns.len(),
                expected: self.shape.n_dims(),
            });
        }
        if matches!(recipe.interleave, Interleave::Fused { .. }) && recipe.form != WalkForm::Latency
        {
            return Err(ScheduleError::Fused { form: self.recipe.form() });
        }
        let has_blocks = recipe.form == WalkForm::Butterfly
            && matches!(collective, Collective::Allgather | Collective::ReduceScatter);
        let positions = recipe.positions;
        if matches!(positions, Placement::Dealt | Placement::Resend) && !has_blocks {
            let form = self.recipe.form();
            return Err(ScheduleError::Placement { collective, form, positions });
        }
        let patterns = self.ring_patterns(recipe, false)?;
        for (pattern, kind) in patterns.iter().zip(&recipe.patterns) {
            let (kind, size) = (kind.clone(), pattern.size());
            if recipe.form == WalkForm::Latency && !pattern.groups_nest() {
                return Err(ScheduleError::NotNested { kind, order: recipe.order, size });
            }
        }
        Ok(())
    }

    fn validate_exchange(&self, exchange: &ExchangeRecipe) -> Result<(), ScheduleError> {
        let (shape, per_node) = (|| self.shape.to_string(), self.shape.ranks_per_node());
        if (exchange.has_leaders() || exchange.stages == ExchangeStages::NodesFirst)
            && self.shape.node_dim().is_none()
        {
            return Err(ScheduleError::NoNodes { shape: shape() });
        }
        match exchange.groups {
            NodeGroups::OfSize(group) | NodeGroups::WithLeaders(group)
                if matches!(exchange.stages, ExchangeStages::InsideFirst { .. }) =>
            {
                let sizes = per_node.to_string();
                Err(ScheduleError::Groups { group, per_node, shape: shape(), sizes })
            }
            NodeGroups::OfSize(group) if group == 0 || !per_node.is_multiple_of(group) => {
                let sizes = divisors(per_node);
                Err(ScheduleError::Groups { group, per_node, shape: shape(), sizes })
            }
            NodeGroups::OfSize(_) | NodeGroups::WholeNode => Ok(()),
            NodeGroups::WithLeaders(leaders) if leaders == 0 || leaders > per_node => {
                Err(ScheduleError::Leaders { leaders, per_node, shape: shape() })
            }
            NodeGroups::WithLeaders(leaders) => {
                let group = u64::from(per_node.div_ceil(leaders));
                let n_groups = u64::from(self.shape.n_ranks() / per_node * leaders);
                let n_positions = n_groups.saturating_mul(group * group);
                let fits = u32::try_from(n_positions).is_ok();
                fits.then_some(()).ok_or(ScheduleError::Blocks { n_positions })
            }
        }
    }

    /// Number of parts into which lanes cut the vector, or every block; 1 if lanes take turns with whole blocks or
    /// messages. For blocks that are dealt, the number of lanes.
    pub fn n_parts(&self) -> u32 {
        match &self.recipe {
            Recipe::Walk(_) | Recipe::Prefix(_) => self.ports,
            Recipe::Exchange(exchange) => exchange.n_parts(&self.shape, self.ports),
            Recipe::Linear => 1,
            Recipe::Trees(TreeWays::Lines) => {
                self.ports.min(Trees::new(&self.shape, Vertex(0)).n_trees() as u32)
            }
            Recipe::Trees(TreeWays::Cycles) => self.ports.min(2 * Cycles::n_of(&self.shape) as u32),
        }
    }

    /// The spanning trees from the root.
    ///
    /// # Errors
    /// [`ScheduleError::NoCycles`] if the trees are to go around cycles and the shape has none.
    pub(super) fn trees(&self, ways: TreeWays) -> Result<Trees, ScheduleError> {
        let root = self.map.vertex_of(&self.shape, self.root);
        match ways {
            TreeWays::Lines => Ok(Trees::new(&self.shape, root)),
            TreeWays::Cycles => Trees::around_cycles(&self.shape, root)
                .ok_or_else(|| ScheduleError::NoCycles { shape: self.shape.to_string() }),
        }
    }

    /// Checks that a split with weights has one for each part.
    fn validate_split(&self) -> Result<(), ScheduleError> {
        let Some(found) = self.split.parts() else { return Ok(()) };
        let expected = self.n_parts();
        if found != expected {
            let (collective, form) = (self.collective, self.recipe.form());
            return Err(ScheduleError::Split { found, expected, collective, form });
        }
        let turns = self.split.part(0, found).units;
        match &self.recipe {
            Recipe::Walk(recipe) if recipe.is_dealt() && turns > MOST_TURNS => {
                Err(ScheduleError::Turns { turns, most: MOST_TURNS })
            }
            _ => Ok(()),
        }
    }
}
