//! Selection of schedules by arguments that several subcommands share.

use std::path::PathBuf;

use hopbine_torus::plan::Schedule;
use hopbine_torus::{Algorithm, Collective, RankMap, Request, Shape};

use super::args::{AllOr, MapArg, existing_rank, read_schedule, scheduled};
use super::error::CliError;
use super::host;
use super::numbers::Numbers;

/// Which schedules are meant: some algorithms of a collective on a torus, or one from a file.
#[derive(Debug, clap::Args)]
pub struct Selection {
    /// The collective
    #[arg(required_unless_present = "schedule")]
    pub collective: Option<Collective>,
    /// Shape of the torus: sizes joined by `x`. `m` after a size: this dimension does not wrap. `+K` at the end: K
    /// ranks on each node
    #[arg(long, value_name = "SHAPE", value_delimiter = ',', required_unless_present = "schedule")]
    pub torus: Vec<Shape>,
    /// Order of the ranks on the nodes: column-major (first dimension fastest, as the batch system numbers nodes),
    /// row-major, or a file with one coordinate per line. `hopbine run` with processes also takes `hosts`: the ranks of
    /// one host are neighbours
    #[arg(long, value_name = "ORDER|FILE", default_value = "column-major")]
    map: MapArg,
    /// An algorithm, or all that serve the shape; repeat the option for several algorithms
    #[arg(long, value_name = "NAME|all", default_value = "all")]
    algorithm: Vec<AllOr<String>>,
    #[command(flatten)]
    numbers: Numbers,
    /// Use the schedule in this file instead, as `plan --format schedule` writes it
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["collective", "torus", "map", "algorithm", "ports", "root"])]
    pub schedule: Option<PathBuf>,
}

impl Selection {
    /// The only shape with its rank map, if this host has memory for its plans.
    ///
    /// # Errors
    /// [`CliError`]: no shape or several, a shape that is too large, or as [`MapArg::read`].
    pub fn place(&self) -> Result<(Shape, RankMap), CliError> {
        match &self.torus[..] {
            [torus] => self.place_on(torus),
            [] => Err(CliError::Usage("--torus is missing".to_owned())),
            [..] => Err(CliError::Usage("--torus must be one shape for this command".to_owned())),
        }
    }

    fn place_on(&self, torus: &Shape) -> Result<(Shape, RankMap), CliError> {
        let shape = self.numbers.shape(torus.clone())?;
        host::check_plans(&shape, true)?;
        let map = self.map.read(&shape)?;
        Ok((shape, map))
    }

    /// The collective and its algorithms; a note names the algorithms that do not support the shape.
    ///
    /// # Errors
    /// [`CliError`]: no collective, or an unknown algorithm.
    pub fn algorithms(
        &self,
        shape: &Shape,
        notes: &mut Vec<String>,
    ) -> Result<(Collective, Vec<Algorithm>), CliError> {
        let missing = || CliError::Usage("a collective is missing".to_owned());
        let collective = self.collective.ok_or_else(missing)?;
        let mut algorithms = Vec::new();
        for algorithm in &self.algorithm {
            algorithms.extend(match algorithm {
                AllOr::One(name) => self.numbers.algorithms(collective, Some(name))?,
                AllOr::All => self.numbers.serving(collective, shape, notes)?,
            });
        }
        Ok((collective, algorithms))
    }
}

/// A collective, a shape, schedules with their names, and notes on algorithms that do not support the shape.
pub type Schedules = (Collective, Shape, Vec<(String, Schedule)>, Vec<String>);

impl Selection {
    /// The selected schedules, each with all numbers of ports that `ports` returns for the shape.
    ///
    /// # Errors
    /// [`CliError`]: as [`read_schedule`], [`Selection::place`], [`Selection::algorithms`],
    /// [`existing_rank`] and [`scheduled`].
    pub fn schedules<P: IntoIterator<Item = Option<u32>>>(
        &self,
        root: u32,
        ports: impl Fn(&Shape) -> P,
    ) -> Result<Schedules, CliError> {
        if let Some(path) = &self.schedule {
            let schedule = read_schedule(path)?;
            let name = path.display().to_string();
            let (collective, shape) = (schedule.collective, schedule.shape.clone());
            return Ok((collective, shape, vec![(name, schedule)], vec![]));
        }
        let (shape, map) = self.place()?;
        self.schedules_on(shape, map, root, ports)
    }

    /// The selected schedules on each shape, in order.
    ///
    /// # Errors
    /// As [`Selection::schedules`].
    pub fn schedules_of_all<P: IntoIterator<Item = Option<u32>>>(
        &self,
        root: u32,
        ports: impl Fn(&Shape) -> P,
    ) -> Result<Vec<Schedules>, CliError> {
        if self.torus.len() < 2 {
            return Ok(vec![self.schedules(root, ports)?]);
        }
        let on = |torus| {
            let (shape, map) = self.place_on(torus)?;
            self.schedules_on(shape, map, root, &ports)
        };
        self.torus.iter().map(on).collect()
    }

    fn schedules_on<P: IntoIterator<Item = Option<u32>>>(
        &self,
        shape: Shape,
        map: RankMap,
        root: u32,
        ports: impl Fn(&Shape) -> P,
    ) -> Result<Schedules, CliError> {
        let mut notes = vec![];
        let (collective, algorithms) = self.algorithms(&shape, &mut notes)?;
        let root = existing_rank(root, &shape)?;
        let mut schedules = Vec::new();
        for algorithm in &algorithms {
            for ports in ports(&shape) {
                let request = Request { shape: shape.clone(), map: map.clone(), root, ports };
                schedules.push((algorithm.name.to_string(), scheduled(algorithm, &request)?));
            }
        }
        Ok((collective, shape, schedules, notes))
    }
}
