#[cfg(test)] mod placeholder {}
