//! `plait doctor`: finds obstacles to Multipath TCP on this host, and the commands that remove them.

use crate::console::{Console, deliver, json};
use crate::failure::Failure;
use crate::invocation;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plait_live::doctor::{DoctorDocument, Role, State, look};
use plait_report::render::wrap;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  plait doctor
  plait doctor serve
  plait doctor kernel --json";

/// Find obstacles to Multipath TCP on this host
///
/// Checks whether this host can run `plait serve`, `plait get` and `plait proxy`, and whether programs can
/// use the kernel's Multipath TCP over several interfaces. It changes nothing. For each missing
/// requirement it prints the command that fixes it.
///
/// Exit codes: 0 if nothing is missing, 2 for wrong arguments, 3 if something is missing.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Roles to check [default: all]
    ///
    /// Several interfaces are required only with the role `kernel`, and redirection only with `lan`. Without a role
    /// both are optional.
    #[arg(value_parser = role())]
    roles: Vec<Role>,
    /// Write one JSON document (`plait schema doctor`)
    #[arg(long)]
    json: bool,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const ROLES: [(&str, Role, &str); 4] = [
    ("serve", Role::Serve, "Run `plait serve`"),
    ("get", Role::Get, "Run `plait get` or `plait proxy`"),
    ("lan", Role::Lan, "Run `plait proxy --lan` for the hosts of a network"),
    ("kernel", Role::Kernel, "Use Multipath TCP sockets of the kernel, from several interfaces"),
];

fn role() -> impl TypedValueParser<Value = Role> {
    let named = ROLES.map(|(name, _, help)| PossibleValue::new(name).help(help));
    // The parser has already refused every other name.
    let role =
        |text: String| ROLES.iter().find(|(name, ..)| *name == text).map_or(Role::Serve, |it| it.1);
    PossibleValuesParser::new(named).map(role)
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let document = look(&args.roles, invocation::own_executable().as_deref());
    let text = if args.json { json(&document)? } else { told(&document, console) };
    deliver(&text, args.output.as_deref())?;
    if document.fine {
        return Ok(());
    }
    let missing = document.checks.iter().filter(|check| check.state == State::Missing);
    let names: Vec<&str> = missing.map(|check| check.name).collect();
    console.remark(2, "nothing was changed");
    Err(Failure::Privilege(format!("missing: {}", names.join(", "))))
}

/// Column at which the description of a check begins.
const FOUND_COLUMN: usize = 22;

fn told(document: &DoctorDocument, console: Console) -> String {
    let mut text = String::new();
    for check in &document.checks {
        let word = match check.state {
            State::Fine => "fine",
            State::Missing => "missing",
            State::Unknown => "unknown",
            State::Optional => "optional",
        };
        let line = wrap(&check.found, console.width.saturating_sub(FOUND_COLUMN));
        let found = line.join(&format!("\n{:FOUND_COLUMN$}", ""));
        let _ = writeln!(text, "{word:<8} {:<12} {found}", check.name);
        for command in &check.mend {
            let _ = writeln!(text, "{:21} fix: {command}", "");
        }
    }
    text
}
