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

/// A bad range in a shared link has its place, and a bad name is refused before anything is written.
#[test]
fn errors_of_links_name_the_file_or_the_flag() {
    let bad = LINKS.replacen("schema", "link = ['street:rate=9..10mbit']\nschema", 1);
    let (code, _, stderr) = plait("bad-link", &bad, "advise --links links.toml");
    assert!(code == 2 && stderr.contains("links.toml:1:8: link"), "{stderr}");
    let (code, stdout, stderr) =
        plait("bad-name", "1\n2\n", "measure import links.toml --name a/b");
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("--name: `a/b`: not a path's name"), "{stderr}");
    let backwards = "advise --path a:rate=9mbit,rtt=20ms..10ms --path b:rate=9mbit,rtt=9ms";
    let (_, _, stderr) = plait("backwards", LINKS, backwards);
    assert!(stderr.contains("such as 20ms..25ms"), "{stderr}");
}

#[test]
fn imports_become_a_file_that_a_comparison_takes() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("links-import");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let ping = |ms: u32| format!("64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time={ms} ms\n");
    fs::write(directory.join("wifi.txt"), ping(22)).unwrap();
    fs::write(directory.join("lte.txt"), ping(60)).unwrap();
    let libre = r#"[{"timestamp":"2026-11-21T10:00:00Z","ping":30.0,"jitter":2.0,"upload":8.0,"download":30.0}]"#;
    fs::write(directory.join("speed.json"), libre).unwrap();
    let run = |arguments: &str| {
        let mut plait = Command::new(env!("CARGO_BIN_EXE_plait"));
        plait.args(arguments.split(' ')).current_dir(&directory).output().unwrap()
    };
    let wifi = run("measure import wifi.txt speed.json --name wifi -o links.toml");
    assert!(wifi.status.success() && wifi.stdout.is_empty(), "{wifi:?}");
    let lte = run("measure import lte.txt --name lte -o links.toml");
    let remark = String::from_utf8(lte.stderr).unwrap();
    assert!(remark.starts_with("lte.txt: ping output: unknown rate: a ping does not"), "{remark}");
    let compare =
        "compare --links links.toml --workload download:64kB --schedulers minrtt --runs 1";
    let refused = String::from_utf8(run(compare).stderr).unwrap();
    assert!(refused.contains("path lte is unknown (ping shows no rate)"), "{refused}");
    // With a rate of both directions, both links are known.
    assert!(run("measure import speed.json --name lte -o links.toml").status.success());
    let table = String::from_utf8(run(compare).stdout).unwrap();
    assert!(table.contains("wifi: 31.1 mbit") && table.contains("lte: 31.1 mbit"), "{table}");
    let file = fs::read_to_string(directory.join("links.toml")).unwrap();
    assert!(file.contains("source = \"LibreSpeed: speed.json\", date = \"2026-11-21\""), "{file}");
    let bad = run("measure import links.toml");
    let error = String::from_utf8(bad.stderr).unwrap();
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        error.contains("plait: `links.toml`: its form is unknown\n  allowed: iperf3"),
        "{error}"
    );
}
