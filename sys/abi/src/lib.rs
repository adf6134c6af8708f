//! Types and constants of the uTofu C interface.
