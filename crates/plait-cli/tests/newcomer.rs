//! A scheduler is added in one file and one line: this test does what CONTRIBUTING.md says, with the
//! example that stands there, in a copy of the sources, and looks for the newcomer everywhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The copy's only file that is changed; the list ends it.
const LIST: &str = "crates/plait-sched/src/schedulers/mod.rs";
/// Compiles the example from outside, where only what is public can be named.
const OUTSIDE: &str = "\
//! The example against the public interface.
#![allow(missing_docs)]
extern crate alloc;
mod example;

#[test]
fn it_is_built() {
    let params = plait_sched::Params::default();
    assert!(!format!(\"{:?}\", (example::ENTRY.build)(&params)).is_empty());
}
";

/// Paths and contents below a directory.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file below `root.join(part)`, named from `root`.
fn collect(root: &Path, part: &Path, files: &mut Files) {
    let path = root.join(part);
    if path.is_file() {
        files.insert(part.to_owned(), fs::read(path).unwrap());
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten() {
        collect(root, &part.join(entry.unwrap().file_name()), files);
    }
}

/// What is built: the manifests, the crates, and the pages that are generated.
fn sources(root: &Path) -> Files {
    let mut files = Files::new();
    for part in ["Cargo.toml", "Cargo.lock", "crates", "docs/schedulers", "docs/cc"] {
        collect(root, Path::new(part), &mut files);
    }
    files
}

/// Gives the copy's packages a version of their own: cargo tells packages apart by name, version and
/// place in the workspace, and what this build made is not to be taken for what the copy makes.
fn set_apart(files: &mut Files) {
    let version = format!("version = \"{}\"\n", env!("CARGO_PKG_VERSION"));
    let own = "version = \"0.0.0-newcomer\"\n";
    let mut edit = |file: &str, change: &dyn Fn(&str) -> String| {
        let content = files.get_mut(Path::new(file)).unwrap();
        let changed = change(std::str::from_utf8(content).unwrap());
        assert!(changed.contains(own), "{file}");
        *content = changed.into_bytes();
    };
    edit("Cargo.toml", &|text| text.replacen(&version, own, 1));
    edit("Cargo.lock", &|text| {
        let packages = text.split("[[package]]\n").map(|package| {
            let ours = package.starts_with("name = \"plait-");
            if ours { package.replacen(&version, own, 1) } else { package.to_owned() }
        });
        packages.collect::<Vec<_>>().join("[[package]]\n")
    });
}

/// Makes the copy hold `files` and nothing else. What is the same is not written, so that it is not
/// built again.
fn lay_out(copy: &Path, files: &Files) {
    let there = sources(copy);
    for gone in there.keys().filter(|path| !files.contains_key(*path)) {
        fs::remove_file(copy.join(gone)).unwrap();
    }
    for (path, content) in files.iter().filter(|(path, content)| there.get(*path) != Some(content))
    {
        fs::create_dir_all(copy.join(path).parent().unwrap()).unwrap();
        fs::write(copy.join(path), content).unwrap();
    }
}

/// The example and the line of CONTRIBUTING.md: the two blocks of the section about schedulers.
fn example() -> (String, String) {
    let text = include_str!("../../../CONTRIBUTING.md");
    let (_, section) = text.split_once("## Add a scheduler: one file and one line\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut blocks = section.split("```rust\n").skip(1).map(|rest| rest.split("```").next());
    let mut next = || blocks.next().flatten().unwrap().to_owned();
    let (file, line) = (next(), next());
    assert_eq!((blocks.next(), line.lines().count()), (None, 1), "one file and one line");
    (file, line)
}

/// The newcomer's name, and that of its file.
fn names(file: &str, line: &str) -> (String, String) {
    let entry = file.split("ENTRY: Entry = Entry {\n    name: \"").nth(1).unwrap();
    let name = entry.split('"').next().unwrap().to_owned();
    (name, format!("{}.rs", line.trim().trim_end_matches(',')))
}

/// A cargo of the copy. What the copy has in common with this build (the crates of others) is taken
/// from there; its programs lie apart.
fn cargo(copy: &Path) -> Command {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(copy)
        .env("CARGO_BUILD_BUILD_DIR", temporary.parent().unwrap())
        .env("CARGO_TARGET_DIR", temporary.join("newcomer-target"));
    // Set by the cargo that runs this test.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_")) {
        cargo.env_remove(name);
    }
    cargo.env_remove("CARGO_MANIFEST_DIR").env_remove("PLAIT_BLESS");
    cargo
}

fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout
}

/// The programs that were built, by target and whether it is a test.
fn build(copy: &Path) -> BTreeMap<(String, bool), PathBuf> {
    // `floors` is there because the tests of a package bring its program along.
    let packages = ["-p", "plait-sched", "-p", "plait-cli"];
    let targets = ["--test", "contract", "--test", "outside", "--test", "floors", "--bin", "plait"];
    let mut cargo = cargo(copy);
    cargo.args(["test", "--offline", "--locked", "--no-run", "--message-format=json"]);
    let messages = succeeds(cargo.args(packages).args(targets));
    let messages = messages.lines().map(|line| serde_json::from_str(line).unwrap());
    messages
        .filter_map(|message: serde_json::Value| {
            let target = message["target"]["name"].as_str()?.to_owned();
            let program = PathBuf::from(message["executable"].as_str()?);
            Some(((target, message["profile"]["test"].as_bool()?), program))
        })
        .collect()
}

/// The copy's program, where a newcomer's user meets it.
struct Plait<'a> {
    program: &'a Path,
    name: &'a str,
}

impl Plait<'_> {
    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(self.program);
        command.args(arguments.split_whitespace()).env("COLUMNS", "100").env("NO_COLOR", "1");
        command
    }

    fn says(&self, arguments: &str) -> String {
        succeeds(&mut self.command(&arguments.replace("NAME", self.name)))
    }

    fn is_listed_and_in_help(&self) {
        let name = self.name;
        let list = self.says("list schedulers");
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
        let page = self.says("list schedulers NAME");
        for part in [name, "most-room", "argmax room", "Source", "Good at", "relative=off"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        for command in ["compare", "run"] {
            let help = self.says(&format!("{command} --help"));
            assert!(help.contains(&format!("{name},")), "{help}");
        }
    }

    fn is_the_nearest_name(&self) {
        let paths = "--path wifi-home --path lte-att --workload download:64kB";
        let output = self.command(&format!("compare {paths} --schedulers roomest")).output();
        let output = output.unwrap();
        let problem = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        let hint = format!("did you mean `{}`?", self.name);
        assert!(problem.contains(&hint), "{problem}");
    }

    fn decides(&self) {
        use std::io::Write;
        use std::process::Stdio;
        let mut decide = self.command("decide");
        let mut decide = decide.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Free: 4 of 10 segments, 5 of 20.
        let subflows = r#""subflows":[{"id":0,"srtt_ms":50,"cwnd":10,"inflight":6},{"id":1,"srtt_ms":10,"cwnd":20,"inflight":15}]"#;
        let mut stdin = decide.stdin.take().unwrap();
        for params in ["{}", r#"{"relative":true}"#] {
            let head = format!(r#""scheduler":"{}","params":{params}"#, self.name);
            writeln!(stdin, "{{{head},{subflows}}}").unwrap();
        }
        drop(stdin);
        let output = decide.wait_with_output().unwrap();
        assert!(output.status.success());
        let answers = String::from_utf8(output.stdout).unwrap();
        let answers = answers.lines().map(|line| serde_json::from_str(line).unwrap());
        let chosen: Vec<_> = answers
            .map(|it: serde_json::Value| (it["subflow"].clone(), it["numbers"].clone()))
            .collect();
        let number = |name: &str, value: u64| serde_json::json!({ name: value });
        assert_eq!(
            chosen,
            [
                (1.into(), number("room_bytes.1", 5 * 1460)),
                (0.into(), number("room_bytes.0", 4 * 1460))
            ]
        );
    }

    fn is_compared(&self) {
        let common = "compare --json --path fast:rate=20mbit,rtt=20ms --path slow:rate=5mbit,rtt=60ms \
                      --workload download:200kB";
        let rows = |schedulers: &str| -> Vec<(String, String)> {
            let report = self.says(&format!("{common} --schedulers {schedulers}"));
            let report: serde_json::Value = serde_json::from_str(&report).unwrap();
            let rows = report["rows"].as_array().unwrap().iter();
            rows.map(|row| {
                let share = row["path_share"].to_string();
                (row["scheduler"].as_str().unwrap().to_owned(), share)
            })
            .collect()
        };
        let some = rows("minrtt,NAME,NAME:relative=on+rp");
        let given = [format!("{}:relative=on+rp", self.name), self.name.to_owned()];
        for name in &given {
            let row = some.iter().find(|(row, _)| row == name);
            let (_, share) = row.unwrap_or_else(|| panic!("no {name} in {some:?}"));
            assert!(share.contains("slow"), "{share}");
        }
        assert!(rows("all").iter().any(|(row, _)| row == self.name));
    }
}

/// Writes the generated pages of the copy and compares them again. Nothing else is written.
fn pages_are_generated(copy: &Path, tests: &Path, name: &str) {
    let before = sources(copy);
    let measured = copy.join("crates/plait-cli/src/commands/list/measured.txt");
    let written = fs::metadata(&measured).unwrap().modified().unwrap();
    let run = |bless: bool| {
        let mut command = Command::new(tests);
        command.arg("commands::list::").current_dir(copy.join("crates/plait-cli"));
        command.env_remove("PLAIT_BLESS");
        if bless {
            command.env("PLAIT_BLESS", "1");
        }
        command
    };
    let behind = run(false).output().unwrap();
    assert!(!behind.status.success(), "a scheduler without a page went unnoticed");
    succeeds(&mut run(true));
    succeeds(&mut run(false));
    let after = sources(copy);
    let changed: Vec<&Path> = after
        .iter()
        .filter(|(path, content)| before.get(*path) != Some(content))
        .map(|(path, _)| path.as_path())
        .collect();
    let page = format!("docs/schedulers/{name}.md");
    let table = "crates/plait-cli/src/commands/list/measured.txt";
    assert_eq!(changed, [table, "docs/schedulers/README.md", &page].map(Path::new));
    let page = fs::read_to_string(copy.join(page)).unwrap();
    for part in ["argmax room", "**Good at**", "## Measured", "`relative=off`"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    // What was measured of the others stays as it was.
    let lines = |files: &Files| -> Vec<String> {
        let table = String::from_utf8(files[Path::new(table)].clone()).unwrap();
        table.lines().map(str::to_owned).collect()
    };
    let mut kept = lines(&after);
    kept.retain(|line| !line.starts_with(name));
    assert_eq!(kept, lines(&before));
    // As it was, for the build too.
    lay_out(copy, &before);
    fs::File::options().append(true).open(&measured).unwrap().set_modified(written).unwrap();
}

#[test]
fn a_scheduler_is_added_in_one_file_and_one_line() {
    let (file, line) = example();
    let (name, file_name) = names(&file, &line);
    let mut files = sources(&root());
    set_apart(&mut files);
    let list = files.get_mut(Path::new(LIST)).unwrap();
    assert!(list.ends_with(b",\n}\n"));
    list.truncate(list.len() - 2);
    list.extend(format!("{line}}}\n").bytes());
    let directory = Path::new(LIST).parent().unwrap();
    assert!(files.insert(directory.join(file_name), file.clone().into_bytes()).is_none());
    // Not a part of it, but of the question: does it need more than what is public?
    let tests = Path::new("crates/plait-sched/tests");
    files.insert(tests.join("outside.rs"), OUTSIDE.into());
    let public = file.replace("crate::", "plait_sched::").replace("pub(crate) const", "pub const");
    files.insert(tests.join("example/mod.rs"), public.into_bytes());

    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer");
    lay_out(&copy, &files);
    let built = build(&copy);
    let program = |name: &str, test: bool| built[&(name.to_owned(), test)].as_path();

    succeeds(&mut Command::new(program("outside", true)));
    let contract = |name: &str| {
        let mut contract = Command::new(program("contract", true));
        contract.env("PLAIT_SCHEDULER", name).env("PROPTEST_CASES", "50");
        contract.current_dir(copy.join("crates/plait-sched"));
        contract
    };
    succeeds(&mut contract(&name));
    assert!(!contract("nobody").output().unwrap().status.success());

    let plait = Plait { program: program("plait", false), name: &name };
    plait.is_listed_and_in_help();
    plait.is_the_nearest_name();
    plait.decides();
    plait.is_compared();
    pages_are_generated(&copy, program("plait", true), &name);
}
