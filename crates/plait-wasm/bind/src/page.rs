//! Puts the files of the page into one.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

const STYLE: &str = "<link rel=\"stylesheet\" href=\"race.css\">";
const SCRIPT: &str = "<script type=\"module\" src=\"main.js\"></script>";

/// Returns `index.html` of the directory with its style and its scripts in their places. Before the scripts are the
/// worker, which begins with the bindings, and the module.
pub(crate) fn written(web: &Path, bindings: &str, module: &[u8]) -> Result<String> {
    let html = text(web, "index.html")?;
    let mut modules = Vec::new();
    let mut code = String::new();
    gather(web, "main.js", &mut modules, &mut code)?;
    let worker = format!("{bindings}\n{}", text(web, "worker.js")?);
    for script in [&code, &worker] {
        if script.to_ascii_lowercase().contains("</script") {
            return Err(invalid("a script contains the end of a script element"));
        }
    }
    let scripts = format!(
        "<script type=\"text/plain\" id=\"worker\">\n{worker}</script>\n\
         <script type=\"text/plain\" id=\"module\">{}</script>\n\
         <script type=\"module\">\n{code}</script>",
        BASE64_STANDARD.encode(module)
    );
    let style = format!("<style>\n{}</style>", text(web, "race.css")?);
    replaced(&replaced(&html, STYLE, &style)?, SCRIPT, &scripts)
}

fn invalid(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidData, problem)
}

fn text(web: &Path, name: &str) -> Result<String> {
    fs::read_to_string(web.join(name))
        .map_err(|error| Error::new(error.kind(), format!("{}: {error}", web.join(name).display())))
}

fn replaced(html: &str, place: &str, by: &str) -> Result<String> {
    match html.matches(place).count() {
        1 => Ok(html.replacen(place, by, 1)),
        found => Err(invalid(&format!("index.html has `{place}` {found} times"))),
    }
}

/// Appends a module after those that it imports. All modules share one scope afterwards, so a name may be declared
/// only once in all of them: a second declaration is a syntax error in the browser.
fn gather(web: &Path, name: &str, done: &mut Vec<String>, code: &mut String) -> Result<()> {
    if done.iter().any(|known| known == name) {
        return Ok(());
    }
    done.push(name.to_owned());
    let mut own = String::new();
    for line in text(web, name)?.lines() {
        if let Some(rest) = line.strip_prefix("import ") {
            let from = rest.split_once(" from \"./").and_then(|(_, from)| from.strip_suffix("\";"));
            let from = from.ok_or_else(|| {
                invalid(&format!("{name}: write an import in one line, as import {{ a }} from \"./b.js\";: {line}"))
            })?;
            gather(web, from, done, code)?;
        } else {
            own.push_str(line.strip_prefix("export ").unwrap_or(line));
            own.push('\n');
        }
    }
    code.push_str(&own);
    Ok(())
}
