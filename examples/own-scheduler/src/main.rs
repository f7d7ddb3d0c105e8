//! `plait` with one more scheduler, `weighted`. All commands list, parse and run it like a built-in one.
mod weighted;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(error) = plait_sched::register(&[weighted::ENTRY]) {
        eprintln!("plait: {error}");
        return ExitCode::FAILURE;
    }
    plait_cli::main()
}
