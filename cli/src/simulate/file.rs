//! Machine files: the parameters of the network model as TOML, one commented value per line.

use std::fmt::Write as _;
use std::path::Path;

use hopbine_torus::sim::{Machine, NetworkKind, Parameter, Quantity};
use toml::de::DeTable;
use toml::{Spanned, de::DeValue};

use crate::args;
use crate::error::CliError;

/// A built-in machine, possibly with changed values, or a machine described by a file.
///
/// # Errors
/// [`CliError::Usage`], [`CliError::Text`] with the line of the error, or [`CliError::Read`].
pub fn machine(name: &str) -> Result<Machine, CliError> {
    let base = name.split_once(',').map_or(name, |(base, _)| base);
    if Machine::built_in(base).is_some() {
        return name.parse().map_err(|error| CliError::Usage(format!("machine {name}: {error}")));
    }
    let path = Path::new(name);
    // A name without a dot or a slash is more likely a wrong machine name than a missing file.
    if !path.exists() && !name.contains(['.', '/']) {
        return Err(CliError::Usage(format!(
            "`{name}` is neither a machine ({}) nor a file",
            Machine::NAMES.join(", ")
        )));
    }
    let text = args::read(path)?;
    parse(&text).map_err(|(line, message)| CliError::text(path, format!("line {line}: {message}")))
}

/// The text of a file that [`machine`] can read. `source` returns the source of a parameter's value.
pub fn show(machine: &Machine, source: impl Fn(&Parameter) -> Option<String>) -> String {
    let mut text = format!(
        "# A machine of hopbine's network model; see docs/model.md.\n\
         name = {}\n\
         # ideal-torus, tofu-d, hamming-mesh:BOARD or hyperx\n\
         kind = \"{}\"\n\
         # On tofu-d: which of a shape's folds onto the six axes it takes, from 0\n\
         fold = {}\n",
        quoted(&machine.name),
        machine.network,
        machine.fold
    );
    let mut section = "";
    for (parameter, value) in Machine::PARAMETERS.iter().zip(machine.values()) {
        if parameter.section != section {
            section = parameter.section;
            let _ = write!(text, "\n[{section}]\n");
        }
        let Parameter { name, unit, meaning, .. } = parameter;
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let source = source(parameter).map_or_else(String::new, |source| format!("; {source}"));
        // Infinity is `inf` in TOML as in Rust; `{:?}` gives whole numbers the point that TOML floats need.
        let _ = writeln!(text, "#{meaning}{unit}{source}\n{name} = {value:?}");
    }
    text
}

/// A text as a TOML string. JSON escapes all that TOML does, except for one control character.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The sources of the values of a built-in machine.
pub fn built_in_source(machine: &Machine) -> impl Fn(&Parameter) -> Option<String> {
    let is_tofu = Machine::built_in("tofu-d").as_ref() == Some(machine);
    move |parameter| match parameter.section {
        _ if !is_tofu => None,
        "hopbine" => Some("an estimate (docs/model.md)".to_owned()),
        _ => Quantity::of(parameter).map(|quantity| quantity.origin.to_string()),
    }
}

type Wrong = (usize, String);

fn parse(text: &str) -> Result<Machine, Wrong> {
    let line = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        (error.span().map_or(1, |span| line(span.start)), error.message().to_owned())
    })?;
    let table = table.get_ref();
    let wrong = |value: &Spanned<DeValue<'_>>, message: String| (line(value.span().start), message);
    let text_of = |key: &str| -> Result<Option<(String, &Spanned<DeValue<'_>>)>, Wrong> {
        let Some(value) = table.get(key) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) => Ok(Some((text.to_owned(), value))),
            None => Err(wrong(value, format!("`{key}` must be a string in quotes"))),
        }
    };
    let (name, _) = text_of("name")?.ok_or((1, "`name = \"...\"` is missing".to_owned()))?;
    let network = text_of("kind")?;
    let (network, at) =
        network.ok_or((1, "`kind = \"tofu-d\"` (or another) is missing".to_owned()))?;
    let network: NetworkKind = network.parse().map_err(|error| wrong(at, format!("{error}")))?;
    let mut machine = Machine::of(&name, network);
    let mut is_set = vec![false; Machine::PARAMETERS.len()];
    for (key, value) in table {
        let key = key.get_ref().as_ref();
        match key {
            "name" | "kind" => {}
            "fold" => {
                let number =
                    number(value.get_ref()).filter(|fold| fold.fract() == 0.0 && *fold >= 0.0);
                let number = number
                    .ok_or_else(|| wrong(value, "`fold` must be a whole number from 0".into()))?;
                machine.fold = number as usize;
            }
            section => {
                let Some(values) = value.get_ref().as_table() else {
                    return Err(wrong(value, format!("`{section}` must be in a section")));
                };
                for (key, value) in values {
                    let name = key.get_ref().as_ref();
                    let number = number(value.get_ref())
                        .ok_or_else(|| wrong(value, format!("`{name}` must be a number")))?;
                    let set = machine.set(section, name, number);
                    is_set[set.map_err(|error| wrong(value, error.to_string()))?] = true;
                }
            }
        }
    }
    if let Some(missing) = is_set.iter().position(|is_set| !is_set) {
        let Parameter { section, name, .. } = Machine::PARAMETERS[missing];
        return Err((1, format!("`{name}` is missing in section [{section}]")));
    }
    Ok(machine)
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
        DeValue::Integer(number) => number.as_str().replace('_', "").parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_read_as_they_are_shown() {
        for name in Machine::NAMES {
            let machine = Machine::built_in(name).unwrap();
            let shown = show(&machine, built_in_source(&machine));
            assert_eq!(shown.contains("; fitted\n"), name == "tofu-d");
            assert_eq!(parse(&shown), Ok(machine));
        }
    }

    #[test]
    fn any_name_is_read_as_it_is_shown() {
        let mut machine = Machine::built_in("tofu-d").unwrap();
        for name in ["a\"b", "a\\", "two\nlines", "it's", "\u{1}\u{7f}\u{fc}"] {
            machine.name = name.to_owned();
            assert_eq!(parse(&show(&machine, |_| None)), Ok(machine.clone()));
        }
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let well = show(&Machine::built_in("tofu-d").unwrap(), |_| None);
        for (from, to, expected) in [
            ("kind = \"tofu-d\"", "kind = \"torus\"", "line 4: `torus` is not a network"),
            ("kind = \"tofu-d\"", "kind = 3", "must be a string in quotes"),
            ("fold = 0", "fold = 0.5", "line 6: `fold` must be"),
            ("link = 6.335", "link = 0", "network.link is 0: it must be more than 0"),
            ("link = 6.335", "link = \"fast\"", "`link` must be a number"),
            (
                "link = 6.335",
                "lonk = 6.26",
                "there is no parameter `lonk` in section [network]; it has link",
            ),
            ("link = 6.335\n", "", "`link` is missing in section [network]"),
            ("link = 6.335", "link = = 6.26", "line 10:"),
            ("[network]", "[networks]", "no parameters; sections are"),
            ("name = ", "nome = ", "`name = \"...\"` is missing"),
        ] {
            assert!(well.contains(from), "{from}");
            let (line, message) = parse(&well.replacen(from, to, 1)).unwrap_err();
            let message = format!("line {line}: {message}");
            assert!(message.contains(expected), "{to}: {message}");
        }
    }
}
