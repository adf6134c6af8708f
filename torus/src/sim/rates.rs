//! How fast messages go that share resources: max-min fair.

use super::score::ResourceId;

/// Reused from one call to the next.
#[derive(Debug)]
pub(super) struct MaxMin {
    /// Bytes per ns, by resource.
    capacity: Vec<f64>,
    /// What is left of it, and the messages that want it; put back after each call.
    left: Vec<f64>,
    wanted: Vec<f64>,
    touched: Vec<ResourceId>,
    /// Messages without a rate, and the rate that each could have.
    open: Vec<u32>,
    shares: Vec<f64>,
}

impl MaxMin {
    /// Resources of these capacities, bytes per ns.
    pub fn new(capacity: Vec<f64>) -> Self {
        let (left, wanted) = (capacity.clone(), vec![0.0; capacity.len()]);
        MaxMin { capacity, left, wanted, touched: Vec::new(), open: Vec::new(), shares: Vec::new() }
    }

    /// The rates of messages, bytes per ns: each over a path of resources, with as many like it on each
    /// as the path says, and at most `most`.
    pub fn rates<'a>(
        &mut self,
        most: f64,
        path: impl Fn(usize) -> &'a [(ResourceId, f32)],
        rates: &mut [f64],
    ) {
        self.open.clear();
        self.open.extend(0..rates.len() as u32);
        for at in 0..rates.len() {
            for &(resource, load) in path(at) {
                let wanted = &mut self.wanted[resource as usize];
                if *wanted == 0.0 {
                    self.touched.push(resource);
                }
                *wanted += f64::from(load);
            }
        }
        while !self.open.is_empty() {
            let mut least = f64::INFINITY;
            self.shares.clear();
            for &at in &self.open {
                let over = |&(resource, _): &(ResourceId, f32)| {
                    self.left[resource as usize] / self.wanted[resource as usize]
                };
                let share = path(at as usize).iter().map(over).fold(most, f64::min);
                self.shares.push(share);
                least = least.min(share);
            }
            // Who is held back by the tightest resource keeps that rate.
            let bound = least * (1.0 + 1e-9);
            let mut n_open = 0;
            for index in 0..self.open.len() {
                let at = self.open[index];
                if self.shares[index] > bound {
                    self.open[n_open] = at;
                    n_open += 1;
                    continue;
                }
                rates[at as usize] = least;
                for &(resource, load) in path(at as usize) {
                    let (resource, load) = (resource as usize, f64::from(load));
                    self.left[resource] = (self.left[resource] - load * least).max(0.0);
                    self.wanted[resource] -= load;
                }
            }
            self.open.truncate(n_open);
        }
        for resource in self.touched.drain(..).map(|resource| resource as usize) {
            self.left[resource] = self.capacity[resource];
            self.wanted[resource] = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(capacity: &[f64], paths: &[&[(ResourceId, f32)]]) -> Vec<f64> {
        let mut fair = MaxMin::new(capacity.to_vec());
        let mut rates = vec![0.0; paths.len()];
        // Twice, as nothing may be left of the first time.
        for _ in 0..2 {
            fair.rates(10.0, |at| paths[at], &mut rates);
        }
        rates
    }

    #[test]
    fn the_tightest_resource_is_shared_first() {
        // Three over the first link, one of them and another over the second.
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
    }
}
