//! Unusual conditions of a call: blocks of different sizes, and faults.

use std::path::Path;

use hopbine_torus::sim::{Conditions, Fault, FaultyPart, Network};
use hopbine_torus::{LinkId, PortId};

use super::Args;
use crate::args;
use crate::error::CliError;

/// A fault as given on the command line: a part of the network and its remaining speed.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultArg {
    part: String,
    speed: f64,
}

/// Relative sizes of the blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct BlocksArg(Vec<f64>);

/// Parses `PART=SPEED`.
pub fn parse_fault(text: &str) -> Result<FaultArg, String> {
    let wrong = || {
        format!(
            "`{text}` must be a part and its speed, such as (0,0)+0=0.5 for a link, named as in --show links, or \
             tni:3.1=0 for interface 1 of node 3, which is dead"
        )
    };
    let (part, speed) = text.rsplit_once('=').ok_or_else(wrong)?;
    let speed: f64 = speed.trim().parse().map_err(|_| wrong())?;
    if !(0.0..=1.0).contains(&speed) {
        return Err(format!("`{text}`: a speed is a number from 0 (dead) to 1 (full speed)"));
    }
    Ok(FaultArg { part: part.trim().to_owned(), speed })
}

/// Parses relative sizes of blocks: a list, or `@` and the name of a file with a list.
pub fn parse_blocks(text: &str) -> Result<BlocksArg, String> {
    let content = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(path) => args::read(Path::new(path)).map_err(|error| error.to_string())?,
    };
    let items =
        content.split(|c: char| c == ',' || c.is_whitespace()).filter(|item| !item.is_empty());
    let number = |item: &str| {
        let wrong = |_| format!("`{item}` is not a number; write sizes of blocks as in 1,1,2.5");
        item.parse::<f64>().map_err(wrong)
    };
    items.map(number).collect::<Result<_, _>>().map(BlocksArg)
}

/// The conditions of a call on its network.
///
/// # Errors
/// [`CliError::Usage`] for a part that does not exist.
pub fn of(args: &Args, network: &Network) -> Result<Conditions, CliError> {
    let fault =
        |fault: &FaultArg| Ok(Fault { part: part(&fault.part, network)?, speed: fault.speed });
    let faults = args.fault.iter().map(fault).collect::<Result<_, CliError>>()?;
    let blocks = args.blocks.as_ref().map(|blocks| blocks.0.clone()).unwrap_or_default();
    Ok(Conditions { blocks, faults })
}

fn part(text: &str, network: &Network) -> Result<FaultyPart, CliError> {
    if let Some(place) = text.strip_prefix("tni:") {
        let numbers = place.split_once('.').map(|(node, port)| (node.parse(), port.parse()));
        let Some((Ok(node), Ok(port))) = numbers else {
            let message = format!("--fault: `{text}` must be tni:NODE.PORT, such as tni:3.1");
            return Err(CliError::Usage(message));
        };
        return Ok(FaultyPart::Interface { node, port: PortId(port) });
    }
    let whole = network.whole();
    let mut links = (0..whole.n_links()).map(LinkId);
    let found = links.find(|&link| whole.link_name(link) == text);
    let example = whole.link_name(LinkId(0));
    let unknown = || {
        let message = format!(
            "--fault: `{text}` is not a link of this network ({example}; --show links names them) nor an \
             interface (tni:3.1)"
        );
        CliError::Usage(message)
    };
    found.map(FaultyPart::Link).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_blocks_are_read() {
        let slow = FaultArg { part: "(0,0)+0".to_owned(), speed: 0.5 };
        assert_eq!(parse_fault("(0,0)+0=0.5"), Ok(slow));
        assert_eq!(parse_fault("tni:3.1=0").unwrap().part, "tni:3.1");
        for (text, expected) in [
            ("tni:3.1", "must be a part and its speed"),
            ("tni:3.1=fast", "must be a part and its speed"),
            ("tni:3.1=2", "to 1 (full speed)"),
            ("tni:3.1=-1", "from 0 (dead)"),
            ("tni:3.1=NaN", "from 0 (dead)"),
        ] {
            let message = parse_fault(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert_eq!(parse_blocks("1,2.5, 0"), Ok(BlocksArg(vec![1.0, 2.5, 0.0])));
        assert!(parse_blocks("1,x").unwrap_err().contains("`x` is not a number"));
        assert!(parse_blocks("@no such file").unwrap_err().contains("no such file: "));
    }
}
