//! Failing together: after a failure ranks no longer agree where they are, so that nothing that
//! shares its poison can be used any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::error::Error;

use super::company::Company;
use super::request::lock;

/// The reason why a communicator is unusable, shared by its ports.
#[derive(Debug, Default)]
pub struct Poison {
    is_set: AtomicBool,
    reason: Mutex<Option<Error>>,
    /// All that fail together.
    companies: Mutex<Vec<Weak<Company>>>,
}

impl Poison {
    /// The reason, if there is one.
    pub fn reason(&self) -> Option<Error> {
        // Acquire: pairs with the Release in `set`.
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.reason).clone()
    }

    /// Sets the reason, unless there is one already.
    pub fn set(&self, error: &Error) {
        lock(&self.reason).get_or_insert_with(|| error.clone());
        // Release: pairs with the Acquire in `reason`.
        self.is_set.store(true, Ordering::Release);
    }

    /// Engines that fail with the others from now on.
    pub(super) fn spread_to(&self, company: &Arc<Company>) {
        let companies = &mut *lock(&self.companies);
        companies.retain(|company| company.strong_count() > 0);
        if !companies.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(company))) {
            companies.push(Arc::downgrade(company));
        }
    }

    /// Once the reason is set: drives all ports of all that fail together, so that every one
    /// ends its runs and tells its peers. When this returns none of them writes or reads any
    /// memory of a user, nor will.
    pub(super) fn spread(&self) {
        // Not under the lock: whoever drives may wait for others who come here.
        let companies = lock(&self.companies).clone();
        companies.iter().filter_map(Weak::upgrade).for_each(|company| company.drive_all());
    }
}
