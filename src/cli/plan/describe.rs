//! A plan in words: the torus crate's text form with remarks, and JSON.

use std::fmt::Write;

use hopbine_torus::plan::{Action, Placement, Plan, PortPlan, Rank, Run, Step, n_positions};
use serde_json::{Value, json};

use super::Subject;

/// The plan's text form with remarks that say where peers are; reads back as the same plan.
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
    // The text form numbers neither ports nor steps; the remarks do.
    let mut ports = plan.ports.iter().enumerate();
    let mut steps = [].iter().enumerate();
    for line in plan.to_string().lines() {
        if line.starts_with("port ") {
            if let Some((number, port)) = ports.next() {
                let _ = writeln!(text, "\n# port {number}: {} steps", port.steps.len());
                steps = port.steps.iter().enumerate();
            }
        } else if (line == "step" || line.starts_with("step "))
            && let Some((number, step)) = steps.next()
        {
            let _ = writeln!(text, "# step {number}: {}", remark(subject, step));
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// What a step does, in a few words.
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
        match step.recvs.iter().find(|recv| recv.from == send.to) {
            Some(recv) => parts.push(format!(
                "sends {} to, {} {} from {}",
                blocks(&send.blocks),
                verb(recv.action),
                blocks(&recv.blocks),
                place(send.to)
            )),
            None => parts.push(format!("sends {} to {}", blocks(&send.blocks), place(send.to))),
        }
    }
    for recv in &step.recvs {
        if !step.sends.iter().any(|send| send.to == recv.from) {
            let (verb, blocks) = (verb(recv.action), blocks(&recv.blocks));
            parts.push(format!("{verb} {blocks} from {}", place(recv.from)));
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
    let here = map.node_of(shape, subject.plan.rank);
    let there = map.node_of(shape, peer);
    (shape.coord(there).to_string(), shape.distance(here, there))
}

/// The plan as one JSON object.
pub fn json(subject: &Subject) -> String {
    let Subject { algorithm, schedule, plan } = subject;
    let Plan { collective, rank, n_ranks, root, ports } = plan;
    let value = json!({
        "collective": collective.name(),
        "algorithm": algorithm,
        "torus": schedule.shape.to_string(),
        "rank": rank,
        "coord": schedule.map.coord_of(&schedule.shape, *rank).as_slice(),
        "ranks": n_ranks,
        "root": collective.is_rooted().then_some(root),
        "ports": ports.iter().map(|port| json_port(subject, port)).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn json_port(subject: &Subject, port: &PortPlan) -> Value {
    let steps: Vec<Value> = port.steps.iter().map(|step| json_step(subject, step)).collect();
    json!({
        "part": port.part,
        "parts": port.parts,
        "positions": port.positions,
        "space": port.space.name(),
        "input": json_placement(&port.input),
        "output": json_placement(&port.output),
        "steps": steps,
    })
}

fn json_placement(placement: &Placement) -> Value {
    match placement {
        Placement::Nothing => json!("nothing"),
        Placement::Identity => json!("identity"),
        Placement::Permuted(list) => json!({ "blocks": list.as_ref() }),
        Placement::One { position } => json!({ "own": position }),
    }
}

fn json_step(subject: &Subject, step: &Step) -> Value {
    let runs =
        |runs: &[Run]| -> Vec<[u32; 2]> { runs.iter().map(|run| [run.start, run.end()]).collect() };
    let sends = step.sends.iter().map(|send| {
        let (coord, hops) = coord_and_hops(subject, send.to);
        json!({ "to": send.to, "coord": coord, "hops": hops, "runs": runs(&send.blocks) })
    });
    let recvs = step.recvs.iter().map(|recv| {
        let (coord, hops) = coord_and_hops(subject, recv.from);
        let action = match recv.action {
            Action::Copy => "copy",
            Action::Reduce => "reduce",
        };
        json!({
            "from": recv.from,
            "coord": coord,
            "hops": hops,
            "action": action,
            "runs": runs(&recv.blocks),
        })
    });
    json!({
        "sends": sends.collect::<Vec<_>>(),
        "recvs": recvs.collect::<Vec<_>>(),
        "own_at": step.own_at,
    })
}
