//! A plan as text: the torus crate's text form with remarks, and JSON.

use std::fmt::Write;

use hopbine_torus::collectives::{Action, Payload};
use hopbine_torus::plan::{Lane, Plan, Run, Space, Step, Transfer, n_positions};
use hopbine_torus::{Block, Position, Rank};
use serde_json::{Value, json};

use super::Subject;

/// The plan's text form with comments on the peers' coordinates; it parses as the same plan.
pub fn text(subject: &Subject) -> String {
    let Subject { algorithm, schedule, plan } = subject;
    let (shape, map) = (&schedule.shape, &schedule.map);
    let mut text = format!(
        "# {algorithm} on {shape}: rank {} is at {}\n",
        plan.rank,
        map.coord_of(shape, plan.rank)
    );
    if plan.collective.is_rooted() {
        let root = map.coord_of(shape, plan.root);
        let _ = writeln!(text, "# the root, rank {}, is at {root}", plan.root);
    }
    if shape.node_dim().is_some() {
        let _ = writeln!(text, "# {}", sent(subject));
    }
    // The text form numbers neither lanes nor steps; the comments do.
    let mut lanes = plan.lanes.iter().enumerate();
    let mut steps = [].iter().enumerate();
    for line in plan.to_string().lines() {
        if line.starts_with("lane ") {
            if let Some((number, lane)) = lanes.next() {
                let window = lane.window.map(|window| format!(", {window} under way at a time"));
                let (steps_of, window) = (lane.steps.len(), window.unwrap_or_default());
                let _ = writeln!(text, "\n# lane {number}: {steps_of} steps{window}");
                steps = lane.steps.iter().enumerate();
            }
        } else if line.starts_with("step ")
            && let Some((number, step)) = steps.next()
        {
            let _ = writeln!(text, "# step {number}: {}", remark(subject, step));
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// A summary of the blocks that the rank sends, between nodes and within its node.
fn sent(Subject { schedule, plan, .. }: &Subject) -> String {
    let (shape, map) = (&schedule.shape, &schedule.map);
    let [here, mut between, mut inside] = [map.vertex_of(shape, plan.rank).0, 0, 0];
    let (mut n_messages, per_node) = (0, shape.ranks_per_node());
    for send in plan.lanes.iter().flat_map(|lane| &lane.steps).flat_map(|step| &step.sends) {
        let there = map.vertex_of(shape, send.peer).0;
        let is_near = here / per_node == there / per_node;
        *(if is_near { &mut inside } else { &mut between }) += n_positions(&send.runs) as u32;
        n_messages += 1;
    }
    format!("{n_messages} messages are sent: {between} blocks to other nodes, {inside} on this one")
}

/// A short description of a step.
fn remark(subject: &Subject, step: &Step) -> String {
    let place = |rank: Rank| {
        let (coord, hops) = coord_and_hops(subject, rank);
        format!("{rank} at {coord}, {hops} hop{}", if hops == 1 { "" } else { "s" })
    };
    let blocks = |runs: &[Run]| match n_positions(runs) {
        1 => "1 block".to_owned(),
        n => format!("{n} blocks"),
    };
    let mut parts = Vec::new();
    for send in &step.sends {
        match step.recvs.iter().find(|recv| recv.peer == send.peer) {
            Some(recv) => parts.push(format!(
                "sends {} to, {} {} from {}",
                blocks(&send.runs),
                verb(step.action),
                blocks(&recv.runs),
                place(send.peer)
            )),
            None => parts.push(format!("sends {} to {}", blocks(&send.runs), place(send.peer))),
        }
    }
    for recv in &step.recvs {
        if !step.sends.iter().any(|send| send.peer == recv.peer) {
            let (verb, blocks) = (verb(step.action), blocks(&recv.runs));
            parts.push(format!("{verb} {blocks} from {}", place(recv.peer)));
        }
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Copy => "stores",
        Action::Reduce => "combines",
    }
}

fn coord_and_hops(subject: &Subject, peer: Rank) -> (String, u32) {
    let (shape, map) = (&subject.schedule.shape, &subject.schedule.map);
    let here = map.vertex_of(shape, subject.plan.rank);
    let there = map.vertex_of(shape, peer);
    (shape.coord(there).to_string(), shape.distance(here, there))
}

/// The plan as one JSON object.
pub fn json(subject: &Subject) -> String {
    let Subject { algorithm, schedule, plan } = subject;
    let Plan { collective, rank, n_ranks, root, lanes } = plan;
    let value = json!({
        "collective": collective.name(),
        "algorithm": algorithm,
        "torus": schedule.shape.to_string(),
        "rank": rank.0,
        "coord": schedule.map.coord_of(&schedule.shape, *rank).as_slice(),
        "ranks": n_ranks,
        "root": collective.is_rooted().then_some(root.0),
        "lanes": lanes.iter().map(|lane| json_lane(subject, lane)).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn json_lane(subject: &Subject, lane: &Lane) -> Value {
    let Lane { port, part, space, window, steps } = lane;
    let rank = subject.plan.rank;
    let list = |block_at: &dyn Fn(&Space, Rank, Position) -> Option<Block>| {
        let all = Position::first(space.n_positions)
            .map(|at| block_at(space, rank, at).map(|block| block.0));
        Value::from(all.collect::<Vec<_>>())
    };
    let order = match space.payload {
        _ if space.is_identity() => json!("identity"),
        Payload::Pairs => {
            json!({ "start": list(&Space::block_at_start), "end": list(&Space::block_at_end) })
        }
        _ => json!({ "blocks": list(&Space::block_at_start) }),
    };
    json!({
        "port": port.0,
        "part": part.start,
        "units": part.weight(),
        "parts": part.units,
        "positions": space.n_positions,
        "cut": space.payload.name(),
        "order": order,
        "window": window,
        "steps": steps.iter().map(|step| json_step(subject, step)).collect::<Vec<_>>(),
    })
}

fn json_step(subject: &Subject, step: &Step) -> Value {
    let transfers = |transfers: &[Transfer], end: &str| -> Vec<Value> {
        let transfer = |Transfer { peer, port, runs }: &Transfer| {
            let (coord, hops) = coord_and_hops(subject, *peer);
            let runs: Vec<[u32; 2]> = runs.iter().map(|run| [run.start, run.end()]).collect();
            json!({ end: peer.0, "port": port.0, "coord": coord, "hops": hops, "runs": runs })
        };
        transfers.iter().map(transfer).collect()
    };
    json!({
        "action": step.action.name(),
        "own_at": step.own_at,
        "sends": transfers(&step.sends, "to"),
        "recvs": transfers(&step.recvs, "from"),
    })
}
