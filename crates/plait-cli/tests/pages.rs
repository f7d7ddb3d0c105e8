//! The README and the pages of docs/. The commands of the README, of the tutorial and of the guides run, and
//! print what the pages show. The pages below docs/reference are generated from the program; `PLAIT_BLESS=1`
//! writes them. mkdocs.yml lists every page.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod help;

use help::{commands_of, help};
use plait_app::MEASURES;
use plait_app::measure::{Better, Entry, Value};
use plait_lab::scenario::{PATH_KEYS, PathKey, SETTINGS, Setting};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Guides whose console blocks tests/shell, tests/measure and tests/deployed run.
const RUN_ELSEWHERE: [&str; 6] = ["emulate", "measure", "race", "home", "nginx", "phone"];
const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
/// Set to write the generated pages instead of comparing them.
const BLESS: &str = "PLAIT_BLESS";
/// Commands that cannot run in a test need root, a network or other programs. They are in ```console blocks.
/// Two of them are in the README: `make test` runs this test, and tests/examples.rs runs the example.
const MOST_BLOCKS_NOT_RUN: usize = 13;
/// Width of the reports in the pages.
const PAGE_COLUMNS: &str = "100";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the README, the tutorial and the guides.
fn taught() -> Vec<PathBuf> {
    let guides = fs::read_dir(root().join("docs/guides")).unwrap();
    let mut pages: Vec<PathBuf> = guides.map(|page| page.unwrap().path()).collect();
    pages.extend(["docs/tutorial.md", "README.md"].map(|page| root().join(page)));
    pages.sort();
    pages
}

/// Returns the pages in a directory and below it.
fn pages_below(directory: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(pages_below(&path));
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// A block of code between fences.
#[derive(PartialEq, Eq, Debug)]
struct Block {
    /// The word behind the fence.
    language: String,
    /// The line of the fence, from 1.
    line: usize,
    text: String,
}

/// Returns the blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.as_mut()) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                let language = language.to_owned();
                open = Some(Block { language, line: at + 1, text: String::new() });
            }
            (None, Some(block)) => writeln!(block.text, "{line}").unwrap(),
            (None, None) => {}
        }
    }
    assert_eq!(open, None, "a block has no end");
    blocks
}

/// An empty directory for one page, with the program on its path.
struct Place {
    directory: PathBuf,
    /// What the blocks have printed so far.
    printed: String,
}

impl Place {
    fn new(name: &str) -> Place {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages").join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("bin")).unwrap();
        std::os::unix::fs::symlink(PLAIT, directory.join("bin/plait")).unwrap();
        Place { directory, printed: String::new() }
    }

    /// Runs a block by bash, which stops at the first command that fails.
    fn run(&mut self, place: &str, block: &str) {
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", block])
            .current_dir(&self.directory)
            .env("PATH", format!("{}:{path}", self.directory.join("bin").display()))
            .env("COLUMNS", PAGE_COLUMNS)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{place}: {}\n{block}\n{problem}", output.status);
        self.printed += &String::from_utf8(output.stdout).unwrap();
    }

    /// Checks that the blocks before have printed every line of `shown`.
    fn printed(&self, place: &str, shown: &str) {
        let printed: BTreeSet<&str> = self.printed.lines().map(str::trim_end).collect();
        for line in shown.lines() {
            assert!(printed.contains(line.trim_end()), "{place}: not printed now: {line}");
        }
    }
}

#[test]
fn commands_of_the_readme_the_tutorial_and_the_guides_run_and_print_what_the_pages_show() {
    let mut not_run = 0;
    for path in taught() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut place = Place::new(name);
        for Block { language, line, text } in blocks(&fs::read_to_string(&path).unwrap()) {
            let at = format!("{}:{line}", path.display());
            match language.as_str() {
                "sh" => place.run(&at, &text),
                "text" => place.printed(&at, &text),
                "console" if RUN_ELSEWHERE.contains(&name) => {}
                "console" => not_run += 1,
                // A line of a log, or a file.
                "" | "toml" => {}
                // python/tests runs them.
                "python" if ["python", "cluster", "gym"].contains(&name) => {}
                other => panic!("{at}: `{other}`: use sh, text, console, toml or no word"),
            }
        }
    }
    assert!(not_run <= MOST_BLOCKS_NOT_RUN, "{not_run} blocks do not run");
}

