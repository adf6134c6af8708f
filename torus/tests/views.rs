//! The network model's view of a plan equals the plan: every algorithm on every shape.

use std::collections::HashMap;

use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{DependsOn, Flow, MessagesKey, StepView, max_ports};
use hopbine_torus::{Collective, LaneId, Rank, Request, StepId, registry};

use crate::common::{NODE_SHAPES, SHAPES};

/// Positions of a step's message, by sender and receiver.
type Messages = HashMap<(Rank, Rank), u64>;

/// The messages of a step.
fn messages(flow: &dyn Flow, lane: LaneId, step: StepId) -> Messages {
    let mut messages = Messages::new();
    flow.volumes(lane, step, &mut |from, to, positions| {
        *messages.entry((from, to)).or_default() += positions;
    });
    messages
}

/// The messages according to the step's view, if it has a symmetric view, and whether they are the same for all
/// lines.
fn of_lines(
    flow: &dyn Flow,
    shape: &Shape,
    map: &RankMap,
    lane: LaneId,
    step: StepId,
) -> Option<(Messages, bool)> {
    let mut messages = Messages::new();
    let lines = match flow.view(lane, step) {
        StepView::Lines(lines) => lines,
        StepView::Shifts(step) => {
            assert_eq!(step.sizes.iter().product::<u32>(), shape.n_ranks());
            for (from, shift) in
                shape.vertices().flat_map(|from| step.shifts.iter().map(move |shift| (from, shift)))
            {
                let ends = [from, step.target(shift, from)];
                let [from, to] = ends.map(|vertex| map.rank_of(shape, vertex));
                *messages.entry((from, to)).or_default() += shift.positions;
            }
            return Some((messages, true));
        }
        StepView::Products(product) => {
            for vertex in shape.vertices() {
                let at = shape.coord(vertex);
                for choice in product.choices() {
                    let mut to = at;
                    let moves = product.lines.iter().zip(choice);
                    let is_sent = moves.filter_map(|(line, target)| Some((line, target?))).all(
                        |(line, target)| {
                            let mut hops = line.hops();
                            let hop =
                                hops.find(|hop| (hop.from, hop.target) == (at[line.dim], target));
                            hop.inspect(|hop| to = to.with(line.dim, hop.to)).is_some()
                        },
                    );
                    if is_sent {
                        let ends = [at, to].map(|at| map.rank_of(shape, shape.vertex(at)));
                        let before = messages.insert((ends[0], ends[1]), product.positions);
                        assert_eq!(before, None);
                    }
                }
            }
            return Some((messages, product.is_everywhere()));
        }
        StepView::Messages(_) => return None,
    };
    for vertex in shape.vertices() {
        let at = shape.coord(vertex);
        for hop in lines.hops().filter(|hop| hop.from == at[lines.dim]) {
            assert!(hop.positions <= lines.positions[hop.target]);
            let rank = |a| map.rank_of(shape, shape.vertex(at.with(lines.dim, a)));
            let to = rank(hop.to);
            if lines.except != Some(to) && hop.positions > 0 {
                messages.insert((rank(hop.from), to), hop.positions);
            }
        }
    }
    Some((messages, lines.is_everywhere()))
}

