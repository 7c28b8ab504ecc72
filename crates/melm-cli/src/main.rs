//! The `melm` command.
fn main() {}
