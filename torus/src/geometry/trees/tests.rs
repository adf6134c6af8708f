//! The trees span the shape, share no link, and are as many as possible.

use std::collections::HashSet;

use super::*;

const SHAPES: [&str; 31] = [
    "1",
    "2",
    "2m",
    "3",
    "3m",
    "7",
    "8m",
    "1x1",
    "2x2",
    "2x3",
    "3x3",
    "2mx5",
    "4mx4m",
    "5x1x4",
    "3mx3",
    "6x4",
    "2x2x2",
    "2x3x2",
    "3x3x3",
    "4x5x6",
    "3mx4mx2m",
    "4x2mx3",
    "2x3x2x2x3x2",
    "3x3x2x3m",
    "1+4",
    "3+2",
    "2x2+1",
    "4x3+3",
    "3mx3x2+2",
    "2x2x2x2x2",
    "5x4x3+7",
];

/// The link between two nodes of the machine; `None` inside one node.
fn link(shape: &Shape, from: Vertex, to: Vertex) -> Option<(Vertex, Vertex)> {
    let ranks = shape.ranks_per_node();
    let (from, to) = (Vertex(from.0 / ranks), Vertex(to.0 / ranks));
    (from != to).then_some((from, to))
}

fn check(shape: &Shape, root: Vertex) {
    let trees = Trees::new(shape, root);
    assert_eq!(trees.root(), root);
    let mut used = HashSet::new();
    for tree in 0..trees.n_trees() {
        let depths = trees.depths(tree);
        let mut n_children = 0;
        for node in shape.vertices() {
            // That `depths` terminates is part of the proof: the path up from every node leads to the root.
            assert_eq!(depths[node.index()] == 0, node == root);
            for child in trees.children(tree, node) {
                assert_eq!(trees.parent(tree, child), Some(node), "{shape} {root} {tree}");
                n_children += 1;
            }
            let Some(parent) = trees.parent(tree, node) else { continue };
            assert_eq!(depths[node.index()], depths[parent.index()] + 1);
            if let Some(link) = link(shape, parent, node) {
                assert_eq!(shape.distance(parent, node), 1);
                assert!(used.insert(link), "{shape} root {root}: {link:?} has two trees");
            }
        }
        assert_eq!(n_children, shape.n_ranks() - 1, "{shape} {root} {tree}");
    }
}

#[test]
fn trees_span_and_share_no_link() {
    for text in SHAPES {
        let shape: Shape = text.parse().unwrap();
        shape.vertices().for_each(|root| check(&shape, root));
    }
}

/// No shape can have more trees: their number is that of the links into the node with the fewest links.
#[test]
fn there_are_as_many_as_links_allow() {
    for text in SHAPES {
        let shape: Shape = text.parse().unwrap();
        let ranks = shape.ranks_per_node();
        let n_links = |node: Vertex| {
            let others = shape.vertices().filter(|other| other.0 % ranks == node.0 % ranks);
            others.filter(|&other| shape.distance(node, other) == 1).count()
        };
        let fewest = shape.vertices().map(n_links).min().unwrap();
        assert_eq!(Trees::new(&shape, Vertex(0)).n_trees(), fewest.max(1), "{text}");
    }
}

#[test]
fn trees_are_no_deeper_than_their_dimension_and_half_the_others() {
    for text in ["8x8x8", "16x16x16", "48x69x48", "2x3x2x2x3x2", "23x31"] {
        let shape: Shape = text.parse().unwrap();
        let root = Vertex(shape.n_ranks() / 3);
        let trees = Trees::new(&shape, root);
        let half: u32 = shape.sizes().iter().map(|size| size / 2).sum();
        let longest = shape.sizes().into_iter().max().unwrap();
        for tree in 0..trees.n_trees() {
            let deepest = trees.depths(tree).into_iter().max().unwrap();
            println!("{text} tree {tree}: {deepest}");
            assert!(deepest <= half + longest.div_ceil(2) + 1, "{text} {tree}: {deepest}");
        }
    }
}

#[test]
fn the_whole_of_fugaku_has_six_trees() {
    let shape: Shape = "48x69x48".parse().unwrap();
    assert_eq!(Trees::new(&shape, Vertex(0)).n_trees(), 6);
    check(&shape, Vertex(77_777));
}
