//! The recipe of the container image.

/// Returns the instructions of a recipe, each with its arguments.
fn instructions(recipe: &str) -> Vec<(&str, &str)> {
    let lines = recipe.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).collect()
}

/// The image begins empty and runs the binary that it copies. tests/package takes these same instructions.
#[test]
fn the_image_has_the_binary_alone() {
    let recipe = super::text("contrib/package/Containerfile");
    let instructions = instructions(&recipe);
    let names: Vec<&str> = instructions.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["FROM", "LABEL", "COPY", "ENTRYPOINT", "CMD"]);
    let of = |wanted: &str| instructions.iter().find(|(name, _)| *name == wanted).unwrap().1;
    assert_eq!(of("FROM"), "scratch");
    let (from, to) = of("COPY").split_once(' ').unwrap();
    let entry: Vec<String> = serde_json::from_str(of("ENTRYPOINT")).unwrap();
    assert_eq!(entry, [to]);
    // The context is target/package, which has the binary under this name.
    assert!(super::text("contrib/package/build").contains(&format!("\"$out/{from}\"")));
    let arguments: Vec<String> = serde_json::from_str(of("CMD")).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_plait")).args(arguments).output();
    assert!(output.unwrap().status.success());
    // An image has the license of the packages.
    let license = of("LABEL").split_once("licenses=\"").unwrap().1.trim_end_matches('"');
    assert!(super::text("Cargo.toml").contains(&format!("license = \"{license}\"")));
}