/// Returns the commands of `plait` in a block of shell commands, each as its words.
fn commands_in(block: &str) -> Vec<Vec<String>> {
    // A command after `--` has flags of its own.
    let joined = block.replace("\\\n", " ").replace(" -- ", " ; ");
    let lines = joined.lines().map(|line| line.split(" #").next().unwrap_or_default());
    let parts = lines.flat_map(|line| line.split(['|', ';', '&', '(', ')']));
    let words = parts.map(|part| {
        let words = part.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned());
        words.skip_while(|word| word != "plait" && !word.ends_with("/plait")).skip(1).collect()
    });
    words.filter(|words: &Vec<String>| !words.is_empty()).collect()
}

/// Returns the first flag of a command that its help does not have. `help` returns the help of a command.
fn unknown_flag(words: &[String], mut help: impl FnMut(&[&str]) -> String) -> Option<&str> {
    let mut command: Vec<&str> = Vec::new();
    let mut text = help(&[]);
    for word in words {
        if !commands_of(&text).contains(word) {
            break;
        }
        command.push(word);
        text = help(&command);
    }
    let in_name = |it: char| it.is_ascii_alphanumeric() || it == '-';
    let known: BTreeSet<&str> = text.split(|it| !in_name(it)).collect();
    let flags = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    let mut names = flags.filter_map(|flag| flag.split('=').next());
    names.find(|name| !known.contains(name))
}

