//! Schedulers and congestion controllers are each added in one file and one line. A setting or a key of a path
//! is one entry. This test follows CONTRIBUTING.md with its examples, in a copy of the sources, and looks for
//! the new entries everywhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A list that can be extended.
struct List {
    /// The heading in CONTRIBUTING.md.
    heading: &'static str,
    package: &'static str,
    /// File that contains the list at its end. The new file is placed beside it.
    file: &'static str,
    /// Expression that builds the new entry from outside its crate.
    build: &'static str,
}

const LISTS: [List; 2] = [
    List {
        heading: "## Add a scheduler: one file and one line\n",
        package: "sched",
        file: "crates/plait-sched/src/schedulers/mod.rs",
        build: "(example::ENTRY.build)(&plait_sched::Params::default())",
    },
    List {
        heading: "## Add a congestion controller: one file and one line\n",
        package: "cc",
        file: "crates/plait-cc/src/algorithms/mod.rs",
        build: "(example::ENTRY.make)(&plait_cc::Params::default())",
    },
];
/// Measured results of the schedulers.
const MEASURED: &str = "crates/plait-report/src/list/measured.txt";

/// The crates that do most of the work of a simulation.
const SIMULATING: [&str; 5] = ["plait-cc", "plait-core", "plait-link", "plait-sched", "plait-sim"];

/// The unit tests of plait-report in the copy, as a test of their own. `--lib` would build those of every package.
const UNIT_TESTS: &str = "unit_tests";

/// Returns paths and contents below a directory.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns every file below `root.join(part)`, with paths relative to `root`.
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

/// Sources of the build: manifests, crates, embedded files and generated pages.
fn sources(root: &Path) -> Files {
    let mut files = Files::new();
    for part in ["Cargo.toml", "Cargo.lock", "README.md", "crates", "docs/schedulers", "docs/cc"] {
        collect(root, Path::new(part), &mut files);
    }
    files
}

/// Gives the copy's packages their own version. Cargo identifies packages by name, version and place in the
/// workspace, and must not mix artifacts of both builds.
fn set_apart(files: &mut Files) {
    let version = format!("version = \"{}\"\n", env!("CARGO_PKG_VERSION"));
    let own = "version = \"0.0.0-newcomer\"\n";
    let mut edit = |file: &str, change: &dyn Fn(&str) -> String| {
        let content = files.get_mut(Path::new(file)).unwrap();
        let changed = change(std::str::from_utf8(content).unwrap());
        assert!(changed.contains(own), "{file}");
        *content = changed.into_bytes();
    };
    let dependency = version.replace('\n', ", path");
    let own_dependency = own.replace("\"0", "\"=0").replace('\n', ", path");
    edit("Cargo.toml", &|text| {
        text.replacen(&version, own, 1).replace(&dependency, &own_dependency)
    });
    edit("Cargo.lock", &|text| {
        let packages = text.split("[[package]]\n").map(|package| {
            let ours = package.starts_with("name = \"plait-");
            if ours { package.replacen(&version, own, 1) } else { package.to_owned() }
        });
        packages.collect::<Vec<_>>().join("[[package]]\n")
    });
}

/// Makes the copy hold exactly `files`. Unchanged files are not written, so that they are not rebuilt.
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

/// Returns the two blocks of code below a heading of CONTRIBUTING.md.
fn blocks(heading: &str) -> [String; 2] {
    let text = include_str!("../../../CONTRIBUTING.md");
    let (_, section) = text.split_once(heading).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```rust\n").skip(1).map(|rest| rest.split("```").next());
    let blocks: Vec<String> = blocks.map(|block| block.unwrap().to_owned()).collect();
    blocks.try_into().unwrap()
}

/// Adds a setting and a key of a path to a table of each, one entry each.
fn add_entries(files: &mut Files) {
    let tables = [
        ("settings/connection.rs", "pub(super) const SETTINGS: &[Setting] = &[\n"),
        ("path_keys/impairments.rs", "pub(super) const PATH_KEYS: &[PathKey] = &[\n"),
    ];
    let entries = blocks("## Add a setting or a path key: one entry\n");
    for ((file, start), entry) in tables.into_iter().zip(entries) {
        let file = format!("crates/plait-lab/src/scenario/{file}");
        let content = files.get_mut(Path::new(&file)).unwrap();
        let text = std::str::from_utf8(content).unwrap();
        let (before, table) = text.split_once(start).unwrap();
        let (table, after) = table.split_once("\n];\n").unwrap();
        *content = format!("{before}{start}{table}\n{entry}];\n{after}").into_bytes();
    }
}

