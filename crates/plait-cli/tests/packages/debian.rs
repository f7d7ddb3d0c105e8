//! The metadata of the Debian package.

use std::collections::BTreeSet;
use std::path::Path;
use toml::{Table, Value};

fn metadata() -> Table {
    let manifest: Table = super::text("crates/plait-cli/Cargo.toml").parse().unwrap();
    manifest["package"]["metadata"]["deb"].as_table().unwrap().clone()
}

/// Returns the source, the target and the mode of each file of the package.
fn assets() -> Vec<[String; 3]> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let three = |asset: &Value| {
        let words: Vec<String> = asset.as_array().unwrap().iter().map(word).collect();
        <[String; 3]>::try_from(words).unwrap()
    };
    metadata()["assets"].as_array().unwrap().iter().map(three).collect()
}

#[test]
fn the_package_has_its_parts() {
    let targets: BTreeSet<String> = assets().into_iter().map(|[_, target, _]| target).collect();
    for part in [
        "usr/bin/",
        "usr/lib/systemd/system/",
        "usr/share/man/man1/",
        "usr/share/bash-completion/completions/plait",
        "usr/share/zsh/vendor-completions/_plait",
        "usr/share/fish/vendor_completions.d/plait.fish",
        "usr/share/doc/plait/copyright",
    ] {
        assert!(targets.contains(part), "{part}: {targets:?}");
    }
    assert_eq!(metadata()["changelog"].as_str(), Some("../../target/package-files/changelog"));
}

/// Each source is a file of the repository, or one that `contrib/package/build` writes.
#[test]
fn every_file_of_the_package_is_made() {
    let script = super::text("contrib/package/build");
    let changelog = metadata()["changelog"].as_str().unwrap().to_owned();
    let sources = assets().into_iter().map(|[source, _, _]| source).chain([changelog]);
    for source in sources {
        let source = source.strip_prefix("../../").unwrap();
        let written = match (
            source.strip_prefix("target/package/"),
            source.strip_prefix("target/package-files/"),
        ) {
            (Some(file), _) => format!("$out/{file}"),
            (_, Some("man/*.1")) => "$files/man/$page.1".to_owned(),
            (_, Some(file)) => match file.strip_prefix("completions/") {
                Some(shell) => {
                    let shells = script.lines().find(|line| line.starts_with("for shell in"));
                    assert!(shells.unwrap().contains(shell), "{shell}");
                    "$files/completions/$shell".to_owned()
                }
                None => format!("$files/{file}"),
            },
            _ => {
                assert!(super::root().join(source).is_file(), "{source}");
                continue;
            }
        };
        assert!(script.contains(&written), "contrib/package/build does not write {written}");
    }
}

/// Only the binary may be run, and only root may change a file.
#[test]
fn the_modes_are_right() {
    for [_, target, mode] in assets() {
        let program = Path::new(&target).starts_with("usr/bin");
        assert_eq!(mode, if program { "755" } else { "644" }, "{target}");
    }
}

/// The unit of the package differs from that of the repository by the path of the binary alone.
#[test]
fn the_unit_names_the_path_that_the_package_replaces() {
    let unit = super::text("contrib/plait-serve.service");
    let lines = unit.lines().filter(|line| line.contains("/usr/local/bin/plait"));
    let found: Vec<&str> = lines.collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("ExecStart=/usr/local/bin/plait serve "));
    assert!(
        super::text("contrib/package/build").contains("s,/usr/local/bin/plait,/usr/bin/plait,")
    );
}

/// The copyright file has the text of the MIT license, with a space before each line and a period for an empty one.
#[test]
fn the_copyright_file_has_the_license() {
    let copyright = super::text("contrib/package/copyright");
    let license = super::text("LICENSE-MIT");
    let text = license.lines().skip_while(|line| !line.starts_with("Permission"));
    let indented: Vec<String> = text
        .map(|line| if line.is_empty() { " .".to_owned() } else { format!(" {line}") })
        .collect();
    assert!(indented.len() > 10);
    assert!(copyright.contains(&indented.join("\n")));
    let year = license.lines().find(|line| line.starts_with("Copyright")).unwrap();
    let owner = year.strip_prefix("Copyright (c) ").unwrap();
    assert!(copyright.contains(&format!("Copyright: {owner}\n")));
}
