//! The Tofu device in software.
