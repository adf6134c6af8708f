//! Ranks as processes: this program runs itself once for each rank; see `common::processes`.

#[path = "../common/mod.rs"]
mod common;

mod again;
mod chaos;
mod collectives;
mod communicators;
mod gates;
mod grouped;
mod lost;
mod mismatch;
mod reg_cache;
