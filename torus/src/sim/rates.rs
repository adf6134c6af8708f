//! Max-min fair rates of messages that share resources.

use super::routed::ResourceId;

/// Computes rates; the memory is reused in the next call.
#[derive(Debug)]
pub(super) struct MaxMin {
    /// Capacity by resource, bytes per ns.
    capacity: Vec<f64>,
    /// By resource, the capacity left, the load and the number of messages without a rate; reset after each call.
    left: Vec<f64>,
    demand: Vec<f64>,
    n_unrated: Vec<u32>,
    /// Resources with messages that have no rate yet.
    touched: Vec<ResourceId>,
    /// For touched resources, where their messages end in `over`.
    end: Vec<u32>,
    over: Vec<u32>,
    /// The tightest resources.
    tightest: Vec<ResourceId>,
}

impl MaxMin {
    /// Creates resources of these capacities, bytes per ns.
    pub fn new(capacity: Vec<f64>) -> Self {
        let (left, n) = (capacity.clone(), capacity.len());
        MaxMin {
            capacity,
            left,
            demand: vec![0.0; n],
            n_unrated: vec![0; n],
            touched: Vec::new(),
            end: vec![0; n],
            over: Vec::new(),
            tightest: Vec::new(),
        }
    }

    /// The rate of a message that shares nothing with others, bytes per ns.
    pub fn uncontended(&self, path: &[(ResourceId, f32)]) -> f64 {
        let of = |&(at, load): &(ResourceId, f32)| self.capacity[at as usize] / f64::from(load);
        path.iter().map(of).fold(f64::INFINITY, f64::min)
    }

    /// Computes the rates of messages, bytes per ns. A message crosses a path of resources, each with as many equal
    /// messages as the path says, and has at most its own `most`.
    pub fn rates<'a>(
        &mut self,
        most: impl Fn(usize) -> f64,
        path: impl Fn(usize) -> &'a [(ResourceId, f32)],
        rates: &mut [f64],
    ) {
        self.list(&path, rates.len());
        rates.fill(f64::NAN);
        let mut n_left = rates.len();
        let slowest = |rates: &[f64]| {
            let open = (0..rates.len()).filter(|&at| rates[at].is_nan());
            open.map(&most).fold(f64::INFINITY, f64::min)
        };
        let mut least_most = slowest(rates);
        while n_left > 0 {
            let share = |of: &Self, at: ResourceId| of.left[at as usize] / of.demand[at as usize];
            let mut touched = std::mem::take(&mut self.touched);
            touched.retain(|&at| self.n_unrated[at as usize] > 0);
            let least = touched.iter().map(|&at| share(self, at)).fold(least_most, f64::min);
            let bound = least * (1.0 + 1e-9);
            // A message that the tightest resource or its own `most` holds back keeps that rate.
            if least_most <= bound {
                let open = rates.iter_mut().enumerate().filter(|(_, rate)| rate.is_nan());
                for (at, rate) in open.filter(|(at, _)| most(*at) <= bound) {
                    self.freeze(path(at), least);
                    *rate = least;
                    n_left -= 1;
                }
                least_most = slowest(rates);
            }
            let mut tightest = std::mem::take(&mut self.tightest);
            tightest.clear();
            tightest.extend(touched.iter().copied().filter(|&at| share(self, at) <= bound));
            for &resource in &tightest {
                let end = self.end[resource as usize] as usize;
                // The entry behind a resource's last message is the index of its first.
                let first = self.over[end] as usize;
                for number in first..end {
                    let at = self.over[number] as usize;
                    if rates[at].is_nan() {
                        self.freeze(path(at), least);
                        rates[at] = least;
                        n_left -= 1;
                    }
                }
            }
            (self.touched, self.tightest) = (touched, tightest);
        }
        for at in 0..rates.len() {
            for &(resource, _) in path(at) {
                let resource = resource as usize;
                self.left[resource] = self.capacity[resource];
                (self.demand[resource], self.n_unrated[resource]) = (0.0, 0);
            }
        }
    }

    /// Lists messages by resource.
    fn list<'a>(&mut self, path: impl Fn(usize) -> &'a [(ResourceId, f32)], n: usize) {
        self.touched.clear();
        for (resource, load) in (0..n).flat_map(&path).copied() {
            let at = resource as usize;
            if self.n_unrated[at] == 0 {
                self.touched.push(resource);
            }
            self.demand[at] += f64::from(load);
            self.n_unrated[at] += 1;
        }
        let mut end = 0;
        for &resource in &self.touched {
            self.end[resource as usize] = end;
            end += self.n_unrated[resource as usize] + 1;
        }
        self.over.clear();
        self.over.resize(end as usize, 0);
        for at in 0..n {
            for &(resource, _) in path(at) {
                let end = &mut self.end[resource as usize];
                self.over[*end as usize] = at as u32;
                *end += 1;
            }
        }
        for &resource in &self.touched {
            let end = self.end[resource as usize];
            self.over[end as usize] = end - self.n_unrated[resource as usize];
        }
    }

    /// Gives a message its rate.
    fn freeze(&mut self, path: &[(ResourceId, f32)], rate: f64) {
        for &(resource, load) in path {
            let (resource, load) = (resource as usize, f64::from(load));
            self.left[resource] = (self.left[resource] - load * rate).max(0.0);
            self.demand[resource] -= load;
            self.n_unrated[resource] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(capacity: &[f64], paths: &[&[(ResourceId, f32)]]) -> Vec<f64> {
        let mut fair = MaxMin::new(capacity.to_vec());
        let mut rates = vec![0.0; paths.len()];
        // Twice: the first call must leave no state.
        for _ in 0..2 {
            fair.rates(|_| 10.0, |at| paths[at], &mut rates);
        }
        rates
    }

    #[test]
    fn the_tightest_resource_is_shared_first() {
        // Three messages cross the first link, one of them and a fourth the second.
        let paths: [&[(u32, f32)]; 4] =
            [&[(0, 1.0)], &[(0, 1.0)], &[(0, 1.0), (1, 1.0)], &[(1, 1.0)]];
        assert_eq!(rates(&[3.0, 3.0], &paths), [1.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn one_that_stands_for_several_takes_as_much() {
        assert_eq!(rates(&[6.0], &[&[(0, 3.0)]]), [2.0]);
        assert_eq!(rates(&[6.0], &[&[(0, 2.0)], &[(0, 1.0)]]), [2.0, 2.0]);
    }

    #[test]
    fn nothing_is_faster_than_the_most() {
        assert_eq!(rates(&[100.0], &[&[(0, 1.0)], &[]]), [10.0, 10.0]);
        assert_eq!(rates(&[12.0], &[&[(0, 1.0)], &[], &[(0, 1.0)]]), [6.0, 10.0, 6.0]);
    }
}