/// Makes the unit tests of plait-report a test that can be built by its name.
fn add_unit_tests(files: &mut Files) {
    let manifest = files.get_mut(Path::new("crates/plait-report/Cargo.toml")).unwrap();
    let target = format!("\n[[test]]\nname = \"{UNIT_TESTS}\"\npath = \"src/lib.rs\"\n");
    manifest.extend(target.bytes());
}

impl List {
    /// Returns the two code blocks of the section: the example and the line to add.
    fn example(&self) -> (String, String) {
        let [file, line] = blocks(self.heading);
        assert_eq!(line.lines().count(), 1, "one file and one line");
        (file, line)
    }

    /// Adds the file and the line; returns the name of the new entry.
    fn add_newcomer(&self, files: &mut Files) -> String {
        let (file, line) = self.example();
        let entry = file
            .split("ENTRY: Entry = Entry {\n    about: About {\n        name: \"")
            .nth(1)
            .unwrap();
        let name = entry.split('"').next().unwrap().to_owned();
        let list = files.get_mut(Path::new(self.file)).unwrap();
        assert!(list.ends_with(b",\n}\n"));
        list.truncate(list.len() - 2);
        list.extend(format!("{line}}}\n").bytes());
        let own = Path::new(self.file).with_file_name(line.trim().replace(',', ".rs"));
        assert!(files.insert(own, file.into_bytes()).is_none(), "{name} is there already");
        name
    }

    /// Adds a test that compiles the example from outside, so that it can use only public items.
    fn add_outsider(&self, files: &mut Files) {
        let List { package, build, .. } = self;
        let text = format!(
            "#![allow(missing_docs)]\nextern crate alloc;\nmod example;\n\n#[test]\n\
             fn it_is_built() {{\n    assert!(!format!(\"{{:?}}\", {build}).is_empty());\n}}\n"
        );
        let tests = PathBuf::from(format!("crates/plait-{package}/tests"));
        files.insert(tests.join(format!("outside_{package}.rs")), text.into_bytes());
        let (file, _) = self.example();
        let file = file.replace("crate::", &format!("plait_{package}::"));
        let file = file.replace("pub(crate) const", "pub const");
        files.insert(tests.join("example/mod.rs"), file.into_bytes());
        let manifest = files.get_mut(&tests.with_file_name("Cargo.toml")).unwrap();
        manifest.extend(format!("\n[[test]]\nname = \"outside_{package}\"\n").bytes());
    }
}

