//! Machines: the parameters of the model, each with its unit, its meaning and its source.

use super::network::{Network, NetworkError, NetworkKind};
use super::speeds::Speeds;
use crate::geometry::Shape;

/// One parameter of a [`Machine`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// The section that it belongs to: `network`, `node`, `paper` or `hopbine`.
    pub section: &'static str,
    /// Its name within the section.
    pub name: &'static str,
    /// Its unit; empty for counts.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Whether 0 is a valid value.
    pub may_be_zero: bool,
}

/// Why a parameter cannot be set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The section has no parameter of this name.
    #[error("there is no parameter `{name}` in section [{section}]; it has {known}")]
    Unknown {
        /// The section.
        section: String,
        /// The name.
        name: String,
        /// The parameters of the section, or the sections that exist.
        known: String,
    },
    /// The parameter cannot have this value.
    #[error("{section}.{name} is {value}: it must be {expected}")]
    Value {
        /// The section.
        section: &'static str,
        /// The name.
        name: &'static str,
        /// The value.
        value: f64,
        /// The valid values.
        expected: &'static str,
    },
}

macro_rules! parameters {
    ($($section:ident { $($(#[doc = $meaning:literal])+ $field:ident, $name:literal, $unit:literal, $zero:literal;)* })*) => {
        /// The parameters of a machine; times in ns, speeds in bytes per ns (GB/s).
        #[derive(Clone, Debug, PartialEq)]
        pub struct Machine {
            /// The name of the machine.
            pub name: String,
            /// The kind of its network.
            pub network: NetworkKind,
            /// On Tofu, the number of the fold that it uses for a shape.
            pub fold: usize,
            $($($(#[doc = $meaning])+ pub $field: f64,)*)*
        }

        impl Machine {
            /// All parameters in order.
            pub const PARAMETERS: &'static [Parameter] = &[
                $($(Parameter {
                    section: stringify!($section),
                    name: $name,
                    unit: $unit,
                    meaning: concat!($($meaning),+),
                    may_be_zero: $zero,
                },)*)*
            ];

            /// A machine whose parameters are all 0, to be set.
            pub fn of(name: &str, network: NetworkKind) -> Self {
                Machine { name: name.to_owned(), network, fold: 0, $($($field: 0.0,)*)* }
            }

            /// The values, in the order of [`Machine::PARAMETERS`].
            pub fn values(&self) -> Vec<f64> {
                vec![$($(self.$field,)*)*]
            }

            /// The parameters by number.
            fn values_mut(&mut self) -> Vec<&mut f64> {
                vec![$($(&mut self.$field,)*)*]
            }
        }
    };
}

parameters! {
    network {
        /// Speed of a link in one direction
        link, "link", "GB/s", false;
        /// Speed of a network interface (TNI) in one direction
        interface, "interface", "GB/s", false;
        /// A put without bytes to a neighbour, until its notice is there
        latency_ns, "latency", "ns", true;
        /// Each further cable on the way
        hop_ns, "hop", "ns", true;
        /// Each further link on a board
        board_hop_ns, "board_hop", "ns", true;
        /// Between two messages of one interface, at least
        gap_ns, "gap", "ns", true;
    }
    node {
        /// To post a put
        post_ns, "post", "ns", true;
        /// To see that a message has arrived
        poll_ns, "poll", "ns", true;
        /// From when a message has left until its sender sees it
        ack_ns, "ack", "ns", true;
        /// Combining by one thread
        reduce, "reduce", "GB/s", false;
        /// Combining by all threads of a rank together
        reduce_all, "reduce_all", "GB/s", false;
        /// To combine x bytes, over their time at that speed: this times the root of x / 256, of 64 KiB at most
        reduce_ramp_ns, "reduce_ramp", "ns", true;
        /// Copying by one thread
        copy, "copy", "GB/s", false;
        /// Copying by all threads of a rank together
        copy_all, "copy_all", "GB/s", false;
        /// To begin the copy of a block
        block_ns, "block", "ns", true;
        /// With several threads, to copy a block of x bytes, over that: this times the root of x / 256, of 32 KiB at most
        copy_ramp_ns, "copy_ramp", "ns", true;
    }
    paper {
        /// To enter a call
        paper_base_ns, "base", "ns", true;
        /// To make an entry of a table of ranks and ports, which most calls make
        paper_entry_ns, "entry", "ns", true;
        /// To send and receive a message of MPI, beside its latency
        paper_mpi_ns, "mpi", "ns", true;
        /// Copies of a message of MPI, both ends together
        paper_eager, "eager", "GB/s", false;
        /// To announce a message of MPI that is not copied, and to wait for the answer
        paper_rendezvous_ns, "rendezvous", "ns", true;
        /// To open and close a parallel region
        paper_fork_ns, "fork", "ns", true;
        /// Each thread of it more
        paper_fork_each_ns, "fork_each", "ns", true;
        /// An operation of the heap, of which timers have several in each step, with one thread
        paper_heap_ns, "heap", "ns", true;
        /// The same with several, which wait for each other
        paper_heap_all_ns, "heap_all", "ns", true;
        /// To wake up, for a thread that has waited for the heap
        paper_heap_wake_ns, "heap_wake", "ns", true;
        /// To make and drop a timer
        paper_timer_ns, "timer", "ns", true;
        /// To enter and leave the critical section around combining
        paper_critical_ns, "critical", "ns", true;
        /// To start the compiler's threads for combining outside a parallel region
        paper_team_ns, "team", "ns", true;
    }
    hopbine {
        /// From the call to its ports, and from the last of them back
        call_ns, "call", "ns", true;
        /// To hand a port's part to its thread, for each port but the first
        wake_ns, "wake", "ns", true;
        /// A message between ranks of one node, from when it is written until it is seen
        shm_latency_ns, "shm_latency", "ns", true;
        /// To write such a message, and to read it, beside the copy of its bytes
        shm_overhead_ns, "shm_overhead", "ns", true;
        /// The longest message that is sent without asking its receiver
        eager, "eager", "B", false;
        /// In a first call, to plan and compile a message
        compile_ns, "compile", "ns", true;
        /// In a first call, to register memory with an interface
        register_ns, "register", "ns", true;
        /// The same, each page of 64 KiB
        page_ns, "page", "ns", true;
        /// In a first call, to make a channel for a peer
        peer_ns, "peer", "ns", true;
    }
}

/// The speed that replaces an infinite one, bytes per ns.
const FASTEST: f64 = 1e9;

impl Machine {
    /// The names of the built-in machines.
    pub const NAMES: [&'static str; 5] = ["tofu-d", "ideal-torus", "hx2mesh", "hx4mesh", "hyperx"];

    /// Returns a built-in machine; `None` for another name.
    pub fn built_in(name: &str) -> Option<Self> {
        Some(match name {
            "tofu-d" => Self::tofu_d(),
            "ideal-torus" => Self::ideal(name, NetworkKind::IdealTorus),
            "hx2mesh" => Self::ideal(name, NetworkKind::HammingMesh { board: 2 }),
            "hx4mesh" => Self::ideal(name, NetworkKind::HammingMesh { board: 4 }),
            "hyperx" => Self::ideal(name, NetworkKind::HyperX),
            _ => return None,
        })
    }

    /// The networks of Swing's simulations (section 5): links of 400 Gb/s with 100 ns of latency and 300
    /// ns for each hop, as many interfaces as ports, and software that costs nothing.
    fn ideal(name: &str, network: NetworkKind) -> Self {
        Machine {
            link: 50.0,
            interface: 50.0,
            latency_ns: 700.0,
            hop_ns: 400.0,
            // PCB traces in place of optical cables (section 5.4.1 gives no figure).
            board_hop_ns: 300.0,
            reduce: f64::INFINITY,
            reduce_all: f64::INFINITY,
            copy: f64::INFINITY,
            copy_all: f64::INFINITY,
            paper_eager: f64::INFINITY,
            eager: f64::INFINITY,
            ..Self::of(name, network)
        }
    }

    /// Tofu-D with A64FX. Parameters of network and node are fitted to public timings of other software (`hopbine
    /// calibrate`, docs/model-fit.md); those of hopbine's own software are estimates.
    fn tofu_d() -> Self {
        Machine {
            link: 6.335,
            interface: 6.335,
            latency_ns: 1647.0,
            hop_ns: 100.0,
            board_hop_ns: 100.0,
            gap_ns: 200.0,
            post_ns: 200.0,
            poll_ns: 317.0,
            ack_ns: 737.0,
            reduce: 17.95,
            reduce_all: 66.71,
            reduce_ramp_ns: 258.7,
            copy: 24.91,
            copy_all: 66.71,
            block_ns: 16.7,
            copy_ramp_ns: 51.1,
            paper_base_ns: 2391.0,
            paper_entry_ns: 6.75,
            paper_mpi_ns: 1237.0,
            paper_eager: 6.132,
            paper_rendezvous_ns: 10_150.0,
            paper_fork_ns: 2434.0,
            paper_fork_each_ns: 1754.0,
            paper_heap_ns: 278.3,
            paper_heap_all_ns: 878.2,
            paper_heap_wake_ns: 3105.0,
            paper_timer_ns: 2331.0,
            paper_critical_ns: 597.0,
            paper_team_ns: 10_560.0,
            call_ns: 500.0,
            wake_ns: 300.0,
            shm_latency_ns: 200.0,
            shm_overhead_ns: 100.0,
            eager: 2048.0,
            compile_ns: 600.0,
            register_ns: 2000.0,
            page_ns: 250.0,
            peer_ns: 3000.0,
            ..Self::of("tofu-d", NetworkKind::TofuD)
        }
    }

    /// Sets a parameter, and returns its index in [`Machine::PARAMETERS`].
    ///
    /// # Errors
    /// [`MachineError`] for an unknown name, and for a value that is not a number, negative, 0 for a speed, or
    /// infinite for anything but a speed.
    pub fn set(&mut self, section: &str, name: &str, value: f64) -> Result<usize, MachineError> {
        let is_it = |parameter: &Parameter| (parameter.section, parameter.name) == (section, name);
        let Some(number) = Self::PARAMETERS.iter().position(is_it) else {
            let of_section =
                Self::PARAMETERS.iter().filter(|parameter| parameter.section == section);
            let mut known: Vec<&str> = of_section.map(|parameter| parameter.name).collect();
            if known.is_empty() {
                known = vec!["no parameters; sections are network, node, paper and hopbine"];
            }
            let (section, name, known) = (section.to_owned(), name.to_owned(), known.join(", "));
            return Err(MachineError::Unknown { section, name, known });
        };
        let Parameter { section, name, may_be_zero, .. } = Self::PARAMETERS[number];
        let expected = if may_be_zero { "0 or more" } else { "more than 0" };
        // An infinite speed costs no time.
        if value.is_nan()
            || value < 0.0
            || value == 0.0 && !may_be_zero
            || may_be_zero && value.is_infinite()
        {
            return Err(MachineError::Value { section, name, value, expected });
        }
        *self.values_mut()[number] = value;
        Ok(number)
    }

    /// Time to combine bytes in pieces, beside the time at full speed, ns.
    pub(crate) fn reduce_start_ns(&self, bytes: f64, pieces: f64) -> f64 {
        pieces * (bytes / pieces / 256.0).min(256.0).sqrt() * self.reduce_ramp_ns
    }

    /// The network of a shape; if the shape has no place on the machine's network, rings of its links.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn network_or_rings(&self, shape: &Shape) -> Result<Network, NetworkError> {
        Network::new(self.network, shape, self.fold)
            .or_else(|_| Network::new(NetworkKind::IdealTorus, shape, 0))
    }

    /// The speeds and latencies of messages.
    pub fn speeds(&self) -> Speeds {
        // Speeds are shared, added and subtracted, so they must be finite.
        let bounded = |speed: f64| speed.min(FASTEST);
        Speeds {
            link: bounded(self.link),
            interface: bounded(self.interface),
            copy: bounded(self.copy),
            copy_all: bounded(self.copy_all),
            shm_latency_ns: self.shm_latency_ns,
            latency_ns: self.latency_ns,
            hop_ns: self.hop_ns,
            board_hop_ns: self.board_hop_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_set_by_name_and_checked() {
        for name in Machine::NAMES {
            let mut machine = Machine::built_in(name).unwrap();
            for (parameter, value) in Machine::PARAMETERS.iter().zip(machine.values()) {
                machine.set(parameter.section, parameter.name, value).unwrap();
            }
            assert_eq!(machine, Machine::built_in(name).unwrap());
        }
        let mut machine = Machine::built_in("tofu-d").unwrap();
        machine.set("network", "link", 5.5).unwrap();
        assert_eq!(machine.link, 5.5);
        let mut refused =
            |section, name, value| machine.set(section, name, value).unwrap_err().to_string();
        assert!(refused("network", "speed", 1.0).contains("it has link, interface"));
        assert!(refused("links", "link", 1.0).contains("sections are"));
        assert!(refused("network", "link", 0.0).contains("more than 0"));
        assert!(refused("network", "hop", -1.0).contains("0 or more"));
        assert!(refused("node", "post", f64::NAN).contains("node.post is NaN"));
    }
}
