//! `plait`, the program. The library has the command line.

fn main() -> std::process::ExitCode {
    plait_cli::main()
}
