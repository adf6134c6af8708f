//! Predictions: the schedules of a shape, simulated at every size.

use hopbine_torus::bounds::Bounds;
use hopbine_torus::geometry::Vertex;
use hopbine_torus::plan::{Expansion, Schedule};
use hopbine_torus::sim::{
    Conditions, Machine, Network, Outcome as Played, PaperCall, Profile, RoutedPlan,
};
use hopbine_torus::{Collective, Rank, Shape};
use rayon::prelude::*;
use serde_json::Value;

use super::{Args, ProfileArg, conditions};
use crate::error::CliError;
use crate::progress::Bar;
use crate::selection::Schedules;

/// Explanation of an approximate prediction, to follow the words "not all".
pub const APPROXIMATE: &str = "ranks do the same, and the one that is simulated has the longest route and the \
     busiest link; --exact simulates all.";

/// The predictions of a schedule, by size.
pub struct Series {
    /// The algorithm.
    pub algorithm: String,
    /// Ports of the schedule.
    pub ports: u32,
    /// Whether the ranks are as symmetric as the prediction assumes.
    pub is_exact: bool,
    /// Lower bounds for any schedule with the same number of ports; None for software other than hopbine.
    pub bounds: Option<Bounds>,
    /// Predicted calls, by size.
    pub played: Vec<Played>,
}

impl Series {
    /// Time in ns of a call, by the index of its size.
    pub fn ns(&self, size: usize) -> f64 {
        self.played[size].ns
    }
}

/// The predictions of all schedules of a shape.
pub struct Predicted {
    pub collective: Collective,
    pub shape: Shape,
    pub machine: String,
    /// Sizes of a call in bytes.
    pub sizes: Vec<u64>,
    pub series: Vec<Series>,
    pub notes: Vec<String>,
}

impl Predicted {
    /// Collective, shape and machine, for titles.
    pub fn subject(&self) -> String {
        format!("{} on {}, {}", self.collective, self.shape, self.machine)
    }

    /// The subject for JSON.
    pub fn about(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("predicted", Value::from(true)),
            ("collective", Value::from(self.collective.name())),
            ("torus", Value::from(self.shape.to_string())),
            ("machine", Value::from(self.machine.as_str())),
        ]
    }
}

/// Simulates all schedules of a shape at all sizes.
///
/// # Errors
/// [`CliError::Usage`] if the shape does not fit the machine's network, or if the call is not modelled.
pub fn predict(
    args: &Args,
    machine: &Machine,
    (collective, shape, schedules, mut notes): Schedules,
    bar: &Bar,
) -> Result<Predicted, CliError> {
    let network = network(machine, &shape)?;
    let conditions = conditions::of(args, &network)?;
    let sizes = args.sizes(collective);
    let play = |(name, schedule): &(String, Schedule)| {
        bar.say(name);
        let series = series(name, schedule, (&network, &conditions), machine, args, &sizes);
        bar.advance(1);
        series
    };
    let series: Vec<Series> = schedules.par_iter().map(play).collect::<Result<_, _>>()?;
    notes.extend(fold_note(&network));
    if series.iter().any(|series| !series.is_exact) {
        notes.push(format!("~: not all {APPROXIMATE}"));
    }
    let machine = machine.name.clone();
    Ok(Predicted { collective, shape, machine, sizes, series, notes })
}

/// Places a shape on a machine's network.
///
/// # Errors
/// [`CliError::Usage`] if the shape does not fit the network.
pub fn network(machine: &Machine, shape: &Shape) -> Result<Network, CliError> {
    Network::new(machine.network, shape, machine.fold)
        .map_err(|error| CliError::Usage(error.to_string()))
}

/// A note on the fold in use, if the network has folds.
pub fn fold_note(network: &Network) -> Option<String> {
    network.fold.as_ref().map(|fold| format!("Folded onto Tofu's axes as {fold}."))
}

fn series(
    name: &str,
    schedule: &Schedule,
    (network, conditions): (&Network, &Conditions),
    machine: &Machine,
    args: &Args,
    sizes: &[u64],
) -> Result<Series, CliError> {
    let call = Call::new(name, schedule, (network, conditions), args, args.exact)?;
    let is_ours = args.profile == ProfileArg::Hopbine;
    let bounds = || Bounds::new(schedule.collective, schedule.ports, &machine.limits(network));
    let bounds = is_ours.then(bounds);
    let played = sizes.iter().map(|&bytes| call.play(args, machine, bytes, false));
    Ok(Series {
        algorithm: name.to_owned(),
        ports: schedule.ports,
        is_exact: call.routed.is_exact(),
        bounds,
        played: played.collect::<Result<_, CliError>>()?,
    })
}

/// A schedule on a network, prepared for simulation.
pub struct Call<'a> {
    pub name: &'a str,
    /// The schedule as the software executes it.
    pub schedule: Schedule,
    pub flow: Expansion,
    pub routed: RoutedPlan,
}

impl<'a> Call<'a> {
    /// Prepares the simulation of all ranks, if `is_exact` or under unusual conditions; else of one representative
    /// rank.
    ///
    /// # Errors
    /// [`CliError::Usage`] if there are too many messages to simulate all ranks, or if the call does not support the
    /// conditions.
    pub fn new(
        name: &'a str,
        schedule: &Schedule,
        (network, conditions): (&Network, &Conditions),
        args: &Args,
        is_exact: bool,
    ) -> Result<Self, CliError> {
        let schedule = profile(args).performed(schedule.clone());
        let flow = schedule.expand().expect("the registry's schedules are valid");
        let place = |rank: Rank| -> Vertex { schedule.map.vertex_of(&schedule.shape, rank) };
        let routed = match is_exact || !conditions.is_usual() {
            true => RoutedPlan::of_all_under(conditions, &flow, network, place)
                .map_err(|error| CliError::Usage(error.to_string()))?,
            false => RoutedPlan::of_one(&flow, network, place),
        };
        Ok(Call { name, schedule, flow, routed })
    }

    /// Predicts the time of a call of `bytes` bytes.
    ///
    /// # Errors
    /// [`CliError::Usage`] for calls that the papers' code does not have.
    pub fn play(
        &self,
        args: &Args,
        machine: &Machine,
        bytes: u64,
        with_spans: bool,
    ) -> Result<Played, CliError> {
        let Call { name, schedule, flow, routed } = self;
        let played = profile(args).play(schedule, flow, routed, machine, bytes as f64, with_spans);
        played.map_err(|error| CliError::Usage(format!("{name}: {error}")))
    }
}

/// The software that performs the call, with its options.
fn profile(args: &Args) -> Profile {
    match args.profile {
        ProfileArg::Hopbine => Profile::Hopbine {
            segment_bytes: args.segment.unwrap_or(Profile::SEGMENT_BYTES),
            call: args.call.form(),
        },
        ProfileArg::Paper => Profile::Paper(PaperCall {
            segment_bytes: args.segment.unwrap_or(0),
            via_temporary: args.via_temporary,
        }),
        ProfileArg::Mpi => Profile::Mpi,
    }
}
