//! How the barrier gates of all nodes are connected: pure functions of the shape.
//!
//! A gate waits for at most one gate of its own rank and one of another, and then signals at
//! most one of each; gate 0 starts and ends an operation. Two arrangements:
//!
//! - *Butterfly*, for a power of two of nodes: one gate per level. Gate i signals its own next
//!   gate and that of node ^ 2^i; the last level's next gate is gate 0, which ends it. (With
//!   sizes that are powers of two, a level stays within one dimension.)
//! - *Tree* otherwise: values go up a tree of torus neighbours and the result comes down. A node's parent is one hop
//!   nearer to node 0 in its last dimension that is not 0, so that the depth is the sum of half the sizes and every
//!   signal but those on the way round is one hop long. A node with k children has gates 1..=k for the way up, one
//!   for each child, and then as many for the way down. The root's last gate up is also its first gate down.

use hopbine_torus::geometry::{AxisLink, Shape, Vertex};

/// A gate: node and number within the node.
pub(super) type Gate = (Vertex, usize);

/// The connections of one gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GateConnections {
    /// The gate of the same node that it waits for.
    pub(super) from_local: Option<usize>,
    /// The gate of another node that it waits for.
    pub(super) from_remote: Option<Gate>,
    /// The gate of the same node that it signals.
    pub(super) to_local: Option<usize>,
    /// The gate of another node that it signals.
    pub(super) to_remote: Option<Gate>,
}

/// The two arrangements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    Butterfly,
    Tree,
}

impl Arrangement {
    /// The better arrangement for a shape.
    pub(super) fn of(shape: &Shape) -> Self {
        if shape.n_ranks().is_power_of_two() { Arrangement::Butterfly } else { Arrangement::Tree }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Arrangement::Butterfly => "butterfly",
            Arrangement::Tree => "tree",
        }
    }

    /// The most gates that a node may have in this arrangement.
    pub(super) fn most_gates(self, shape: &Shape) -> usize {
        let most_children = |size: u32| (size - 1).min(2) as usize;
        match self {
            _ if shape.n_ranks() == 1 => 1,
            Arrangement::Butterfly => shape.n_ranks().trailing_zeros() as usize,
            Arrangement::Tree => {
                2 * shape.sizes().into_iter().map(most_children).sum::<usize>() + 1
            }
        }
    }

    /// The connections of a node's gates, in order.
    pub(super) fn connections(self, shape: &Shape, node: Vertex) -> Vec<GateConnections> {
        match self {
            _ if shape.n_ranks() == 1 => {
                vec![GateConnections {
                    from_local: Some(0),
                    to_local: Some(0),
                    ..GateConnections::default()
                }]
            }
            Arrangement::Butterfly => butterfly(shape.n_ranks(), node),
            Arrangement::Tree => tree(shape, node),
        }
    }
}

fn butterfly(n_nodes: u32, node: Vertex) -> Vec<GateConnections> {
    let levels = n_nodes.trailing_zeros() as usize;
    let connections = |level: usize| {
        let (before, next) = ((level + levels - 1) % levels, (level + 1) % levels);
        GateConnections {
            from_local: Some(before),
            from_remote: Some((Vertex(node.0 ^ 1 << before), before)),
            to_local: Some(next),
            to_remote: Some((Vertex(node.0 ^ 1 << level), next)),
        }
    };
    (0..levels).map(connections).collect()
}

/// The parent of a node; `None` for node 0.
fn parent(shape: &Shape, node: Vertex) -> Option<Vertex> {
    let at = shape.coord(node);
    let dim = (0..shape.n_dims()).rev().find(|&dim| at[dim] > 0)?;
    let axis = shape.axes()[dim];
    // Past half of the ring, the way round its end is shorter.
    let is_past_half = axis.link == AxisLink::Torus && at[dim] > axis.size / 2;
    let nearer = if is_past_half { (at[dim] + 1) % axis.size } else { at[dim] - 1 };
    Some(shape.vertex(at.with(dim, nearer)))
}

/// The children of a node, each once, in order.
fn children(shape: &Shape, node: Vertex) -> Vec<Vertex> {
    let at = shape.coord(node);
    let mut children = Vec::new();
    for (dim, axis) in shape.axes().iter().enumerate() {
        for step in [1, axis.size - 1] {
            let child = shape.vertex(at.with(dim, (at[dim] + step) % axis.size));
            if parent(shape, child) == Some(node) && !children.contains(&child) {
                children.push(child);
            }
        }
    }
    children
}

