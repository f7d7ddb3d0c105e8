//! `plait shell`: runs a program behind emulated links.

mod child;
mod server;

use crate::commands::live::emulated::{
    KEYS_HELP, LatenessReport, PathTraffic, emulated_paths, lines, no_path, not_made, table,
    traffic,
};
use crate::console::{Console, check_writable, deliver, json, write};
use crate::failure::Failure;
use plait_app::file;
use plait_lab::RawScenario;
use plait_live::emulate::{Line, Network, TimeZero};
use plait_live::{Cleaner, Signals};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

const EXAMPLES: &str = "Examples:
  plait shell --path wifi-home --path lte-att --dry-run
  plait shell --path a:rate=20mbit,rtt=22ms --dry-run -- curl 10.99.0.1";

/// Run a shell or a command behind emulated links
///
/// Makes a network namespace with a device for each --path, and starts a shell or COMMAND in it. At the far side
/// of the links is a second namespace, the server's: every path leads to its address 10.99.0.1. The kernel of this
/// host carries the packets, and its Multipath TCP uses all paths. The namespaces have no other network.
///
/// The programs have these variables: PLAIT_SERVER is the server's address, PLAIT_ADDRESSES has the client's
/// address on each path (wifi=10.98.1.1 lte=10.98.2.1), and PLAIT_SERVER_NETNS is a file of the server's
/// namespace: `nsenter --net=$PLAIT_SERVER_NETNS COMMAND` starts a program there.
///
/// At the end it writes to stderr what each link carried and dropped, and how late the emulator was. Then it ends
/// all programs in both namespaces, which disappear with their devices. The same happens after a signal, KILL
/// included. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
///
/// Exit codes: that of the command, or 128 and the number of the signal that ended it; before it starts, 2 for
/// wrong arguments, 3 for a missing privilege, 4 if a --server ends before it is ready.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[arg(long, value_name = "NAME:KEY=VALUE,...", help = KEYS_HELP.lines().next(), long_help = KEYS_HELP)]
    path: Vec<String>,
    /// Take the paths from a file of links (TOML), as `plait measure` writes it
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    links: Option<String>,
    /// Run this command of `sh` at the server's side; may be repeated
    ///
    /// The command in the client's namespace starts when each server has opened a socket or a device, or after
    /// 5 s. Their output goes to stderr.
    #[arg(long, value_name = "COMMAND")]
    server: Vec<String>,
    /// Seed of all that is random on the links
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::flags::whole(0, u64::MAX))]
    seed: u64,
    /// Also write the report to this file, as one JSON document (`plait schema shell`)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the namespaces and their settings, and make none
    #[arg(long)]
    dry_run: bool,
    /// The command and its arguments [default: the shell of the user]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The document of `plait shell --report`.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(title = "Document")]
pub(crate) struct ShellDocument {
    /// Always `plait.shell/1`.
    schema: &'static str,
    /// Seed of the links.
    seed: u64,
    /// Exit code of the command.
    exit_code: u8,
    /// The paths, the primary first.
    paths: Vec<PathTraffic>,
    /// Delay of the emulator.
    lateness: LatenessReport,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let lines = args.lines()?;
    check_writable("--report", args.report.as_deref())?;
    if args.dry_run {
        return deliver(&args.plan(&lines), None);
    }
    let internal = |error: io::Error| Failure::Internal(error.to_string());
    let signals = Signals::take_over().map_err(internal)?;
    let network =
        Network::build(&lines, args.seed, TimeZero::Start).map_err(|error| not_made(&error))?;
    network.add_server_address().map_err(|error| not_made(&error))?;
    let cleaner = Cleaner::start(&network.client, &network.server);
    let cleaner = cleaner.map_err(|error| not_made(&error))?;
    let variables = variables(&lines, &network);
    for text in &args.server {
        server::start(&network, text, &variables, console)?;
    }
    if args.command.is_empty() {
        introduce(&lines, &network, console);
    }
    let mut command = args.command();
    command.envs(variables);
    let child = network.client.spawn(&mut command);
    let child = child.map_err(|error| args.not_started(&error))?;
    let exit_code = child::wait(child, signals, cleaner).map_err(internal)?;
    let report = network.stop().map_err(internal)?;
    let paths = traffic(&lines, &report);
    console.remark(1, table(&paths, console.width).trim_end());
    console.remark(1, &format!("emulator: {}", report.lateness));
    let lateness = LatenessReport::of(&report);
    let document =
        ShellDocument { schema: "plait.shell/1", seed: args.seed, exit_code, paths, lateness };
    if let Some(file) = &args.report {
        write("--report", file, &json(&document)?)?;
    }
    if exit_code == 0 { Ok(()) } else { Err(Failure::Ended(exit_code)) }
}

/// Returns the variables of all programs.
fn variables(lines: &[Line], network: &Network) -> Vec<(&'static str, String)> {
    let address =
        |(at, line): (usize, &Line)| format!("{}={}", line.name, Network::client_address(at));
    let addresses: Vec<String> = lines.iter().enumerate().map(address).collect();
    vec![
        ("PLAIT_SERVER", Network::SERVER.to_string()),
        ("PLAIT_ADDRESSES", addresses.join(" ")),
        ("PLAIT_SERVER_NETNS", network.server.path().display().to_string()),
    ]
}

/// Explains the network to the user of an interactive shell.
fn introduce(lines: &[Line], network: &Network, console: Console) {
    let device =
        |(at, line): (usize, &Line)| format!("{} ({})", line.name, Network::client_address(at));
    let devices: Vec<String> = lines.iter().enumerate().map(device).collect();
    console.remark(1, &format!("devices: {}; server: {}", devices.join(", "), Network::SERVER));
    let file = network.server.path();
    console.remark(1, &format!("start a program there: nsenter --net={} COMMAND", file.display()));
}

impl Args {
    fn lines(&self) -> Result<Vec<Line>, Failure> {
        if self.path.is_empty() && self.links.is_none() {
            return Err(no_path("--links FILE"));
        }
        let mut raw = RawScenario::new();
        for (name, path) in emulated_paths(&self.path, self.links.as_deref())? {
            raw.argument(name, &path)?;
        }
        // A scenario has a workload. The emulator ignores it.
        raw.argument("workload", "bulk:1s")?;
        lines(&raw.build_with(&file::named)?, self.seed)
    }

    fn command(&self) -> Command {
        match self.command.split_first() {
            Some((program, args)) => {
                let mut command = Command::new(program);
                command.args(args);
                command
            }
            None => Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())),
        }
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let name = self.command().get_program().to_string_lossy().into_owned();
        Failure::Usage(format!("COMMAND: `{name}`: {error}\n  give a program that this host has"))
    }

    /// Describes the network that would be made.
    fn plan(&self, lines: &[Line]) -> String {
        let sysctls: String = Network::SYSCTLS
            .iter()
            .map(|(key, value)| format!("  sysctl -w {key}={value}\n"))
            .collect();
        let side = |name: &str, commands: &str| {
            let commands = commands.lines().map(|line| format!("  ip {line}\n"));
            format!("the {name}'s namespace:\n{sysctls}{}", commands.collect::<String>())
        };
        let mut plan = side("client", &Network::client_commands(lines));
        plan += &side("server", &Network::server_commands(lines));
        plan += &format!("  ip address add {}/32 dev lo\n", Network::SERVER);
        plan + "All of this is removed when the command ends.\n"
    }
}
