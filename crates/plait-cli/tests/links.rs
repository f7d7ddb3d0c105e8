//! Files of links: every command that has `--path` takes them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::Command;

const LINKS: &str = "schema = 'plait.links/1'\n[[path]]\nname = 'wifi'\n\
    rtt = { value = '22ms', low = '21ms', high = '24ms', source = 'ping', date = '2026-11-27' }\n\
    rate = { value = '20mbit', low = '18mbit', high = '22mbit' }\n\
    [[path]]\nname = 'lte'\nrtt = '60ms'\nrate = '8mbit'\n";

/// Returns exit code, stdout and stderr of a command that gets the file as `links.toml`.
fn plait(name: &str, links: &str, arguments: &str) -> (i32, String, String) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("links-{name}"));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("links.toml"), links).unwrap();
    let mut plait = Command::new(env!("CARGO_BIN_EXE_plait"));
    let output = plait.args(arguments.split(' ')).current_dir(directory).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn every_command_with_paths_takes_a_file_of_links() {
    let given = "--links links.toml --workload download:64kB";
    let mut commands = vec![
        format!("compare {given} --schedulers minrtt --runs 1"),
        format!("run {given}"),
        format!("explain {given}"),
        format!("scoreboard {given} --schedulers minrtt --runs 1"),
        "advise --links links.toml --draws 1".to_owned(),
    ];
    if cfg!(all(target_os = "linux", feature = "live")) {
        commands.push(format!("race {given} --schedulers minrtt --predict"));
        commands.push("shell --links links.toml --dry-run".to_owned());
    }
    for command in commands {
        let (code, stdout, stderr) = plait("every", LINKS, &command);
        assert_eq!(code, 0, "{command}: {stderr}");
        assert!(stdout.contains("wifi"), "{command}: {stdout}");
    }
}

#[test]
fn the_values_are_those_of_the_file() {
    let compare =
        "compare --links links.toml --workload download:64kB --schedulers minrtt --runs 1";
    let (_, stdout, _) = plait("values", LINKS, compare);
    assert!(stdout.contains("wifi: 20.0 mbit, rtt 22.0 ms"), "{stdout}");
    let (_, stdout, _) =
        plait("values", LINKS, &format!("{compare} --path own:rtt=9ms,rate=1mbit"));
    assert!(stdout.contains("own: 1.00 mbit") && !stdout.contains("wifi"), "{stdout}");
}

#[test]
fn an_unknown_rate_is_an_error_of_a_comparison_and_no_advice() {
    let unknown = LINKS.replace("'8mbit'", "{ value = 'unknown', source = 'ping shows no rate' }");
    let compare = "compare --links links.toml --workload download:64kB";
    let (code, stdout, stderr) = plait("unknown", &unknown, compare);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("links.toml:9:8: path[1].rate: the rate of path lte is"), "{stderr}");
    assert!(stderr.contains("(ping shows no rate)\n  allowed: a rate; measure it"), "{stderr}");
    let (code, stdout, _) = plait("unknown", &unknown, "advise --links links.toml");
    assert!(code == 0 && stdout.starts_with("Cannot tell: the rate of lte is unknown"), "{stdout}");
}
