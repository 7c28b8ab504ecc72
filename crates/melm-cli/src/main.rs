//! The `melm` program.

use std::process::ExitCode;

#[cfg(unix)]
ctor::declarative::ctor! {
    /// Before `main`, the runtime opens `/dev/null` in place of a closed standard output, and what is written to it is lost.
    /// It cannot be told from a `/dev/null` that the caller has opened, so that this function runs before the runtime.
    ///
    /// It is sound: it calls only functions of the operating system, and sets an atomic.
    #[ctor(unsafe)]
    fn find_closed_output() {
        melm_cli::find_closed_output();
    }
}

fn main() -> ExitCode {
    ExitCode::from(melm_cli::run(std::env::args_os()))
}
