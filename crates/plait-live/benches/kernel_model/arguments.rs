//! The command line of a bench: a task, and its options.

use std::process::exit;
use std::str::FromStr;

/// Returns the arguments of the program.
pub(super) fn arguments() -> Vec<String> {
    // `cargo bench` adds `--bench`.
    std::env::args().skip(1).filter(|arg| arg != "--bench").collect()
}

/// Prints why the bench does not run, and ends the program.
pub(super) fn refuse(why: &str) -> ! {
    eprintln!("{}: {why}", env!("CARGO_CRATE_NAME"));
    exit(2)
}

/// Returns the options with their values. An option of `switches` has no value, so an empty text is returned for it.
pub(super) fn values<'a>(args: &'a [String], switches: &[&str]) -> Vec<(&'a str, &'a str)> {
    let mut values = Vec::new();
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let value = match switches.contains(&name.as_str()) {
            true => "",
            false => args.next().unwrap_or_else(|| refuse(&format!("{name} needs a value"))),
        };
        values.push((name.as_str(), value));
    }
    values
}

/// Returns the number that is the value of an option.
pub(super) fn number<T: FromStr>(name: &str, text: &str) -> T {
    text.parse().unwrap_or_else(|_| refuse(&format!("{name}: `{text}`: give a number")))
}

/// Returns the range that is the value of an option: its first number, and the one after its last.
pub(super) fn range(name: &str, text: &str) -> (u64, u64) {
    let Some((from, to)) = text.split_once("..") else {
        refuse(&format!("{name}: `{text}`: give FROM..TO"))
    };
    (number(name, from), number(name, to))
}
