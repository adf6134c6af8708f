//! `hopbine traffic`: the bytes that schedules put on the links of a network, or send out of groups of nodes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hopbine_torus::geometry::tofu::TofuBox;
use hopbine_torus::geometry::{
    Axis, Coord, Embedding, Topology, Vertex, VertexGroups, parse_coords,
};
use hopbine_torus::plan::{Schedule, Traffic, traffic};
use hopbine_torus::{Collective, Rank, Shape};
use rayon::prelude::*;
use serde_json::Value;

use super::args;
use super::cells::{Cell, Column, IN_FLIGHT, decimal};
use super::error::{CliError, Outcome};
use super::progress;
use super::report::{Report, RowsArg};
use super::selection::Selection;

/// Count the bytes that schedules send over links, or out of groups of ranks
///
/// Nothing is run. The command routes the messages of all ranks over the links of the torus, or of a network that
/// contains it, or counts those that leave a group.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine traffic allreduce --torus 8x8x8
  hopbine traffic allreduce --torus 16x24x16 --algorithm mixed --tofu
  hopbine traffic allgather --torus 8x6x4 --tofu=24x23x24 --at 3,0,22
  hopbine traffic bcast --torus 4x4 --network 16x16m --at 2,12
  hopbine traffic allreduce --torus 1024 --ports 1 --groups 124")]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Number of ports; by default as many as the shape has directions
    #[arg(long, value_name = "N")]
    ports: Option<u32>,
    /// The root of a rooted collective
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Fold the torus onto Tofu's six dimensions. UNITS is the size of the machine in Tofu units along x, y and z,
    /// such as 24x23x24; without it the torus is the whole machine, with no links that wrap around
    #[arg(long, value_name = "UNITS", num_args = 0..=1, require_equals = true,
          default_missing_value = "", conflicts_with_all = ["network", "groups"])]
    tofu: Option<String>,
    /// Shape of a larger network, in which the torus is a box
    #[arg(long, value_name = "SHAPE", conflicts_with = "groups")]
    network: Option<Shape>,
    /// Coordinate of the box's first corner in the network, or of its first unit in the Tofu machine
    #[arg(long, value_name = "COORD", conflicts_with = "groups")]
    at: Option<Coord>,
    /// File with the coordinate of each node in the network, one per line
    #[arg(long, value_name = "FILE", requires = "network", conflicts_with = "at")]
    places: Option<PathBuf>,
    /// Count the bytes that leave groups of ranks: groups of N consecutive ranks, or those of a file that has each
    /// rank's group name on a line
    #[arg(long, value_name = "N|FILE")]
    groups: Option<GroupsArg>,
    #[command(flatten)]
    out: RowsArg,
}

/// The `--groups` argument.
#[derive(Clone, Debug)]
enum GroupsArg {
    Of(u32),
    File(PathBuf),
}

impl FromStr for GroupsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) => Err("a group has at least one rank".to_owned()),
            Ok(size) => Ok(GroupsArg::Of(size)),
            Err(_) => Ok(GroupsArg::File(PathBuf::from(text))),
        }
    }
}

/// The topology on which traffic is counted, its name, and whether its vertices are ranks.
struct Network {
    topology: Box<dyn Topology + Sync>,
    name: String,
    of_ranks: bool,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    if args.selection.collective == Some(Collective::Barrier) {
        return Err(CliError::Usage(
            "a barrier's messages are empty: there are no bytes to count".into(),
        ));
    }
    args.out.output.check([])?;
    let (collective, shape, schedules, notes) =
        args.selection.schedules(args.root, |_| [args.ports])?;
    let network = network(&args, &shape)?;
    let bar = progress::bar(schedules.len() as u64, "counting");
    let count = |(name, schedule): &(String, Schedule)| {
        let expansion = schedule.expand().expect("the registry's schedules are valid");
        let place = |rank: Rank| match network.of_ranks {
            true => Vertex(rank.0),
            false => schedule.map.vertex_of(&schedule.shape, rank),
        };
        let found = traffic(&expansion, &*network.topology, place);
        bar.advance(1);
        (name.clone(), schedule.ports, found)
    };
    let rows: Vec<(String, u32, Traffic)> = schedules.par_iter().map(count).collect();
    drop(bar);
    let report = report(collective, &shape, &network, &rows, notes);
    report.write(&args.out)?;
    Ok(Outcome::Well)
}

fn network(args: &Args, shape: &Shape) -> Result<Network, CliError> {
    let on = |topology: Embedding, name| {
        Ok(Network { topology: Box::new(topology), name, of_ranks: false })
    };
    let corner = |n_dims: usize| args.at.unwrap_or_else(|| Coord::new(&vec![0; n_dims]));
    if let Some(groups) = &args.groups {
        let (groups, name) = match groups {
            GroupsArg::Of(size) => (
                VertexGroups::consecutive(shape.n_ranks(), *size),
                format!("groups of {size} consecutive ranks"),
            ),
            GroupsArg::File(path) => {
                (read_groups(path, shape)?, format!("the groups of {}", path.display()))
            }
        };
        Ok(Network { topology: Box::new(groups), name, of_ranks: true })
    } else if let Some(units) = &args.tofu {
        let (tofu_box, machine) = tofu(units, shape)?;
        let origin = corner(3);
        let ranks = shape.ranks_per_node();
        let name = format!("Tofu, {machine} units, from {origin}");
        on(Embedding::tofu(tofu_box, ranks, &machine, origin)?, name)
    } else if let Some(network) = &args.network {
        if let Some(path) = &args.places {
            let coords = parse_coords(&args::read(path)?)
                .map_err(|(line, error)| CliError::text(path, format!("line {line}: {error}")))?;
            let name = format!("the places of {} in {network}", path.display());
            return on(Embedding::list(shape, network.clone(), &coords)?, name);
        }
        let origin = corner(network.n_dims());
        let name = format!("a box in {network}, from {origin}");
        on(Embedding::sub_box(shape, network.clone(), origin)?, name)
    } else if args.at.is_some() {
        Err(CliError::Usage("--at needs --network or --tofu".into()))
    } else {
        on(Embedding::identity(shape), "the torus itself".to_owned())
    }
}

