//! The help texts of the program.

use std::process::Command;

/// Returns the help of a command, such as `trace show`.
pub(crate) fn help(command: &[&str]) -> String {
    let mut plait = Command::new(env!("CARGO_BIN_EXE_plait"));
    plait.args(command).arg("--help").env("COLUMNS", "88").env("NO_COLOR", "1");
    let output = plait.output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the commands that a help lists, except `help`.
pub(crate) fn commands_of(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // A name has two blanks before it, the rest of its description more.
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let names = names.filter(|name| *name != "help" && help.contains(&format!("\n  {name} ")));
    names.map(str::to_owned).collect()
}
