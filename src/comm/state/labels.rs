//! What the rank's timeline calls a communicator's calls.

use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::comm::programs::key::Key;
use crate::timeline::Procedure;

/// By form, the timeline's labels of the calls that may come again.
pub(crate) type Labels = Mutex<[FxHashMap<Key, u32>; Procedure::COUNT]>;
