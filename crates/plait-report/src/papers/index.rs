//! The index of all pages in its directory, including pages of earlier runs.

use super::super::page::escaped;
use crate::{Contents, Error};
use plait_lab::experiment::PAPERS;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Names of the `meta` elements that describe a page.
const PARTS: [&str; 3] = ["plait-title", "plait-place", "plait-claims"];
/// Title of an index that lists papers.
const OF_PAPERS: &str = "The papers again";
/// Length of a page's start that contains these elements, in bytes.
const HEAD: usize = 4_096;

/// Returns the description of a page for the index, as lines of its head.
pub(super) fn entry(title: &str, place: &str, claims: &str) -> String {
    let mut lines = String::new();
    for (name, text) in PARTS.into_iter().zip([title, place, claims]) {
        let _ = writeln!(lines, "<meta name=\"{name}\" content=\"{}\">", escaped(text));
    }
    lines
}

/// Returns the title of the index and the table of the pages in the directory. Papers come first,
/// in their order, each followed by its figures; other experiments follow.
pub(super) fn body(directory: &Path) -> Result<(&'static str, String), Error> {
    let trouble = |error| Error::unwritable(Contents::Pages, directory, &error);
    let mut pages: Vec<(usize, String, [String; 3])> = Vec::new();
    for file in fs::read_dir(directory).map_err(trouble)? {
        let name = file.map_err(trouble)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(stem) = name.strip_suffix(".html") else { continue };
        let tag = stem.split('-').next().unwrap_or(stem);
        let paper = PAPERS.iter().position(|known| known.0 == tag).unwrap_or(PAPERS.len());
        // An unreadable file is not a page of plait.
        let text = fs::read_to_string(directory.join(name)).unwrap_or_default();
        pages.extend(told(&text).map(|parts| (paper, stem.to_owned(), parts)));
    }
    // `fig9` comes before `fig10`.
    let tag = |stem: &str| stem.split('-').next().unwrap_or_default().to_owned();
    pages.sort_by_cached_key(|(paper, stem, _)| (*paper, tag(stem), stem.len(), stem.clone()));
    let of_papers = pages.iter().any(|page| page.0 < PAPERS.len());
    let mut rows = String::new();
    for (_, name, [title, place, claims]) in pages {
        let name = escaped(&name);
        let _ = writeln!(
            rows,
            "<tr><th><a href=\"{name}.html\">{title}</a></th><td>{place}</td><td>{claims}</td></tr>"
        );
    }
    let (title, words, first) = match of_papers {
        true => (OF_PAPERS, "their claims and the results", "paper"),
        false => ("Experiments", "the results", "experiments"),
    };
    let body = format!(
        "<header><h1>{title} <span>{words}</span></h1></header>\n\
         <section><div class=\"scroll\"><table class=\"claims\"><thead><tr><th>{first}</th><th></th>\
         <th>claims</th></tr></thead><tbody>\n{rows}</tbody></table></div></section>\n"
    );
    Ok((title, body))
}

/// Returns the description in a page, still escaped; `None` if plait did not write the page.
fn told(page: &str) -> Option<[String; 3]> {
    let head = page.get(..HEAD).unwrap_or(page);
    let part = |name: &str| {
        let (_, rest) = head.split_once(&format!("<meta name=\"{name}\" content=\""))?;
        let text = rest.split('"').next()?;
        (!text.contains(['<', '>'])).then(|| text.to_owned())
    };
    let [title, place, claims] = PARTS.map(part);
    Some([title?, place?, claims?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_says_of_itself_is_read_back_and_nothing_else() {
        let page = format!("<head>\n{}</head>", entry("A \"b\" <c>", "ToN", "2 holds"));
        let [title, place, claims] = told(&page).unwrap_or_default();
        assert_eq!((title.as_str(), place.as_str()), ("A &quot;b&quot; &lt;c&gt;", "ToN"));
        assert_eq!(claims, "2 holds");
        assert_eq!(told("<p>mine"), None);
        assert_eq!(told(&page.replace("2 holds", "<script>")), None);
        assert_eq!(told(&format!("{}{page}", "\u{e9}".repeat(HEAD))), None);
    }
}
