//! Expansions that the ranks of one process share: an expansion is the same for all of them, and takes long on a
//! large torus.

use std::sync::{Arc, Mutex};

use hopbine_torus::plan::Expansion;

use super::key::PlanKey;
use crate::sync::lock;

/// Expansions kept.
const KEPT: usize = 16;

/// Expansions by the members' fingerprint and the plan's key. The one used last is at the end.
#[derive(Default)]
pub(crate) struct Expansions(Mutex<Vec<(u64, PlanKey, Arc<Expansion>)>>);

impl Expansions {
    /// An expansion that another rank has made, or a new one.
    ///
    /// # Errors
    /// As `expand`.
    pub(crate) fn get<E>(
        &self,
        members: u64,
        key: &PlanKey,
        expand: impl FnOnce() -> Result<Expansion, E>,
    ) -> Result<Arc<Expansion>, E> {
        let kept = &mut *lock(&self.0);
        if let Some(at) = kept.iter().position(|(of, other, _)| (*of, other) == (members, key)) {
            kept[at..].rotate_left(1);
            return Ok(kept[kept.len() - 1].2.clone());
        }
        // Expands under the lock: other ranks of this process need the same expansion.
        let made = Arc::new(expand()?);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((members, key.clone(), made.clone()));
        Ok(made)
    }
}
