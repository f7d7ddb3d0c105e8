//! Writes the page of an advice, the page of a random scoreboard, and the pages of `plait reproduce --html`: a page for each paper or for one figure, and an
//! index of all pages in the directory. Every figure is also a file. Pages need no external
//! resources.

mod advice;
mod board;
mod figure;
mod index;
mod labels;
mod palette;
mod pdf;
mod plot;
mod standalone;

use super::page::{STYLE, escaped};
use crate::reproduction::{LeftOut, Paper, ReproductionDocument, Verdict, papers};
use crate::{Contents, Error};
pub use advice::advice_page;
pub use board::{board_map, board_page};
use figure::{Drawn, draw};
use palette::Palette;
use plait_lab::experiment::Results;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Returns the name of a measure in words, with its unit: `completion time (ms)` for `completion_ms`.
#[must_use]
pub fn label_of_measure(name: &str) -> String {
    labels::measure(name)
}

/// Draws the figures of experiments. Each has a name, a title, a note about its marks, and its drawing (SVG).
#[must_use]
pub fn figures(results: &[Results]) -> Vec<(String, String, String, String)> {
    let palette = Palette::of(&results.iter().collect::<Vec<_>>());
    let drawn = results.iter().flat_map(|one| draw(one, &palette));
    let file = |it: Drawn| (it.name, it.title, it.note, standalone::svg(&it.svg));
    drawn.map(file).collect()
}

const PAGES: &str = include_str!("papers.css");
const PLOTS: &str = include_str!("plot.css");

fn write(file: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(file, text).map_err(|error| Error::unwritable(Contents::Pages, file, &error))
}

/// The directories of a page's files.
struct Files {
    svg: PathBuf,
    pdf: PathBuf,
    csv: PathBuf,
}

impl Files {
    /// Creates missing directories.
    fn in_directory(directory: &Path) -> Result<Files, Error> {
        let made = |name: &str| {
            let path = directory.join(name);
            std::fs::create_dir_all(&path)
                .map_err(|error| Error::unwritable(Contents::Pages, directory, &error))?;
            Ok::<PathBuf, Error>(path)
        };
        Ok(Files { svg: made("svg")?, pdf: made("pdf")?, csv: made("csv")? })
    }
}

/// Writes the pages and figures into a directory, which is created if it is missing. A single
/// `figure` gets its own page, so that it does not replace the page of its paper.
///
/// # Errors
/// If a file cannot be written, or a figure cannot be drawn.
pub fn render(
    directory: &Path,
    results: &[Results],
    figure: bool,
    document: &ReproductionDocument,
) -> Result<(), Error> {
    let files = Files::in_directory(directory)?;
    for Paper { tag, title, place } in papers(document) {
        let of: Vec<&Results> =
            results.iter().filter(|it| it.plan.experiment.paper() == tag).collect();
        let claims: Vec<&Verdict> =
            document.claims.iter().filter(|it| it.paper_tag() == tag).collect();
        let left_out: Vec<&LeftOut> =
            document.left_out.iter().filter(|it| it.id.split('-').next() == Some(&tag)).collect();
        let tally = match claims.is_empty() && !left_out.is_empty() {
            true => "no core claims".to_owned(),
            false => tally(&claims),
        };
        let mut body = String::new();
        let _ = write!(
            body,
            "<header><p class=\"what\"><a href=\"index.html\">All papers</a></p>\n<h1>{} \
             <span>{}</span></h1>\n<p class=\"what\">{}</p></header>\n",
            escaped(&title),
            escaped(&place),
            tally
        );
        let alone = of.first().filter(|_| figure).map(|one| &one.plan.experiment);
        let palette = Palette::of(&of);
        for one in of {
            experiment(&mut body, one, &claims, &palette, &files)?;
        }
        for it in &left_out {
            let (id, title, why) = (escaped(&it.id), escaped(&it.title), escaped(&it.sentence()));
            let _ = write!(
                body,
                "<section id=\"{id}\">\n<h2>{id}: {title}</h2>\n<p>{why}</p>\n</section>\n"
            );
        }
        let rest: Vec<&&Verdict> = claims.iter().filter(|it| it.experiment.is_empty()).collect();
        if !rest.is_empty() {
            body.push_str("<section>\n<h2>Computed by tests</h2>\n");
            table(&mut body, rest.into_iter().copied());
            body.push_str("</section>\n");
        }
        let (name, entry) = match (alone, left_out.first().filter(|_| figure)) {
            (Some(one), _) => (one.id.clone(), format!("{}: {}", one.id, one.title)),
            (None, Some(one)) => (one.id.clone(), format!("{}: {}", one.id, one.title)),
            (None, None) => (tag, title.clone()),
        };
        let entry = index::entry(&entry, &place, &tally);
        let heading = if place.is_empty() { title } else { format!("{title} ({place})") };
        let page = page(&heading, &entry, &body, &document.command);
        write(&directory.join(format!("{name}.html")), &page)?;
    }
    let (title, body) = index::body(directory)?;
    write(&directory.join("index.html"), &page(title, "", &body, &document.command))
}

