//! The uTofu API as a run-time function table.
