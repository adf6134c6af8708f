//! Machines in one line of text: a built-in machine with some values changed.

use std::str::FromStr;

use super::machine::{Machine, MachineError};

/// Why a line is not a machine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangesError {
    /// No built-in machine has this name.
    #[error("`{name}` is not a machine; known are {}", Machine::NAMES.join(", "))]
    Name {
        /// The name.
        name: String,
    },
    /// A change is not a parameter and a number.
    #[error("`{change}` must be a parameter and its value, such as network.hop=50")]
    Form {
        /// The change.
        change: String,
    },
    /// The parameter does not exist, or not with this value.
    #[error(transparent)]
    Parameter(#[from] MachineError),
}

impl FromStr for Machine {
    type Err = ChangesError;

    /// Reads a name and changed values, such as `tofu-d,network.hop=50,node.poll=1400`; `fold=1` selects another
    /// fold.
    fn from_str(text: &str) -> Result<Self, ChangesError> {
        let mut items = text.split(',').map(str::trim);
        let name = items.next().unwrap_or_default();
        let mut machine =
            Machine::built_in(name).ok_or_else(|| ChangesError::Name { name: name.to_owned() })?;
        for change in items {
            let form = || ChangesError::Form { change: change.to_owned() };
            let (parameter, value) = change.split_once('=').ok_or_else(form)?;
            if parameter == "fold" {
                machine.fold = value.parse().map_err(|_| form())?;
                continue;
            }
            let (section, name) = parameter.split_once('.').ok_or_else(form)?;
            machine.set(section, name, value.parse().map_err(|_| form())?)?;
        }
        Ok(machine)
    }
}

impl Machine {
    /// The line that is read as this machine, except for its name: a built-in machine with the same network, and the
    /// changed values. `None` if no built-in machine has this network.
    pub fn line(&self) -> Option<String> {
        let mut alike = Self::NAMES.iter().filter_map(|name| Machine::built_in(name));
        let base = alike.find(|machine| machine.network == self.network)?;
        let mut line = base.name.clone();
        if self.fold != base.fold {
            line += &format!(",fold={}", self.fold);
        }
        let values = base.values().into_iter().zip(self.values());
        for (parameter, (before, value)) in Self::PARAMETERS.iter().zip(values) {
            if before != value {
                line += &format!(",{}.{}={value}", parameter.section, parameter.name);
            }
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::NetworkKind;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for name in Machine::NAMES {
            assert_eq!(name.parse::<Machine>().unwrap().line().as_deref(), Some(name));
        }
        let line = "tofu-d,fold=2,network.link=inf,node.poll=0.125";
        let machine: Machine = line.parse().unwrap();
        assert_eq!((machine.fold, machine.link, machine.poll_ns), (2, f64::INFINITY, 0.125));
        assert_eq!(machine.line().as_deref(), Some(line));
        let other = Machine::of("mine", NetworkKind::HammingMesh { board: 7 });
        assert_eq!(other.line(), None);
    }

    #[test]
    fn faults_are_named() {
        for (line, expected) in [
            ("", "`` is not a machine; known are tofu-d"),
            ("tofu", "`tofu` is not a machine"),
            ("tofu-d,hop=50", "`hop=50` must be a parameter"),
            ("tofu-d,network.hop", "such as network.hop=50"),
            ("tofu-d,network.hop=fast", "`network.hop=fast` must be"),
            ("tofu-d,fold=-1", "`fold=-1` must be"),
            ("tofu-d,network.lonk=1", "no parameter `lonk`"),
            ("tofu-d,network.link=0", "must be more than 0"),
        ] {
            let message = line.parse::<Machine>().unwrap_err().to_string();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