#[test]
fn commands_of_all_pages_have_flags_that_exist() {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let (mut checked, mut complaints) = (0, Vec::new());
    let root = root();
    let mut pages = pages_below(&root.join("docs"));
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    for path in pages {
        for Block { line, language, text } in blocks(&fs::read_to_string(&path).unwrap()) {
            if !["sh", "console", "bash"].contains(&language.as_str()) {
                continue;
            }
            for words in commands_in(&text) {
                let flag = unknown_flag(&words, |command| {
                    known.entry(command.join(" ")).or_insert_with(|| help(command)).clone()
                });
                complaints.extend(flag.map(|flag| {
                    let (page, command) = (path.display(), words.join(" "));
                    format!("{page}:{line}: `plait {command}`: its help has no {flag}")
                }));
                checked += 1;
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(checked > 60, "only {checked} commands were found");
}

#[test]
fn every_page_is_in_the_navigation() {
    let docs = root().join("docs");
    let name = |page: PathBuf| page.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned();
    let mut pages: BTreeSet<String> = pages_below(&docs).into_iter().map(name).collect();
    let site = fs::read_to_string(root().join("mkdocs.yml")).unwrap();
    let (_, nav) = site.split_once("\nnav:\n").unwrap();
    let listed = nav.split_whitespace().filter(|word| word.ends_with(".md"));
    // docs/site/hooks.py makes the pages of project/, and lists the pages of `DIR/*.md`.
    let (whole, listed): (Vec<&str>, Vec<&str>) =
        listed.filter(|page| !page.starts_with("project/")).partition(|page| page.contains('*'));
    let listed: BTreeSet<String> = listed.into_iter().map(str::to_owned).collect();
    let of_whole =
        |page: &String| whole.iter().any(|dir| page.starts_with(dir.trim_end_matches("*.md")));
    pages.retain(|page| !of_whole(page));
    assert_eq!(listed, pages, "the `nav` of mkdocs.yml (left) and the pages in docs/ differ");
}

/// Compares a page with its file, or writes it.
fn generated(file: &str, fresh: &str) {
    let path = root().join(file);
    if std::env::var_os(BLESS).is_some() {
        fs::write(&path, fresh).unwrap();
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let stale = fresh.lines().find(|line| !stored.lines().any(|known| known == *line));
    assert!(
        stored == fresh,
        "{file} is out of date: run `{BLESS}=1 cargo test -p plait-cli --test pages` and commit it. \
         First line that differs: {}",
        stale.unwrap_or("one too many in the file")
    );
}

/// Returns the start of a generated page.
fn page(title: &str, purpose: &str) -> String {
    format!(
        "# {title}\n\n\
         <!-- Written by `{BLESS}=1 cargo test -p plait-cli --test pages`; do not edit. -->\n\n\
         {purpose}\n"
    )
}

/// Returns prose as a cell of a table.
fn cell(text: &str) -> String {
    let text = text.replace('\n', " ");
    ["|", "*", "<"].into_iter().fold(text, |text, mark| text.replace(mark, &format!("\\{mark}")))
}

/// Returns code as a cell of a table, or an empty one.
fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

fn measure_row(entry: &Entry) -> String {
    let better = match entry.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "",
    };
    let of = match entry.value {
        Value::Run(_) => "run",
        Value::Path(_) => "path",
    };
    let workloads = match entry.workloads.len() == plait_app::WORKLOADS.len() {
        true => "all".to_owned(),
        false => entry.workloads.join(", "),
    };
    let Entry { name, unit, definition, .. } = entry;
    format!("| `{name}` | {unit} | {better} | {of} | {workloads} | {} |", cell(definition))
}

#[test]
fn the_page_of_measures_is_up_to_date() {
    let mut text = page(
        "Measures",
        "Look up here what a number of a report means, its unit, and which workloads have it. `plait list measures NAME`\n\
         prints a row of this table.",
    );
    text += "\n`--expect` and claims name a measure, and behind it a statistic over the runs: `ecf.completion_ms.p95`. A measure\n\
             of each path takes the name of the path: `ecf.path_share.wifi`. `path_share` has the first transmissions alone, and\n\
             `path_sent_share` all bytes sent, as the tables of comparisons do. `--expect` also takes `path_bytes.PATH`, the bytes sent.\n\
             [Experiment files](../experiments.md#the-file) list further measures, which experiments collect when a claim or a picture\n\
             names them.\n\n\
             | measure | unit | better | of each | workloads | meaning |\n|---|---|---|---|---|---|\n";
    for entry in MEASURES {
        writeln!(text, "{}", measure_row(entry)).unwrap();
    }
    generated("docs/reference/measures.md", &text);
}

fn path_key_row(key: &PathKey) -> String {
    let yes = |is: bool| if is { "yes" } else { "" };
    let sign = if key.is_switch() { "" } else { "=" };
    let name = code(&format!("{}{sign}{}", key.name, key.form));
    let (links, repeats) = (yes(key.of_links), yes(key.repeats));
    format!("| {name} | {} | {} | {links} | {repeats} |", code(key.example), cell(key.help))
}

fn setting_row(setting: &Setting) -> String {
    let Setting { name, default, help, clause, .. } = setting;
    let values = cell(&setting.values());
    format!("| `--{name}` | {} | {} | {values} | {} |", code(default), cell(help), cell(clause))
}

#[test]
fn the_page_of_keys_is_up_to_date() {
    let mut text = page(
        "Keys and settings",
        "Look up here every key of a path and every setting of a scenario, with its values, its default and its source.",
    );
    text += "\nA setting is a flag, and without its dashes a key of [scenario and experiment\n\
             files](../experiments.md#the-file). [The command line](cli.md) lists the settings of each command.\n\
             [Describe your links](../paths.md) shows how to write rates, delays and recordings.\n\n\
             ## Keys of a path\n\nDown is from server to client. A key of a shared link (`--link`) has `yes` in the column \
             `links`; one that may be given\nmore than once has it in `repeats`.\n\n\
             | key | example | meaning | links | repeats |\n|---|---|---|---|---|\n";
    for key in PATH_KEYS {
        writeln!(text, "{}", path_key_row(key)).unwrap();
    }
    let mut groups: Vec<&str> = Vec::new();
    for setting in SETTINGS {
        if !groups.contains(&setting.group) {
            groups.push(setting.group);
        }
    }
    for group in groups {
        let head = "| setting | default | meaning | values | source |\n|---|---|---|---|---|";
        writeln!(text, "\n## {group}\n\n{head}").unwrap();
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            writeln!(text, "{}", setting_row(setting)).unwrap();
        }
    }
    let fixed = SETTINGS.iter().filter(|setting| !setting.varies);
    let fixed: Vec<String> = fixed.map(|setting| format!("`{}`", setting.name)).collect();
    let fixed = fixed.join(", ");
    write!(text, "\n`--vary` changes every setting and every key, except {fixed}.\n").unwrap();
    generated("docs/reference/keys.md", &text);
}

/// Returns the name of the option that a line of a help begins.
fn option_of(line: &str) -> Option<&str> {
    let blanks = line.len() - line.trim_start().len();
    let rest = line.trim_start().strip_prefix('-').filter(|_| (2..=6).contains(&blanks))?;
    let (_, long) = rest.split_once('-')?;
    let long = long.trim_start_matches('-');
    long.split(|it: char| !it.is_ascii_alphanumeric() && it != '-').next()
}

/// Returns whether a line of a help begins a list of options or arguments.
fn is_heading(line: &str) -> bool {
    line.ends_with(':') && !line.starts_with(' ')
}

/// Returns a help without the options that every command has, without settings of scenarios, and without the
/// text behind the options. Returns the names of these settings as well.
fn without_settings(help: &str) -> (String, Vec<String>) {
    let (mut kept, mut settings) = (Vec::new(), Vec::new());
    let (mut group, mut dropped) = ("", false);
    for line in help.lines().map(str::trim_end) {
        if is_heading(line) {
            (group, dropped) = (line.trim_end_matches(':'), false);
        } else if group == "Options" || SETTINGS.iter().any(|setting| setting.group == group) {
            dropped |= !line.is_empty() && !line.starts_with(' ');
        }
        if let Some(name) = option_of(line) {
            let of_group = |setting: &Setting| setting.group == group;
            let setting = Setting::named(name).is_some_and(of_group)
                || (name == "path" && group == "Scenario");
            dropped = setting || ["quiet", "verbose", "help"].contains(&name);
            settings.extend(setting.then(|| format!("`--{name}`")));
        }
        if !dropped {
            kept.push(line);
        }
    }
    // A heading without options goes as well, and so do blank lines in a row.
    let mut text: Vec<&str> = Vec::new();
    for line in kept.into_iter().rev() {
        let next = text.last().copied().unwrap_or("");
        let heads_nothing = is_heading(line) && !next.starts_with(' ');
        let repeats = line.is_empty() && next.is_empty();
        if !heads_nothing && !repeats {
            text.push(line);
        }
    }
    text.reverse();
    (text.join("\n"), settings)
}

/// Writes the section of a command and those of its own commands.
fn write_command(text: &mut String, command: &[&str]) {
    let help = help(command);
    let (shown, settings) = without_settings(&help);
    let depth = "#".repeat(command.len() + 1);
    write!(text, "\n{depth} plait {}\n\n```text\n{shown}\n```\n", command.join(" ")).unwrap();
    if !settings.is_empty() {
        let settings = settings.join(", ");
        write!(text, "\n[Keys and settings](keys.md) that it takes: {settings}.\n").unwrap();
    }
    for inner in commands_of(&help) {
        write_command(text, &[command, &[inner.as_str()]].concat());
    }
}

#[test]
fn the_page_of_the_command_line_is_up_to_date() {
    let mut text = page(
        "The command line",
        "Look up here what a command does, its flags and its exit codes. `plait COMMAND --help` prints the same, and `-h` a\n\
         summary.",
    );
    text += "\nEvery command takes `-q` (`--quiet`: nothing on stderr but errors), `-v` (`--verbose`: more on stderr; repeat it for\n\
             still more) and `-h` (`--help`).\n";
    let commands = commands_of(&help(&[]));
    assert!(commands.contains(&"compare".to_owned()), "{commands:?}");
    for command in commands {
        write_command(&mut text, &[command.as_str()]);
    }
    generated("docs/reference/cli.md", &text);
}

// The checks are checked.

#[test]
fn blocks_of_a_page_are_found() {
    let page = "text\n\n```sh\na\nb\n```\n```\nc\n```\n";
    let block = |language: &str, line, text: &str| Block {
        language: language.to_owned(),
        line,
        text: text.to_owned(),
    };
    assert_eq!(blocks(page), [block("sh", 3, "a\nb\n"), block("", 7, "c\n")]);
}

#[test]
fn a_flag_that_does_not_exist_is_found() {
    let block = "plait run --seed 1 \\\n  --path a | grep x # --no\nsudo target/release/plait trace show --fille=b\n";
    let commands = commands_in(block);
    let flags: Vec<Option<&str>> = commands.iter().map(|words| unknown_flag(words, help)).collect();
    assert_eq!(flags, [None, Some("--fille")], "{commands:?}");
}

#[test]
#[should_panic(expected = "exit status: 1")]
fn a_command_that_fails_is_found() {
    Place::new("fails").run("here", "true\nfalse | cat\ntrue\n");
}

#[test]
#[should_panic(expected = "not printed now: b")]
fn a_line_that_is_not_printed_is_found() {
    let mut place = Place::new("prints");
    place.run("here", "echo a");
    place.printed("here", "a\nb\n");
}