/// Returns a cargo command for the copy. It reuses this build's external crates; programs are stored apart.
fn cargo(copy: &Path) -> Command {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(copy)
        .env("CARGO_BUILD_BUILD_DIR", temporary.parent().unwrap())
        .env("CARGO_TARGET_DIR", temporary.join("newcomer-target"));
    // The cargo that runs this test sets these variables.
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

/// Returns the packages of the copy.
fn packages(copy: &Path) -> Vec<String> {
    let crates = fs::read_dir(copy.join("crates")).unwrap();
    crates.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns the built programs, by package, target and whether each is a test.
fn build(copy: &Path) -> BTreeMap<(String, String, bool), PathBuf> {
    let mut cargo = cargo(copy);
    // The whole workspace is built, so that external crates have the same features as in `make test`.
    cargo.args(["test", "--workspace", "--offline", "--locked", "--no-run"]);
    // The live commands have the same lists, and no part of this test.
    cargo.args(["--no-default-features", "--message-format=json"]);
    // Full optimisation would take minutes. The crates that simulate run long enough to gain from a little of it.
    for package in packages(copy) {
        let level =
            if SIMULATING.contains(&package.as_str()) { "opt-level=1" } else { "opt-level=0" };
        for setting in [level, "debug=false"] {
            cargo.args(["--config", &format!("profile.dev.package.{package}.{setting}")]);
        }
    }
    // `floors` is included because the tests of a package also build its program.
    for test in ["contract", "properties", "outside_sched", "outside_cc", "floors", UNIT_TESTS] {
        cargo.args(["--test", test]);
    }
    let messages = succeeds(&mut cargo);
    let messages = messages.lines().map(|line| serde_json::from_str(line).unwrap());
    messages
        .filter_map(|message: Value| {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let program = PathBuf::from(text(&message["executable"])?);
            let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
            let package = directory.file_name()?.to_str()?.to_owned();
            let target = text(&message["target"]["name"])?;
            Some(((package, target, message["profile"]["test"].as_bool()?), program))
        })
        .collect()
}

/// The copy's program, in which users see the new entries.
struct Plait<'a> {
    program: &'a Path,
    scheduler: &'a str,
    controller: &'a str,
}

impl Plait<'_> {
    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(self.program);
        command.args(arguments.split_whitespace()).env("COLUMNS", "100").env("NO_COLOR", "1");
        command
    }

    fn says(&self, arguments: &str) -> String {
        succeeds(&mut self.command(arguments))
    }

    fn lists_them_and_names_them_in_help(&self) {
        let Plait { scheduler, controller, .. } = self;
        for (kind, name) in [("schedulers", scheduler), ("cc", controller)] {
            let list = self.says(&format!("list {kind}"));
            assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
            let page = self.says(&format!("list {kind} {name}"));
            for part in [name, "Good at", "Bad at", "CONTRIBUTING.md"] {
                assert!(page.contains(part), "{part} is not in {page}");
            }
        }
        let page = self.says(&format!("list schedulers {scheduler}"));
        for part in ["most-room", "argmax room", "relative=off"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        for command in ["compare", "run"] {
            let help = self.says(&format!("{command} --help"));
            assert!(help.contains(scheduler) && help.contains(controller), "{help}");
        }
    }

    fn has_them_as_nearest_names(&self) {
        let common = "compare --path wifi-home --path lte-att --workload download:64kB";
        for (flag, name) in [("schedulers", self.scheduler), ("cc", self.controller)] {
            // The name without its second letter.
            let wrong = format!("{}{}", &name[..1], &name[2..]);
            let output = self.command(&format!("{common} --{flag} {wrong}")).output().unwrap();
            let problem = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2));
            assert!(problem.contains(&format!("did you mean `{name}`?")), "{problem}");
        }
    }

    fn answers(&self, arguments: &str, questions: &[Value]) -> Vec<Value> {
        let mut decide = self.command(arguments);
        let mut decide = decide.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = decide.stdin.take().unwrap();
        questions.iter().for_each(|question| writeln!(stdin, "{question}").unwrap());
        drop(stdin);
        let output = decide.wait_with_output().unwrap();
        assert!(output.status.success());
        let answers = String::from_utf8(output.stdout).unwrap();
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn asks_them(&self) {
        // Free segments: 4 of 10, and 5 of 20.
        let subflows = json!([
            {"id": 0, "srtt_ms": 50, "cwnd": 10, "inflight": 6},
            {"id": 1, "srtt_ms": 10, "cwnd": 20, "inflight": 15},
        ]);
        let ask = |params: Value| json!({"scheduler": self.scheduler, "params": params, "subflows": subflows});
        let answers = self.answers("decide", &[ask(json!({})), ask(json!({"relative": true}))]);
        let chosen = answers.iter().map(|it| (it["subflow"].clone(), it["numbers"].clone()));
        let expected = [
            (json!(1), json!({"room_bytes.1": 5 * 1460})),
            (json!(0), json!({"room_bytes.0": 4 * 1460})),
        ];
        assert_eq!(chosen.collect::<Vec<_>>(), expected);
        let flow = json!({"cwnd": 10, "ssthresh": 5, "srtt_ms": 10});
        let acked = json!({"cc": self.controller, "flows": [flow], "event": {"ack": 1460}});
        // 1460 * 1460 / (2 * 14600)
        assert_eq!(self.answers("decide --cc", &[acked])[0]["change_bytes"], 73);
    }

    /// Checks that the setting and the key of a path are listed and have an effect.
    fn knows_the_entries(&self) {
        let help = self.says("compare --help");
        assert!(help.contains("--fin-timeout") && help.contains("cut=P%"), "{help}");
        let schema = self.says("schema experiment-file");
        assert!(schema.contains("\"fin-timeout\"") && schema.contains("\"cut\""), "{schema}");
        let common = "compare --path a:rtt=20ms,rate=5mbit --workload download:300kB --schedulers \
                      minrtt --runs 1 --json";
        for (wrong, nearest) in [("fin-timeot=1s", "fin-timeout"), ("a.ct=1%", "cut")] {
            let output = self.command(&format!("{common} --vary {wrong}")).output().unwrap();
            let problem = String::from_utf8(output.stderr).unwrap();
            assert!(problem.contains(&format!("did you mean `{nearest}`?")), "{problem}");
        }
        let vary = "--vary fin-timeout=1s..9s:3 --vary a.cut=0%,30%";
        let report: Value = serde_json::from_str(&self.says(&format!("{common} {vary}"))).unwrap();
        let points = report["points"].as_array().unwrap();
        let median =
            |at: usize| points[at]["rows"][0]["measures"]["completion_ms"]["median"].as_f64();
        assert_eq!(points.len(), 6);
        assert!(median(0).unwrap() < median(1).unwrap(), "segments that are cut cost time");
        let command = points[1]["command"].as_str().unwrap();
        assert!(command.contains("--fin-timeout 1s") && command.contains("cut=30%"), "{command}");
    }

    fn compares_them(&self) {
        let Plait { scheduler, controller, .. } = self;
        let rows = |settings: &str| -> Vec<(String, String)> {
            let report = self.says(&format!(
                "compare --json --path fast:rate=20mbit,rtt=20ms --path slow:rate=5mbit,rtt=60ms \
                 --workload download:2MB --exact {settings}"
            ));
            let report: Value = serde_json::from_str(&report).unwrap();
            let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
            let rows = report["rows"].as_array().unwrap().iter();
            rows.filter(|row| row["path_share"]["slow"].as_f64() > Some(0.0))
                .map(|row| (text(row, "scheduler"), text(row, "cc")))
                .collect()
        };
        let decorated = format!("{scheduler}:relative=on+rp");
        let some =
            rows(&format!("--schedulers minrtt,{scheduler},{decorated} --cc {controller},lia"));
        for name in [scheduler, decorated.as_str()] {
            for cc in [controller, "lia"] {
                assert!(some.contains(&(name.to_owned(), cc.to_owned())), "{some:?}");
            }
        }
        assert!(rows("--schedulers all").iter().any(|(row, _)| row == scheduler));
    }
}

