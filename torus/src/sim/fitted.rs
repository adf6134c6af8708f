//! Which parameters of `tofu-d` and of the papers' software are fitted to timings, and where the others are
//! from.

use std::fmt;

use super::machine::{Machine, Parameter};
use crate::fit::Intervals;

/// A quantity of the model: one or several parameters of a [`Machine`] that have one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Section and name of the parameters.
    pub names: &'static [(&'static str, &'static str)],
    /// Where its value is from.
    pub origin: Origin,
}

/// Where a value is from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Origin {
    /// The timings; nothing was known before.
    Timings,
    /// The timings, and what was known before.
    Known {
        /// The value, in the parameter's unit.
        value: f64,
        /// The standard deviation of its logarithm.
        sigma: f64,
        /// From where.
        source: &'static str,
    },
    /// From elsewhere; it is not fitted.
    Fixed(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Timings => write!(f, "fitted"),
            Origin::Known { source, .. } => write!(f, "fitted, {source} known before"),
            Origin::Fixed(source) => write!(f, "{source}"),
        }
    }
}

const fn fitted(names: &'static [(&'static str, &'static str)]) -> Quantity {
    Quantity { names, origin: Origin::Timings }
}

/// The quantities of `tofu-d` and of the profile of the papers' code. Those of our own software are
/// estimates: there are no timings of it on Fugaku.
pub const QUANTITIES: &[Quantity] = &[
    Quantity {
        names: &[("network", "link"), ("network", "interface")],
        origin: Origin::Fixed("set by long messages over one port, which agree within 0.3 %"),
    },
    fitted(&[("network", "latency")]),
    Quantity {
        names: &[("network", "hop"), ("network", "board_hop")],
        origin: Origin::Fixed("literature: about 0.1 us on Tofu-D"),
    },
    Quantity {
        names: &[("network", "gap"), ("node", "post")],
        origin: Origin::Fixed("literature: about 0.2 us a put"),
    },
    fitted(&[("node", "poll")]),
    fitted(&[("node", "ack")]),
    fitted(&[("node", "reduce")]),
    fitted(&[("node", "reduce_all"), ("node", "copy_all")]),
    fitted(&[("node", "reduce_ramp")]),
    fitted(&[("node", "copy")]),
    Quantity {
        names: &[("node", "block")],
        origin: Origin::Known { value: 20.0, sigma: 0.3, source: "about forty cycles" },
    },
    fitted(&[("node", "copy_ramp")]),
    fitted(&[("paper", "base")]),
    Quantity {
        names: &[("paper", "entry")],
        origin: Origin::Known { value: 5.0, sigma: 0.2, source: "about ten cycles" },
    },
    fitted(&[("paper", "mpi")]),
    fitted(&[("paper", "eager")]),
    fitted(&[("paper", "rendezvous")]),
    fitted(&[("paper", "fork")]),
    fitted(&[("paper", "fork_each")]),
    fitted(&[("paper", "heap")]),
    fitted(&[("paper", "heap_all")]),
    fitted(&[("paper", "heap_wake")]),
    fitted(&[("paper", "timer")]),
    fitted(&[("paper", "critical")]),
    fitted(&[("paper", "team")]),
];

impl Quantity {
    /// The quantity that a parameter belongs to.
    pub fn of(parameter: &Parameter) -> Option<&'static Self> {
        let name = (parameter.section, parameter.name);
        QUANTITIES.iter().find(|quantity| quantity.names.contains(&name))
    }

    /// What it is called: `network.latency`, or several names.
    pub fn name(&self) -> String {
        let names: Vec<String> =
            self.names.iter().map(|(section, name)| format!("{section}.{name}")).collect();
        names.join(", ")
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        Machine::PARAMETERS[self.number()].unit
    }

    /// Its value on a machine.
    pub fn value(&self, machine: &Machine) -> f64 {
        machine.values()[self.number()]
    }

    /// Gives it a value.
    ///
    /// # Panics
    /// If the value is not above 0 and finite.
    pub fn set(&self, machine: &mut Machine, value: f64) {
        for (section, name) in self.names {
            machine.set(section, name, value).expect("a value above 0");
        }
    }

    /// The number of its first parameter in [`Machine::PARAMETERS`].
    fn number(&self) -> usize {
        let is_it = |parameter: &Parameter| (parameter.section, parameter.name) == self.names[0];
        Machine::PARAMETERS.iter().position(is_it).expect("a parameter of machines")
    }
}

/// The intervals of predictions for `tofu-d`: of the errors on shapes that were left out of the fit, as `hopbine
/// validate --leave-out` finds them (docs/model.md).
pub fn tofu_d_intervals() -> Intervals {
    Intervals::new([
        [-0.224, 0.175],
        [-0.096, 0.087],
        [-0.068, 0.139],
        [-0.190, 0.098],
        [-0.093, 0.086],
        [-0.165, 0.124],
        [-0.153, 0.074],
        [-0.070, 0.047],
        [-0.086, 0.102],
        [-0.249, 0.098],
        [-0.042, 0.037],
        [-0.072, 0.087],
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_but_our_own_is_one_quantity_and_they_are_25_at_most() {
        let mut machine = Machine::built_in("tofu-d").unwrap();
        let before = machine.clone();
        for quantity in QUANTITIES {
            let value = quantity.value(&machine);
            quantity.set(&mut machine, value);
        }
        assert_eq!(machine, before, "parameters of a quantity differ");
        let mut named: Vec<_> = QUANTITIES.iter().flat_map(|quantity| quantity.names).collect();
        named.sort_unstable();
        let mut all: Vec<_> = Machine::PARAMETERS
            .iter()
            // Shared memory is our own software's, too.
            .filter(|of| of.section != "hopbine" && !of.name.starts_with("shm_"))
            .map(|parameter| (parameter.section, parameter.name))
            .collect();
        all.sort_unstable();
        assert!(named.into_iter().eq(&all), "{all:?}");
        assert!(QUANTITIES.len() <= 25);
    }
}
