//! Checks of decision tables.

use std::collections::HashSet;

use super::class::ShapeClass;
use super::error::{TableError, TableProblem};
use super::feature::{Features, NumberRange};
use super::rule::{Knowledge, Row, Rule, Uses};
use crate::collectives::Collective;
use crate::geometry::Shape;

/// Checks that rules have rows for all sizes, and that no earlier rules cover a rule.
pub(super) fn check_rules(classes: &[ShapeClass], rules: &[Rule]) -> Result<(), TableError> {
    rules.iter().try_for_each(Rule::check_rows)?;
    for (at, rule) in rules.iter().enumerate() {
        for &collective in &rule.collectives {
            let is_own = |other: &&Rule| other.is_of(collective, rule.knowledge);
            let mut earlier = rules[..at].iter().filter(is_own);
            let class = |rule: &Rule| &classes[rule.class];
            let by = earlier.find(|other| {
                other.available.covers(rule.available) && class(other).covers(class(rule))
            });
            if let Some(by) = by {
                return Err(TableProblem::NeverAsked { collective, by: by.line }.at(rule.line));
            }
        }
    }
    Ok(())
}

/// Checks that there is a rule for every collective and all that ranks may know of its sizes.
pub(super) fn check_complete(rules: &[Rule]) -> Result<(), TableError> {
    for collective in Collective::ALL {
        for knowledge in Knowledge::ALL.into_iter().filter(|known| known.is_of(collective)) {
            if !rules.iter().any(|rule| rule.is_of(collective, knowledge)) {
                return Err(TableProblem::NoRule { collective, knowledge }.at(1));
            }
        }
    }
    Ok(())
}

/// Checks that in each row an algorithm serves every sample shape of the rule's class, and that each named algorithm
/// serves some sample.
pub(super) fn check_served(classes: &[ShapeClass], rules: &[Rule]) -> Result<(), TableError> {
    let with_numbers = |shape: Shape| {
        let of = Features::of(&shape);
        (shape, of)
    };
    let samples = classes.iter().map(ShapeClass::samples);
    let samples = samples.map(|shapes| shapes.into_iter().map(with_numbers).collect());
    let samples: Vec<Vec<(Shape, Features)>> = samples.collect();
    for rule in rules {
        let (class, samples) = (&classes[rule.class].name, &samples[rule.class]);
        if samples.is_empty() {
            return Err(TableProblem::EmptyClass { class: class.clone() }.at(rule.line));
        }
        let mut seen = HashSet::new();
        for row in &rule.rows {
            for &collective in &rule.collectives {
                if seen.insert((&row.candidates, row.ports, collective)) {
                    row.check_served((collective, rule.available), class, samples)?;
                }
            }
        }
    }
    Ok(())
}
impl Rule {
    fn check_rows(&self) -> Result<(), TableError> {
        let Some(last) = self.rows.last() else {
            return Err(TableProblem::NoRows.at(self.line));
        };
        let mut next = 0;
        for (at, row) in self.rows.iter().enumerate() {
            let above = row.above;
            let problem = if above > next {
                Some(TableProblem::Hole { above: next, up_to: above })
            } else if above < next {
                Some(TableProblem::Overlap { above, up_to: next })
            } else {
                match row.up_to {
                    Some(up_to) if up_to <= above => Some(TableProblem::Empty { above, up_to }),
                    None if at + 1 < self.rows.len() => Some(TableProblem::Endless),
                    _ => None,
                }
            };
            if let Some(problem) = problem {
                return Err(problem.at(row.line));
            }
            if let (Uses::Only(used), Some(most)) = (row.ports, self.available.last)
                && used > most
            {
                return Err(TableProblem::Ports { used, most }.at(row.line));
            }
            next = row.up_to.unwrap_or(u64::MAX);
        }
        match last.up_to {
            Some(up_to) => Err(TableProblem::Ends(up_to).at(last.line)),
            None => Ok(()),
        }
    }
}

impl Row {
    fn check_served(
        &self,
        (collective, available): (Collective, NumberRange),
        class: &str,
        samples: &[(Shape, Features)],
    ) -> Result<(), TableError> {
        let wrong = |problem: TableProblem| problem.at(self.line);
        // Each name must be that of an algorithm that serves some sample.
        for name in self.candidates.names() {
            let mut refused = None;
            let mut serves = false;
            for (shape, of) in samples {
                let algorithm = name.on(collective, of).map_err(|unknown| wrong(unknown.into()))?;
                if let Some(parts) = algorithm.ports()
                    && (self.ports != Uses::Only(parts) || available.first < parts)
                {
                    let algorithm = name.to_string();
                    return Err(wrong(TableProblem::Split { algorithm, parts }));
                }
                match algorithm.serves(shape) {
                    Ok(()) => serves = true,
                    Err(reason) => refused = Some(reason),
                }
            }
            if let Some(reason) = refused.filter(|_| !serves) {
                let (algorithm, class, reason) =
                    (name.to_string(), class.to_owned(), reason.to_string());
                return Err(wrong(TableProblem::ServesNone { algorithm, class, reason }));
            }
        }
        for (shape, of) in samples {
            let named = self
                .candidates
                .first_of
                .iter()
                .filter_map(|name| Some((name, name.on(collective, of).ok()?)));
            let mut refused = None;
            let serves = named.into_iter().any(|(name, algorithm)| {
                algorithm.serves(shape).map_err(|reason| refused = Some((name, reason))).is_ok()
            });
            if let (false, Some((name, reason))) = (serves, refused) {
                let (algorithm, class) = (name.to_string(), class.to_owned());
                let (shape, reason) = (shape.to_string(), reason.to_string());
                return Err(wrong(TableProblem::Unserved { algorithm, class, shape, reason }));
            }
        }
        Ok(())
    }
}