fn tree(shape: &Shape, node: Vertex) -> Vec<GateConnections> {
    let mine = children(shape, node);
    let k = mine.len();
    // The gates by which a node is connected with its parent, on the way up and on the way down.
    let to_parent = |child: Vertex| children(shape, child).len();
    let from_parent = |child: Vertex| match children(shape, child).len() {
        0 => 0,
        n => n + 1,
    };
    // The gate by which a node with `k` children serves its `index`-th child (from 1) on the way down.
    let down = |is_root: bool, k: usize, index: usize| match index {
        _ if is_root && index == k => k,
        _ => k + index,
    };
    let above = parent(shape, node).map(|parent| {
        let siblings = children(shape, parent);
        let index = 1 + siblings.iter().position(|&child| child == node).unwrap_or(0);
        ((parent, index), (parent, down(parent == Vertex(0), siblings.len(), index)))
    });
    let (takes, serves) = (above.map(|above| above.0), above.map(|above| above.1));
    if k == 0 {
        // A leaf first signals its parent, and ends when the parent signals it.
        return vec![GateConnections {
            from_remote: serves,
            to_remote: takes,
            ..GateConnections::default()
        }];
    }
    let is_root = above.is_none();
    let n_gates = if is_root { 2 * k } else { 2 * k + 1 };
    let last_down = if is_root && k == 1 { 1 } else { n_gates - 1 };
    let mut connections = vec![GateConnections {
        from_local: Some(last_down),
        to_local: Some(1),
        ..GateConnections::default()
    }];
    for gate in 1..n_gates {
        let turns = is_root && gate == k;
        let goes_up = gate <= k;
        // Children are served in order, but the root serves its last one first.
        let child = match gate {
            _ if goes_up => mine[gate - 1],
            _ => mine[gate - k - 1],
        };
        let next = if gate == last_down { 0 } else { gate + 1 };
        connections.push(if goes_up {
            GateConnections {
                from_local: Some(gate - 1),
                from_remote: Some((child, to_parent(child))),
                to_local: (gate < k || turns).then_some(next),
                to_remote: match (turns, gate == k) {
                    (true, _) => Some((child, from_parent(child))),
                    (false, true) => takes,
                    (false, false) => None,
                },
            }
        } else {
            let first = !is_root && gate == k + 1;
            GateConnections {
                from_local: (!first).then_some(gate - 1),
                from_remote: if first { serves } else { None },
                to_local: Some(next),
                to_remote: Some((child, from_parent(child))),
            }
        });
    }
    connections
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates one operation: every gate passes on the set of contributions that it has. Returns each node's
    /// result; panics if a node waits for ever.
    fn run(shape: &Shape, arrangement: Arrangement) -> Vec<u128> {
        let n = shape.n_ranks();
        let all: Vec<Vec<GateConnections>> =
            shape.vertices().map(|node| arrangement.connections(shape, node)).collect();
        // Pending signals: (to, from, value).
        let mut signals: Vec<(Gate, Gate, u128)> = Vec::new();
        let mut results = vec![None; n as usize];
        let send = |signals: &mut Vec<_>, from: Gate, value| {
            let GateConnections { to_local, to_remote, .. } = all[from.0.index()][from.1];
            signals.extend(to_local.map(|gate| ((from.0, gate), from, value)));
            signals.extend(to_remote.map(|gate| (gate, from, value)));
        };
        shape.vertices().for_each(|node| send(&mut signals, (node, 0), 1 << node.0));
        let mut arrived: Vec<Vec<[Option<u128>; 2]>> =
            all.iter().map(|gates| vec![[None; 2]; gates.len()]).collect();
        while let Some((to, from, value)) = signals.pop() {
            let GateConnections { from_local, from_remote, .. } = all[to.0.index()][to.1];
            let is_local = from.0 == to.0;
            if is_local {
                assert_eq!(from_local, Some(from.1), "{to:?} is signalled by {from:?}");
            } else {
                assert_eq!(from_remote, Some(from), "{to:?} is signalled by {from:?}");
            }
            let place = &mut arrived[to.0.index()][to.1];
            let side = &mut place[usize::from(!is_local)];
            assert!(side.replace(value).is_none(), "{to:?} is signalled twice");
            let complete = place[0].is_some() == from_local.is_some()
                && place[1].is_some() == from_remote.is_some();
            if complete {
                let both = place[0].unwrap_or(0) | place[1].unwrap_or(0);
                if to.1 == 0 {
                    results[to.0.index()] = Some(both);
                } else {
                    send(&mut signals, to, both);
                }
            }
        }
        results.into_iter().map(|result| result.expect("every node ends")).collect()
    }

    #[test]
    fn everyone_gets_everything() {
        for shape in
            ["1", "2", "3", "5", "7m", "2x3", "3x3", "5x4m", "2x3x2", "3x3x3", "1x3x1", "4x5x6"]
        {
            let shape: Shape = shape.parse().unwrap();
            let full = u128::MAX >> (128 - shape.n_ranks());
            assert_eq!(run(&shape, Arrangement::Tree), vec![full; shape.n_ranks() as usize]);
            let n_gates =
                shape.vertices().map(|node| Arrangement::Tree.connections(&shape, node).len());
            assert!(n_gates.max() <= Some(Arrangement::Tree.most_gates(&shape)), "{shape}");
        }
        for shape in ["1", "2", "4", "8x2", "4x4x4"] {
            let shape: Shape = shape.parse().unwrap();
            assert_eq!(Arrangement::of(&shape), Arrangement::Butterfly);
            let n_gates = Arrangement::Butterfly.connections(&shape, Vertex(0)).len();
            assert_eq!(n_gates, Arrangement::Butterfly.most_gates(&shape));
            let full = u128::MAX >> (128 - shape.n_ranks());
            assert_eq!(run(&shape, Arrangement::Butterfly), vec![full; shape.n_ranks() as usize]);
        }
    }

    #[test]
    fn trees_are_shallow_and_fit_the_gates_of_a_tni() {
        let shape: Shape = "24x18x16".parse().unwrap();
        for node in shape.vertices() {
            let mut at = node;
            let mut depth = 0;
            while let Some(above) = parent(&shape, at) {
                assert_eq!(shape.distance(at, above), 1);
                (at, depth) = (above, depth + 1);
            }
            assert_eq!(depth, shape.distance(Vertex(0), node));
            // notes.md: at most one start/end gate and 32 relay gates.
            assert!(Arrangement::Tree.connections(&shape, node).len() <= 33);
        }
    }
}
