//! `plait reproduce --html`: a page for each paper, or of one figure, an index of all pages that the
//! directory has, and every picture as a file. A page needs nothing but itself.

mod figure;
mod index;
mod plot;

use super::page::{STYLE, escaped};
use crate::commands::reproduction::{Document, Verdict};
use crate::console::write;
use crate::failure::Failure;
use figure::{Drawn, draw};
use plait_lab::experiment::{PAPERS, Results};
use std::fmt::Write;
use std::path::Path;

const PAGES: &str = include_str!("papers.css");
const PLOTS: &str = include_str!("plot.css");

/// Writes the pages and pictures into a directory, which is made where it is missing. A single
/// `figure` has a page of its own, so that it takes the place of no other.
pub(crate) fn render(
    directory: &Path,
    results: &[Results],
    figure: bool,
    document: &Document,
) -> Result<(), Failure> {
    let pictures = directory.join("svg");
    std::fs::create_dir_all(&pictures)
        .map_err(|error| Failure::unwritable("--html", directory, &error))?;
    for (tag, title, place) in PAPERS {
        let of: Vec<&Results> =
            results.iter().filter(|it| it.plan.experiment.paper() == *tag).collect();
        let claims: Vec<&Verdict> =
            document.claims.iter().filter(|it| it.id.split('-').next() == Some(*tag)).collect();
        if of.is_empty() && claims.is_empty() {
            continue;
        }
        let mut body = String::new();
        let _ = write!(
            body,
            "<header><p class=\"what\"><a href=\"index.html\">All papers</a></p>\n<h1>{} \
             <span>{}</span></h1>\n<p class=\"what\">{}</p></header>\n",
            escaped(title),
            escaped(place),
            tally(&claims)
        );
        let alone = of.first().filter(|_| figure).map(|one| &one.plan.experiment);
        for one in of {
            experiment(&mut body, one, &claims, &pictures)?;
        }
        let rest: Vec<&&Verdict> = claims.iter().filter(|it| it.experiment.is_empty()).collect();
        if !rest.is_empty() {
            body.push_str("<section>\n<h2>Computed by tests</h2>\n");
            table(&mut body, rest.into_iter().copied());
            body.push_str("</section>\n");
        }
        let (name, entry) = match alone {
            Some(one) => (one.id.as_str(), format!("{}: {}", one.id, one.title)),
            None => (*tag, (*title).to_owned()),
        };
        let entry = index::entry(&entry, place, &tally(&claims));
        let page = page(&format!("{title} ({place})"), &entry, &body, document);
        write("--html", &directory.join(format!("{name}.html")), &page)?;
    }
    let body = index::body(directory)?;
    write("--html", &directory.join("index.html"), &page("The papers again", "", &body, document))
}

/// How many claims stand how.
fn tally(claims: &[&Verdict]) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for claim in claims {
        match counts.iter_mut().find(|(standing, _)| *standing == claim.standing) {
            Some((_, count)) => *count += 1,
            None => counts.push((claim.standing.clone(), 1)),
        }
    }
    let parts: Vec<String> =
        counts.iter().map(|(standing, count)| format!("{count} {standing}")).collect();
    parts.join(", ")
}

fn page(title: &str, entry: &str, body: &str, document: &Document) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n{entry}\
         <title>{} \u{b7} plait reproduce</title>\n<style>\n{STYLE}{PAGES}{PLOTS}</style>\n</head>\n\
         <body>\n<main>\n{body}<footer>plait {} ({}): <code>{}</code></footer>\n</main>\n</body>\n\
         </html>\n",
        escaped(title),
        env!("CARGO_PKG_VERSION"),
        env!("PLAIT_COMMIT"),
        escaped(&document.command),
    )
}

fn experiment(
    body: &mut String,
    results: &Results,
    claims: &[&Verdict],
    pictures: &Path,
) -> Result<(), Failure> {
    let experiment = &results.plan.experiment;
    let _ = write!(
        body,
        "<section id=\"{id}\">\n<h2>{id}: {}</h2>\n<p><span class=\"note\">Paper:</span> {}</p>\n",
        escaped(&experiment.title),
        escaped(&experiment.reported),
        id = escaped(&experiment.id),
    );
    for note in &experiment.notes {
        let _ = writeln!(body, "<p class=\"hint\">{}</p>", escaped(note));
    }
    let drawn = draw(results);
    if !drawn.is_empty() {
        body.push_str("<div class=\"plots\">\n");
        for Drawn { name, title, svg } in &drawn {
            let _ = writeln!(
                body,
                "<figure><figcaption><b>{}</b></figcaption>{svg}</figure>",
                escaped(title)
            );
            write("--html", &pictures.join(format!("{name}.svg")), &standalone(svg))?;
        }
        body.push_str("</div>\n");
    }
    table(body, claims.iter().copied().filter(|it| it.experiment == experiment.id));
    body.push_str("</section>\n");
    Ok(())
}

/// The drawing with the colours that it needs outside a page.
fn standalone(svg: &str) -> String {
    let colours = STYLE.split("* {").next().unwrap_or_default().replace(":root", "svg");
    let style = format!("<style>{colours}svg {{ background: var(--ground); }}\n{PLOTS}</style>");
    svg.replacen("</title>", &format!("</title>{style}"), 1) + "\n"
}

fn table<'a>(body: &mut String, claims: impl Iterator<Item = &'a Verdict>) {
    let mut rows = String::new();
    for claim in claims {
        let class = match claim.standing.as_str() {
            "holds again" => "again",
            "not run" => "open",
            other => other,
        };
        let why = match claim.why.as_str() {
            "" => String::new(),
            why => format!("<br><span class=\"note\">Why not: {}</span>", escaped(why)),
        };
        let _ = writeln!(
            rows,
            "<tr><th>{}</th><td class=\"note\">{}</td><td class=\"{class}\">{}</td><td>{}</td>\
             <td>{}{why}</td></tr>",
            escaped(&claim.id),
            escaped(&claim.kind),
            escaped(&claim.standing),
            escaped(&claim.paper),
            escaped(&claim.got),
        );
    }
    if !rows.is_empty() {
        let _ = write!(
            body,
            "<div class=\"scroll\"><table class=\"claims\"><thead><tr><th>claim</th><th>kind</th>\
             <th></th><th>paper says</th><th>we got</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n"
        );
    }
}
