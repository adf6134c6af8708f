//! Pictures of predictions.

pub mod gain;
pub mod goodput;
pub mod heatmap;
pub mod links;
pub mod timeline;
