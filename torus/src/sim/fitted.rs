//! The parameters of `tofu-d` and of the papers' software: those that are fitted to timings, and the sources of the
//! others.

use std::fmt;

use super::machine::{Machine, Parameter};
use crate::fit::Intervals;

/// A quantity of the model: one or several parameters of a [`Machine`] that share one value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quantity {
    /// Sections and names of the parameters.
    pub names: &'static [(&'static str, &'static str)],
    /// The source of its value.
    pub origin: Origin,
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Origin {
    /// Fitted to the timings, without a prior value.
    Timings,
    /// Fitted to the timings, with a prior value.
    Known {
        /// The prior value, in the parameter's unit.
        value: f64,
        /// The standard deviation of the prior value's logarithm.
        sigma: f64,
        /// The source of the prior value.
        source: &'static str,
    },
    /// Not fitted: the value is from this source.
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

/// The quantities of `tofu-d` and of the profile of the papers' code. The values of hopbine's own software are
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

    /// The name: `network.latency`, or several names.
    pub fn name(&self) -> String {
        let names: Vec<String> =
            self.names.iter().map(|(section, name)| format!("{section}.{name}")).collect();
        names.join(", ")
    }

    /// The unit.
    pub fn unit(&self) -> &'static str {
        Machine::PARAMETERS[self.number()].unit
    }

    /// The value on a machine.
    pub fn value(&self, machine: &Machine) -> f64 {
        machine.values()[self.number()]
    }

    /// Sets the value on a machine.
    ///
    /// # Panics
    /// If the value is not above 0 and finite.
    pub fn set(&self, machine: &mut Machine, value: f64) {
        for (section, name) in self.names {
            machine.set(section, name, value).expect("a value above 0");
        }
    }

    /// The index of its first parameter in [`Machine::PARAMETERS`].
    fn number(&self) -> usize {
        let is_it = |parameter: &Parameter| (parameter.section, parameter.name) == self.names[0];
        Machine::PARAMETERS.iter().position(is_it).expect("a parameter of machines")
    }
}

/// The intervals of predictions for `tofu-d`, from the errors on shapes that were left out of the fit, as `hopbine
/// validate --leave-out` computes them (docs/model-fit.md).
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
            // Shared memory is a part of hopbine's own software, too.
            .filter(|of| of.section != "hopbine" && !of.name.starts_with("shm_"))
            .map(|parameter| (parameter.section, parameter.name))
            .collect();
        all.sort_unstable();
        assert!(named.into_iter().eq(&all), "{all:?}");
        assert!(QUANTITIES.len() <= 25);
    }
}
