//! The whole product: every algorithm on every shape, with every distribution of block sizes, every root and every
//! number of ports, proved and executed. The whole product takes an hour. Each ordinary test run covers every pair of
//! two values of these parameters, of the call's form and of the segment size.
//!
//! For collectives without blocks, lengths of vectors replace the distributions.

use super::case::{Case, DISTRIBUTIONS, Form};
use crate::all::{NODE_SHAPES, SHAPES};
use crate::common::calls::{check, config_on};
use crate::common::reference::{self, input};
use hopbine::torus::geometry::{RankMap, Shape};
use hopbine::torus::{Algorithm, Collective, Request, registry};
use hopbine::{CallOptions, Communicator, Drive, EmulationConfig, OnTimeout, emulate};
use hopbine_torus::plan;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Shapes of the ordinary test run: one of each kind.
const SAMPLED: [&str; 9] = ["1", "7", "12", "1x6", "3x3", "2x1x4", "2x3x2", "1+4", "2x2+3"];

const SEGMENTS: [u64; 3] = [1 << 20, 4096, 100];

/// Length of the vectors on p ranks.
fn length(index: usize, p: usize) -> usize {
    [5, 0, 1, p - 1, p, p + 1, 97, 1000][index]
}

/// One case: a call, without its shape.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// Index in the registry.
    algorithm: usize,
    distribution: usize,
    /// Index in the shape's roots.
    root: usize,
    ports: u32,
    form: usize,
    segment: usize,
}

/// All calls on one shape.
struct Product {
    text: &'static str,
    shape: Shape,
    roots: Vec<u32>,
    algorithms: Vec<Algorithm>,
    calls: Vec<Call>,
}

impl Product {
    /// Makes all calls on a shape. Pseudo-random numbers select each call's form and segment size.
    fn new(text: &'static str) -> Self {
        let shape: Shape = text.parse().unwrap();
        let p = shape.n_ranks();
        let mut roots = if p <= 8 { (0..p).collect() } else { vec![0, 1, p / 2, p - 1] };
        roots.dedup();
        let most = EmulationConfig::new(shape.clone()).ports;
        let most = most.unwrap_or(plan::max_ports(&shape).min(6));
        let algorithms = registry::all();
        let mut calls = Vec::new();
        for (index, algorithm) in algorithms.iter().enumerate() {
            if algorithm.serves(&shape).is_err() {
                continue;
            }
            let n_roots = if algorithm.collective.is_rooted() { roots.len() } else { 1 };
            for (root, ports) in (0..n_roots).flat_map(|root| (1..=most).map(move |n| (root, n))) {
                for distribution in 0..DISTRIBUTIONS.len() {
                    let number = input(index as u32, calls.len()) as usize >> 8;
                    let (form, segment) = (number % 4, number / 4 % SEGMENTS.len());
                    calls.push(Call { algorithm: index, distribution, root, ports, form, segment });
                }
            }
        }
        Product { text, shape, roots, algorithms, calls }
    }

    fn describe(&self, call: &Call) -> String {
        let algorithm = &self.algorithms[call.algorithm];
        format!(
            "{} {} on {}, {}, root {}, {} ports, {:?}, segments of {}",
            algorithm.collective,
            algorithm.name,
            self.text,
            DISTRIBUTIONS[call.distribution].0,
            self.roots[call.root],
            call.ports,
            Form::ALL[call.form],
            SEGMENTS[call.segment]
        )
    }

    /// Proves the plan of each call, once per plan, because plans do not depend on sizes. Returns what is wrong.
    fn prove(&self, calls: &[Call]) -> Vec<String> {
        let mut seen = FxHashSet::default();
        let mut wrong = Vec::new();
        for call in calls {
            if !seen.insert((call.algorithm, call.root, call.ports)) {
                continue;
            }
            let algorithm = &self.algorithms[call.algorithm];
            let (shape, map) = (self.shape.clone(), RankMap::default());
            let (root, ports) = (self.roots[call.root], Some(call.ports));
            let schedule = algorithm
                .schedule(&Request { shape, map, root: hopbine_torus::Rank(root), ports })
                .unwrap();
            let expansion = schedule.expand().unwrap();
            if let [first, ..] = &plan::check(&expansion, algorithm.promises(&self.shape))[..] {
                wrong.push(format!("{}: {first}", self.describe(call)));
            }
        }
        wrong
    }

    fn run_one(&self, comm: &Communicator, call: &Call) {
        let algorithm = &self.algorithms[call.algorithm];
        let (collective, root) = (algorithm.collective, self.roots[call.root]);
        let options = CallOptions::new()
            .algorithm(&algorithm.name)
            .ports(call.ports)
            .segment_bytes(SEGMENTS[call.segment]);
        let comm = &comm.with(options);
        let what = self.describe(call);
        match collective {
            Collective::Allgather
            | Collective::ReduceScatter
            | Collective::Gather
            | Collective::Scatter
            | Collective::Alltoall => {
                let size = DISTRIBUTIONS[call.distribution].1;
                Case { comm, size, what, root }.call(collective, Form::ALL[call.form]);
            }
            _ => {
                let count = length(call.distribution, comm.size() as usize);
                let case = reference::Case { collective, n_ranks: comm.size(), count, root };
                check(comm, &case, &what);
            }
        }
    }

