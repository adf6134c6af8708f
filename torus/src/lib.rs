//! The pure part of hopbine.
#![forbid(unsafe_code)]