/// The box of Tofu units that a shape occupies, and the shape of the machine.
fn tofu(units: &str, shape: &Shape) -> Result<(TofuBox, Shape), CliError> {
    let linked = shape.node_dim().unwrap_or(shape.n_dims());
    let sizes: Option<[u32; 3]> = shape.sizes()[..linked].try_into().ok();
    let tofu_box = sizes.and_then(TofuBox::from_logical).ok_or_else(|| {
        CliError::Usage(format!(
            "{shape} is not a box of Tofu units: it must have three dimensions, multiples of 2, 3 and 2"
        ))
    })?;
    let machine = match units {
        "" => Shape::from_axes(tofu_box.units.map(Axis::mesh).to_vec()).expect("a box"),
        units => units.parse().map_err(|error| CliError::Usage(format!("--tofu: {error}")))?,
    };
    Ok((tofu_box, machine))
}

fn read_groups(path: &Path, shape: &Shape) -> Result<VertexGroups, CliError> {
    let text = args::read(path)?;
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let names = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let group_of: Vec<u32> = names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let next = numbers.len() as u32;
            *numbers.entry(name).or_insert(next)
        })
        .collect();
    if group_of.len() != shape.n_ranks() as usize {
        let message =
            format!("{} groups for the {} ranks of {shape}", group_of.len(), shape.n_ranks());
        return Err(CliError::text(path, message));
    }
    Ok(VertexGroups::new(group_of))
}

fn report(
    collective: Collective,
    shape: &Shape,
    network: &Network,
    rows: &[(String, u32, Traffic)],
    mut notes: Vec<String>,
) -> Report {
    let has_nodes = shape.node_dim().is_some() && !network.of_ranks;
    let has_windows = rows.iter().any(|(.., found)| found.in_flight.is_some());
    let mut columns = vec![
        Column::text("algorithm", "algorithm"),
        Column::number("ports", "ports").yields(1),
        Column::number("steps", "steps").yields(2),
        Column::number("messages", "messages").yields(5),
        Column::number("in_flight", "in flight").yields(6).only_if(has_windows),
        Column::number("volume", "volume"),
    ];
    columns.extend(if network.of_ranks {
        [Column::number("crossing", "crossing"), Column::number("share", "share").yields(3)]
    } else {
        [Column::number("hop_bytes", "hop-bytes"), Column::number("hops", "hops").yields(3)]
    });
    columns.extend([
        Column::number("link_load", "link load"),
        Column::text("link", "busiest link").yields(4),
        Column::number("step_load", "in step"),
        Column::number("between_nodes", "between").yields(7).only_if(has_nodes),
        Column::number("inside_nodes", "inside").yields(7).only_if(has_nodes),
    ]);
    let multiple = |value: f64| Cell::new(value, decimal(value, 4));
    let cells = |(name, ports, found): &(String, u32, Traffic)| {
        let sent = found.mean_sent;
        let per_byte = if sent > 0.0 { found.hop_bytes / sent } else { 0.0 };
        let mut cells = vec![
            Cell::text(name),
            Cell::count(*ports),
            Cell::count(found.n_steps as u64),
            Cell::count(found.max_messages as u64),
            found.in_flight.map_or_else(Cell::none, Cell::count),
            multiple(found.max_sent),
        ];
        cells.extend(if network.of_ranks {
            let percent = format!("{}%", decimal(100.0 * per_byte, 1));
            [multiple(found.crossed()), Cell::new(per_byte, percent)]
        } else {
            [multiple(found.hop_bytes), multiple(per_byte)]
        });
        let link = found.max_link.map(|link| network.topology.link_name(link));
        cells.extend([
            multiple(found.max_link_load),
            link.map_or_else(Cell::none, Cell::text),
            multiple(found.step_load),
            multiple(found.between_nodes),
            multiple(found.inside_nodes),
        ]);
        cells
    };
    let figures = if network.of_ranks {
        "crossing (by all ranks; share: part of all bytes sent)"
    } else {
        "hop-bytes (per rank; hops: links that a byte crosses on average)"
    };
    notes.insert(
        0,
        format!(
            "Volume (sent by the busiest rank), {figures} and link load are multiples of n, the \
             bytes of a rank's vector or of all its blocks. In step: the load of each step's busiest \
             link, added up."
        ),
    );
    if has_windows {
        notes.push(IN_FLIGHT.to_owned());
    }
    Report {
        about: vec![
            ("collective", Value::from(collective.name())),
            ("torus", Value::from(shape.to_string())),
            ("network", Value::from(network.name.clone())),
        ],
        heading: format!("{collective} on {shape}, counted on {}", network.name),
        columns,
        rows: rows.iter().map(cells).collect(),
        notes,
    }
}