    /// Executes the calls in one world; returns whether all results are right.
    fn run(&self, calls: &[Call]) -> bool {
        let config = config_on(self.shape.clone(), Drive::Inline).with(|config| {
            config.on_timeout = OnTimeout::Fail;
            config.timeout = Duration::from_secs(300);
        });
        let each = |comm: &Communicator| calls.iter().for_each(|call| self.run_one(comm, call));
        emulate(&config, each).is_ok()
    }

    /// Proves and executes the calls; returns what is wrong.
    fn wrong(&self, calls: &[Call], progress: impl Fn(usize)) -> Vec<String> {
        let mut wrong = self.prove(calls);
        // Ranks cache the programs that they have run, with their working memory, and this process holds all ranks.
        let chunk = (2000 / self.shape.n_ranks() as usize).max(16);
        for (index, calls) in calls.chunks(chunk).enumerate() {
            progress(index * chunk);
            if !self.run(calls) {
                let alone = calls.iter().filter(|call| !self.run(&[**call]));
                let before = wrong.len();
                wrong.extend(alone.map(|call| self.describe(call)));
                if wrong.len() == before {
                    let (first, last) = (&calls[0], &calls[calls.len() - 1]);
                    let (first, last) = (self.describe(first), self.describe(last));
                    wrong.push(format!("one of `{first}` to `{last}`, none of them alone"));
                }
            }
        }
        wrong
    }
}

/// `HOPBINE_TEST_SHAPES` lists the shapes to test, separated by commas; all shapes if it is not set.
#[test]
#[ignore = "an hour: cargo test --test ranks -- --ignored --nocapture the_whole_product"]
fn the_whole_product() {
    let wanted = std::env::var("HOPBINE_TEST_SHAPES").ok();
    let wanted: Option<Vec<&str>> = wanted.as_ref().map(|list| list.split(',').collect());
    let (start, mut n_run, mut wrong) = (Instant::now(), 0, Vec::new());
    for text in SHAPES.into_iter().chain(NODE_SHAPES) {
        if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&text)) {
            continue;
        }
        let product = Product::new(text);
        let n_calls = product.calls.len();
        wrong.extend(product.wrong(&product.calls, |done| {
            eprint!("\r{text}: {done} of {n_calls}, {:.0} s ", start.elapsed().as_secs_f64());
        }));
        n_run += n_calls;
        let seconds = start.elapsed().as_secs_f64();
        eprintln!(
            "\r{text}: {n_calls} cases; {n_run} in all, {} wrong, {seconds:.0} s",
            wrong.len()
        );
    }
    assert!(n_run > 0, "HOPBINE_TEST_SHAPES has none of {SHAPES:?} and {NODE_SHAPES:?}");
    assert!(wrong.is_empty(), "{} of {n_run}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The pairs of values of two parameters in a call on a shape.
fn pairs(shape: usize, call: &Call) -> impl Iterator<Item = [usize; 4]> {
    let values = [
        shape,
        call.algorithm,
        call.distribution,
        call.root,
        call.ports as usize,
        call.form,
        call.segment,
    ];
    let second = move |first: usize| (first + 1..values.len()).map(move |second| (first, second));
    (0..values.len()).flat_map(second).map(move |(a, b)| [a, values[a], b, values[b]])
}

/// Selects calls greedily, those with many new pairs first, so that few calls cover all pairs.
#[test]
fn every_pair() {
    let products = SAMPLED.map(Product::new);
    let mut order: Vec<(usize, Call)> = Vec::new();
    for (shape, product) in products.iter().enumerate() {
        order.extend(product.calls.iter().map(|&call| (shape, call)));
    }
    order.sort_by_cached_key(|(shape, call)| {
        let number = (call.algorithm * 100 + call.root * 10 + call.distribution) as u32;
        input(number, *shape * 10 + call.ports as usize)
    });
    let mut met = FxHashSet::default();
    let mut chosen: BTreeMap<usize, Vec<Call>> = BTreeMap::new();
    for least in [6, 4, 2, 1] {
        for (shape, call) in &order {
            if pairs(*shape, call).filter(|pair| !met.contains(pair)).count() >= least {
                met.extend(pairs(*shape, call));
                chosen.entry(*shape).or_default().push(*call);
            }
        }
    }
    assert!(order.iter().all(|(shape, call)| pairs(*shape, call).all(|pair| met.contains(&pair))));
    let wrong: Vec<String> =
        chosen.iter().flat_map(|(&shape, calls)| products[shape].wrong(calls, |_| ())).collect();
    let n_run: usize = chosen.values().map(Vec::len).sum();
    println!("{n_run} of {} cases have all {} pairs", order.len(), met.len());
    assert!(wrong.is_empty(), "{} of {n_run}:\n{}", wrong.len(), wrong.join("\n"));
}
