//! The emulated device under its C symbol names.