/// Generates the pages of the copy and compares them again. No other file is written.
fn pages_are_generated(copy: &Path, tests: &Path, scheduler: &str, controller: &str) {
    let before = sources(copy);
    let written = fs::metadata(copy.join(MEASURED)).unwrap().modified().unwrap();
    let run = |bless: bool| {
        let mut command = Command::new(tests);
        command.arg("list::").current_dir(copy.join("crates/plait-report"));
        command.env_remove("PLAIT_BLESS");
        if bless {
            command.env("PLAIT_BLESS", "1");
        }
        command
    };
    let behind = run(false).output().unwrap();
    assert!(!behind.status.success(), "newcomers without pages went unnoticed");
    succeeds(&mut run(true));
    succeeds(&mut run(false));
    let after = sources(copy);
    let changed = after.iter().filter(|(path, content)| before.get(*path) != Some(content));
    let changed: Vec<String> = changed.map(|(path, _)| path.display().to_string()).collect();
    let pages = [format!("docs/cc/{controller}.md"), format!("docs/schedulers/{scheduler}.md")];
    let indices = ["docs/cc/README.md", "docs/schedulers/README.md"];
    assert_eq!(changed, [MEASURED, indices[0], &pages[0], indices[1], &pages[1]]);
    let [controllers, schedulers] = pages.map(|page| fs::read_to_string(copy.join(page)).unwrap());
    assert!(controllers.contains("growth = ") && controllers.contains("**Good at**"));
    for part in ["argmax room", "**Good at**", "## Measured", "`relative=off`"] {
        assert!(schedulers.contains(part), "{part} is not in {schedulers}");
    }
    // The measured results of the other schedulers stay unchanged.
    let lines = |files: &Files| -> Vec<String> {
        let table = String::from_utf8(files[Path::new(MEASURED)].clone()).unwrap();
        table.lines().map(str::to_owned).collect()
    };
    let mut kept = lines(&after);
    kept.retain(|line| !line.starts_with(scheduler));
    assert_eq!(kept, lines(&before));
    // The file is restored, also for the build.
    lay_out(copy, &before);
    let measured = fs::File::options().append(true).open(copy.join(MEASURED)).unwrap();
    measured.set_modified(written).unwrap();
}

#[test]
fn newcomers_are_added_in_one_file_and_one_line_or_by_one_entry() {
    let mut files = sources(&root());
    set_apart(&mut files);
    add_entries(&mut files);
    add_unit_tests(&mut files);
    let [scheduler, controller] = LISTS.map(|list| {
        // This is not part of the entry: it checks whether the entry needs private items.
        list.add_outsider(&mut files);
        list.add_newcomer(&mut files)
    });
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer");
    lay_out(&copy, &files);
    let built = build(&copy);
    let program = |package: &str, target: &str, test: bool| {
        built[&(package.to_owned(), target.to_owned(), test)].as_path()
    };
    for (package, test) in
        [("plait-sched", "outside_sched"), ("plait-cc", "outside_cc"), ("plait-cc", "properties")]
    {
        succeeds(&mut Command::new(program(package, test, true)));
    }
    let contract = |name: &str| {
        let mut contract = Command::new(program("plait-sched", "contract", true));
        contract.env("PLAIT_SCHEDULER", name).env("PROPTEST_CASES", "50");
        contract.current_dir(copy.join("crates/plait-sched"));
        contract
    };
    succeeds(&mut contract(&scheduler));
    assert!(!contract("nobody").output().unwrap().status.success());

    let plait = Plait {
        program: program("plait-cli", "plait", false),
        scheduler: &scheduler,
        controller: &controller,
    };
    plait.lists_them_and_names_them_in_help();
    plait.has_them_as_nearest_names();
    plait.asks_them();
    plait.compares_them();
    plait.knows_the_entries();
    let pages = program("plait-report", UNIT_TESTS, true);
    pages_are_generated(&copy, pages, &scheduler, &controller);
}