fn check_views(collective: Collective) {
    let (mut n_steps, mut n_lines, mut n_bounded, mut n_keys) = (0, 0, 0, 0);
    for text in SHAPES.iter().chain(&NODE_SHAPES) {
        let shape: Shape = text.parse().unwrap();
        for algorithm in registry::algorithms(collective) {
            for ports in [1, max_ports(&shape)] {
                let map = RankMap::ColumnMajor;
                let root = Rank(shape.n_ranks() / 2);
                let request =
                    Request { shape: shape.clone(), map: map.clone(), root, ports: Some(ports) };
                let Ok(schedule) = algorithm.schedule(&request) else { continue };
                let flow = schedule.expand().unwrap();
                let mut of_keys: HashMap<MessagesKey, Messages> = HashMap::new();
                for (lane, header) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
                    for step in StepId::first(header.n_steps) {
                        let expected = messages(&flow, lane, step);
                        let which = || {
                            format!("{} on {text}, {ports} ports, {lane}, {step}", algorithm.name)
                        };
                        match of_lines(&flow, &shape, &map, lane, step) {
                            Some((found, true)) => {
                                assert_eq!(found, expected, "{}", which());
                                n_lines += 1;
                            }
                            // The view is an upper bound for all lines, and some line attains it.
                            Some((found, false)) => {
                                let is_bound = |(ends, positions): (&(Rank, Rank), &u64)| {
                                    found.get(ends).is_some_and(|most| positions <= most)
                                };
                                assert!(expected.iter().all(is_bound), "{}", which());
                                let most = |messages: &Messages| messages.values().copied().max();
                                assert_eq!(most(&found), most(&expected), "{}", which());
                                n_bounded += 1;
                            }
                            // Steps with the same key have the same messages.
                            None => {
                                if let StepView::Messages(Some(key)) = flow.view(lane, step) {
                                    let first = of_keys.entry(key).or_insert(expected.clone());
                                    assert_eq!(*first, expected, "{}", which());
                                    n_keys += 1;
                                }
                            }
                        }
                        n_steps += 1;
                        if let DependsOn::Step(before) = flow.depends_on(lane, step) {
                            assert!(before < step, "{}", which());
                        }
                    }
                }
            }
        }
    }
    println!(
        "{collective}: of {n_steps} steps {n_lines} are alike on all lines, {n_bounded} on some, {n_keys} have keys"
    );
    let is_symmetric = matches!(
        collective,
        Collective::Allreduce
            | Collective::ReduceScatter
            | Collective::Allgather
            | Collective::Alltoall
            | Collective::Bcast
            | Collective::Reduce
    );
    assert!(n_steps > 0 && (n_lines > 0 || !is_symmetric));
    assert!(n_bounded > 0 || !collective.is_rooted());
    assert!(n_keys > 0 || collective != Collective::Allreduce);
}

crate::for_every_collective!(check_views);

/// A rank sends no data that it does not have: data in a step's messages that were not there at the start have
/// arrived by the step on which it depends.
#[test]
fn steps_depend_on_what_they_pass_on() {
    let mut n_passed_on = 0;
    for text in ["5", "8", "2x3", "4x4", "2x2+3", "2x2x2"] {
        let shape: Shape = text.parse().unwrap();
        for collective in [Collective::Alltoall, Collective::Allgather, Collective::Gather] {
            for algorithm in registry::algorithms(collective) {
                let (map, root) = (RankMap::RowMajor, Rank(0));
                let request = Request { shape: shape.clone(), map, root, ports: None };
                let Ok(schedule) = algorithm.schedule(&request) else { continue };
                let flow = schedule.expand().unwrap();
                for (lane, header) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
                    // The step in which data last arrived, by rank and position.
                    let mut arrived: HashMap<(Rank, u32), StepId> = HashMap::new();
                    for step in StepId::first(header.n_steps) {
                        let mut now = Vec::new();
                        let tile = &flow.tiles(lane, u32::MAX)[0];
                        flow.messages(lane, step, tile, &mut |message| {
                            let runs = message.runs.iter();
                            for position in runs.flat_map(|run| run.start..run.end()) {
                                if let Some(&before) = arrived.get(&(message.from, position)) {
                                    let DependsOn::Step(depends_on) = flow.depends_on(lane, step)
                                    else {
                                        panic!("{} on {text}: {lane} {step}", algorithm.name)
                                    };
                                    assert!(before <= depends_on, "{} on {text}", algorithm.name);
                                    n_passed_on += 1;
                                }
                                now.push((message.to, position));
                            }
                        });
                        arrived.extend(now.into_iter().map(|at| (at, step)));
                    }
                }
            }
        }
    }
    assert!(n_passed_on > 1000, "{n_passed_on}");
}