/// Returns the number of claims for each standing.
fn tally(claims: &[&Verdict]) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for claim in claims {
        match counts.iter_mut().find(|(standing, _)| *standing == claim.standing) {
            Some((_, count)) => *count += 1,
            None => counts.push((claim.standing.clone(), 1)),
        }
    }
    if counts.is_empty() {
        return "no claims".to_owned();
    }
    let parts: Vec<String> =
        counts.iter().map(|(standing, count)| format!("{count} {standing}")).collect();
    parts.join(", ")
}

fn page(title: &str, entry: &str, body: &str, command: &str) -> String {
    // The program and its subcommand.
    let made_by: Vec<&str> = command.split(' ').take(2).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n{entry}\
         <title>{} \u{b7} {}</title>\n<style>\n{STYLE}{PAGES}{PLOTS}</style>\n</head>\n\
         <body>\n<main>\n{body}<footer>plait {} ({}): <code>{}</code></footer>\n</main>\n</body>\n\
         </html>\n",
        escaped(title),
        escaped(&made_by.join(" ")),
        crate::VERSION,
        crate::COMMIT,
        escaped(command),
    )
}

fn experiment(
    body: &mut String,
    results: &Results,
    claims: &[&Verdict],
    palette: &Palette,
    files: &Files,
) -> Result<(), Error> {
    let experiment = &results.plan.experiment;
    let id = escaped(&experiment.id);
    let _ = writeln!(body, "<section id=\"{id}\">\n<h2>{id}: {}</h2>", escaped(&experiment.title));
    if !experiment.reported.is_empty() {
        let reported = escaped(&experiment.reported);
        let _ = writeln!(body, "<p><span class=\"note\">Paper:</span> {reported}</p>");
    }
    for note in &experiment.notes {
        let _ = writeln!(body, "<p class=\"hint\">{}</p>", escaped(note));
    }
    write(&files.csv.join(format!("{}.csv", experiment.id)), &results.csv())?;
    let drawn = draw(results, palette);
    if !drawn.is_empty() {
        body.push_str("<div class=\"plots\">\n");
        for Drawn { name, title, note, svg } in &drawn {
            let _ = writeln!(
                body,
                "<figure><figcaption><b>{}</b> <span><a href=\"svg/{name}.svg\">SVG</a> \
                 <a href=\"pdf/{name}.pdf\">PDF</a> <a href=\"csv/{id}.csv\">runs (CSV)</a></span> \
                 <span class=\"note\">{}</span></figcaption>{svg}</figure>",
                escaped(title),
                escaped(note)
            );
            let alone = standalone::svg(svg);
            write(&files.svg.join(format!("{name}.svg")), &alone)?;
            let file = files.pdf.join(format!("{name}.pdf"));
            std::fs::write(&file, pdf::render(&alone)?)
                .map_err(|error| Error::unwritable(Contents::Pages, &file, &error))?;
        }
        body.push_str("</div>\n");
    } else {
        let _ = writeln!(body, "<p><a href=\"csv/{id}.csv\">Every run (CSV)</a></p>");
    }
    table(body, claims.iter().copied().filter(|it| it.experiment == experiment.id));
    body.push_str("</section>\n");
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWING: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 200 100\" \
        class=\"plot\"><title>Two &lt;links&gt;</title>\
        <line x1=\"1\" x2=\"9\" y1=\"2\" y2=\"2\" class=\"g\"/>\
        <polyline points=\"1.0,2.0 3.0,4.0\" class=\"l s1 d\"/>\
        <circle cx=\"5\" cy=\"5\" r=\"2.6\" class=\"f0\"><title>ecf: 3</title></circle>\
        <rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" class=\"b f2\"/>\
        <text x=\"11\" y=\"50\" class=\"t m\" transform=\"rotate(-90 11 50)\">delay (ms) \u{2265} \u{4e00}</text></svg>";

    #[test]
    fn a_file_of_its_own_has_colours_at_its_marks_and_no_style() {
        let svg = standalone::svg(DRAWING);
        for part in [
            "stroke=\"#e8ebf0\"",
            "stroke=\"#d55e00\" stroke-dasharray=\"5 3\"",
            "fill=\"#0072b2\"",
            "text-anchor=\"middle\"",
            "width=\"200\" height=\"117\"",
            "viewBox=\"0 -17 200 117\"",
            "y=\"-4\" fill=\"#1b2027\">Two &lt;links&gt;</text>",
            "fill-opacity=\"0.75\" fill=\"#00806a\"",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        for foreign in ["class=", "style", "var(", "@media"] {
            assert!(!svg.contains(foreign), "{foreign}: {svg}");
        }
        assert!(roxmltree::Document::parse(&svg).is_ok());
    }

    #[test]
    fn a_pdf_carries_its_font_and_every_letter() {
        let pdf = pdf::render(&standalone::svg(DRAWING)).unwrap();
        let has = |part: &[u8]| pdf.windows(part.len()).any(|window| window == part);
        assert!(pdf.starts_with(b"%PDF-") && has(b"/FontFile2") && has(b"[0 0 200 117]"));
        // The character table has the sign for "at least" and the replacement for missing glyphs.
        assert!(has(b"<2265>") && has(b"<003F>") && !has(b"<4E00>"));
        assert!(pdf::render("<svg").is_err());
    }
}
