//! The C library as its users meet it: linked to C programs, and opened at run time.

#[path = "../common/mod.rs"]
mod common;
mod examples;
mod loading;
