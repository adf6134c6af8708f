//! One call: one schedule at one size.

use hopbine_torus::sim::{Machine, Network, Outcome as Played};
use hopbine_torus::sizes;
use hopbine_torus::{Collective, Shape};
use serde_json::Value;

use super::predict::Call;
use super::{Args, Show, conditions};
use crate::cells::decimal;
use crate::error::CliError;
use crate::selection::Schedules;

/// One call with its prediction, which may include the times of all ports.
pub struct OneCall<'a> {
    pub collective: Collective,
    pub shape: &'a Shape,
    pub machine: &'a str,
    pub call: Call<'a>,
    pub bytes: u64,
    pub played: Played,
}

impl<'a> OneCall<'a> {
    /// Simulates the call: one representative rank if that suffices for the report, else all ranks.
    ///
    /// # Errors
    /// [`CliError::Usage`] for several schedules or sizes, and the errors of [`super::predict::predict`].
    pub fn new(
        args: &Args,
        machine: &'a Machine,
        network: &Network,
        (collective, shape, schedules, _): &'a Schedules,
    ) -> Result<Self, CliError> {
        let name = args.show.name();
        let [(algorithm, schedule)] = &schedules[..] else {
            let n_schedules = schedules.len();
            return Err(CliError::Usage(format!(
                "--show {name} shows one call, and there are {n_schedules} schedules: give one \
                 --algorithm and one number of --ports"
            )));
        };
        let sizes = args.sizes(*collective);
        let [bytes] = sizes[..] else {
            let n_sizes = sizes.len();
            return Err(CliError::Usage(format!(
                "--show {name} shows one call, and there are {n_sizes} sizes: give one, such as \
                 --bytes 1MiB"
            )));
        };
        // The names of links and receivers are only known if all ranks are simulated.
        let is_exact = args.exact || args.show != Show::Timeline || args.trace.is_some();
        let conditions = conditions::of(args, network)?;
        let call = Call::new(algorithm, schedule, (network, &conditions), args, is_exact)?;
        let has_times = matches!(args.show, Show::Timeline | Show::LinkTimeline);
        let played = call.play(args, machine, bytes, has_times)?;
        Ok(OneCall { collective: *collective, shape, machine: &machine.name, call, bytes, played })
    }

    /// A title: the call and its prediction; `what` names the contents.
    pub fn title(&self, what: &str) -> String {
        let OneCall { collective, shape, machine, call, bytes, played } = self;
        let ports = match call.schedule.ports {
            1 => "1 port".to_owned(),
            ports => format!("{ports} ports"),
        };
        let size = match collective {
            Collective::Barrier => String::new(),
            _ => format!(" of {}", sizes::show(*bytes)),
        };
        format!(
            "{collective}{size} on {shape}, {machine}: {what} of {}, {ports}, predicted {} us",
            call.name,
            decimal(played.ns / 1e3, 1)
        )
    }

    /// The call and its prediction, for JSON.
    pub fn about(&self, machine: &Machine) -> Vec<(&'static str, Value)> {
        vec![
            ("predicted", Value::from(true)),
            ("collective", Value::from(self.collective.name())),
            ("torus", Value::from(self.shape.to_string())),
            ("machine", Value::from(machine.name.as_str())),
            ("algorithm", Value::from(self.call.name)),
            ("ports", Value::from(self.call.schedule.ports)),
            ("bytes", Value::from(self.bytes)),
            ("predicted_us", Value::from(self.played.ns / 1e3)),
        ]
    }
}
