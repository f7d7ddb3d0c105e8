//! The page of an advice, to send on.

use super::super::page::escaped;
use super::page;
use crate::render::advice::{
    ABOUT_COMMANDS, commands, goal, goals, goals_legend, legend, reached, remedies, times, word,
};
use crate::render::bytes;
use plait_app::measure::MEASURES;
use plait_lab::advise::{Advice, Line, Verdict};
use std::fmt::Write;

const STYLE: &str = include_str!("advice.css");
/// Width and height of the drawing of a gain.
const SIZE: (f64, f64) = (240.0, 26.0);
/// Room left and right of the scale.
const MARGIN: f64 = 16.0;
/// Gains with a line, from the smallest, if all intervals lie between the first and the last one.
const FINE_MARKS: &[f64] = &[0.5, 0.8, 1.0, 1.25, 1.5, 2.0];
/// Gains with a line otherwise. A gain beyond them is an arrow at the edge.
const COARSE_MARKS: &[f64] = &[0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// Returns the advice as a page for a browser, which needs no other file.
#[must_use]
pub fn advice_page(advice: &Advice) -> String {
    let title = match advice.paths.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        paths => paths.concat(),
    };
    let title = format!("Bond {title}?");
    let mut body = format!(
        "<header><h1>{}</h1>\n<p class=\"verdict\">{}</p>\n",
        escaped(&title),
        escaped(&advice.answer)
    );
    body.extend(goal(advice).map(|text| format!("<p>{}</p>\n", escaped(&text))));
    body.push_str("</header>\n");
    if advice.drawn.interrupted {
        let draws = advice.drawn.draws;
        let _ = writeln!(body, "<p><strong>Interrupted after {draws} draws.</strong></p>");
    }
    known(&mut body, advice);
    if !advice.lines.is_empty() {
        let scale = Scale::of(&advice.lines);
        loads(&mut body, advice, &scale);
        cost(&mut body, advice);
    }
    if let Some(table) = goals(advice) {
        let (table, about) = (table.to_html(escaped), escaped(&goals_legend(advice)));
        section(&mut body, "By goal", &format!("{table}<p class=\"hint\">{about}</p>\n"));
    }
    if let Some(text) = remedies(advice) {
        section(&mut body, "What would help more", &format!("<p>{}</p>\n", escaped(&text)));
    }
    to_bond(&mut body, advice);
    // The styles of the tables are limited to this class.
    let page = page(&title, &format!("<style>\n{STYLE}</style>\n"), &body, &advice.command);
    page.replacen("<main>", "<main class=\"advice\">", 1)
}

fn section(body: &mut String, heading: &str, content: &str) {
    let _ = write!(body, "<section>\n<h2>{heading}</h2>\n{content}</section>\n");
}

/// Writes what is known of each path.
fn known(body: &mut String, advice: &Advice) {
    let mut rows = String::new();
    for (path, known) in advice.paths.iter().zip(&advice.known) {
        let known = escaped(&known.replace(',', ", "));
        let _ = writeln!(rows, "<tr><th>{}</th><td>{known}</td></tr>", escaped(path));
    }
    if !rows.is_empty() {
        section(body, "The paths", &format!("<table>\n{rows}</table>\n"));
    }
}

/// The logarithmic scale of gains.
struct Scale {
    marks: &'static [f64],
}

impl Scale {
    /// Returns a scale for the intervals of the loads, from a mark to a mark. Outages may lie beyond it.
    fn of(lines: &[Line]) -> Scale {
        let gains = || lines.iter().filter(|it| !it.outage).map(|it| it.gain);
        let least = gains().map(|it| it.low).fold(0.9, f64::min);
        let most = gains().map(|it| it.high).fold(1.1, f64::max);
        let fits = least >= FINE_MARKS[0] && most <= FINE_MARKS[FINE_MARKS.len() - 1];
        let marks = if fits { FINE_MARKS } else { COARSE_MARKS };
        let first = marks.iter().rposition(|mark| *mark <= least).unwrap_or(0);
        let last = marks.iter().position(|mark| *mark >= most).unwrap_or(marks.len() - 1);
        Scale { marks: &marks[first..=last] }
    }

    /// Returns the ends of the scale.
    fn ends(&self) -> (f64, f64) {
        (self.marks.first().copied().unwrap_or(0.5), self.marks.last().copied().unwrap_or(2.0))
    }

    fn x(&self, gain: f64) -> f64 {
        let (low, high) = self.ends();
        let share = libm::log(gain.max(1e-9) / low) / libm::log(high / low);
        MARGIN + share.clamp(0.0, 1.0) * (SIZE.0 - 2.0 * MARGIN)
    }

    /// Returns a drawing with a line for each mark.
    fn drawing(&self, label: &str, content: &str) -> String {
        let mut lines = String::new();
        for mark in self.marks {
            let class = if *mark == 1.0 { "one" } else { "grid" };
            let x = self.x(*mark);
            let _ = write!(
                lines,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{}\" class=\"{class}\"/>",
                SIZE.1
            );
        }
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{lines}{content}</svg>",
            SIZE.0,
            SIZE.1,
            escaped(label)
        )
    }

    /// Draws the numbers of the scale.
    fn numbers(&self) -> String {
        let mut content = String::new();
        for mark in self.marks {
            let _ = write!(content, "<text x=\"{:.1}\" y=\"17\">{mark}x</text>", self.x(*mark));
        }
        let (width, height) = SIZE;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"scale of the gain\">{content}</svg>"
        )
    }

    /// Draws the interval of a gain and its median. If the median lies beyond the scale, it is an arrow.
    fn bar(&self, line: &Line) -> String {
        let (gain, class) = (line.gain, class(line));
        let (low, high) = (self.x(gain.low), self.x(gain.high));
        let width = (high - low).max(2.0);
        let x = self.x(gain.median);
        let ends = self.ends();
        let mark = if gain.median > ends.1 {
            format!("<path d=\"M{x:.1} 4l9 9l-9 9z\" class=\"{class}\"/>")
        } else if gain.median < ends.0 {
            format!("<path d=\"M{x:.1} 4l-9 9l9 9z\" class=\"{class}\"/>")
        } else {
            format!("<circle cx=\"{x:.1}\" cy=\"13\" r=\"5\" class=\"{class}\"/>")
        };
        let range = format!(
            "<rect x=\"{low:.1}\" y=\"7\" width=\"{width:.1}\" height=\"12\" rx=\"2\" class=\"range {class}\"/>"
        );
        self.drawing(&interval(line), &(range + &mark))
    }
}

/// Returns the class of a line in the styles.
fn class(line: &Line) -> &'static str {
    match line.verdict {
        Verdict::Stalled => word(Verdict::Nothing),
        verdict => word(verdict),
    }
}

/// Returns a gain and its interval in words.
fn interval(line: &Line) -> String {
    let gain = line.gain;
    format!("{} ({} to {})", times(gain.median), times(gain.low), times(gain.high))
}

/// Writes the table of the loads.
fn loads(body: &mut String, advice: &Advice, scale: &Scale) {
    let mut rows = String::new();
    for line in &advice.lines {
        let unit = MEASURES.iter().find(|it| it.name == line.measure).map_or("", |it| it.unit);
        let backup = match line.backup {
            Some(gain) => format!("<td data-name=\"as a backup\">{}</td>", times(gain.median)),
            None => "<td></td>".to_owned(),
        };
        let _ = writeln!(
            rows,
            "<tr><th>{}</th><td data-name=\"best path alone:\">{} {}</td>\
             <td data-name=\"bonded:\">{}</td><td class=\"scale\">{}</td>\
             <td class=\"n {}\">{}</td><td data-name=\"tail\">{}</td>{backup}</tr>",
            escaped(&line.name),
            escaped(&line.best_path),
            reached(line, line.alone, unit),
            reached(line, line.bonded, unit),
            scale.bar(line),
            class(line),
            interval(line),
            times(line.tail),
        );
    }
    let numbers = scale.numbers();
    let content = format!(
        "<div class=\"scroll\"><table class=\"loads\"><thead><tr><th>load</th><th>best path alone</th>\
         <th>bonded</th><th class=\"scale\">gain: median and 80 %</th><th></th><th>tail</th><th>backup</th></tr>\
         </thead><tbody>\n<tr class=\"axis\"><th></th><td></td><td></td><td class=\"scale\">{numbers}</td>\
         <td></td><td></td><td></td></tr>\n{rows}</tbody></table></div>\n\
         <p class=\"key\"><span class=\"gain\">\u{25cf} gains</span><span class=\"loss\">\u{25cf} loses</span>\
         <span class=\"nothing\">\u{25cf} changes little</span><span class=\"unclear\">\u{25cf} is not clear</span>\
         </p>\n<p class=\"hint\">{}</p>\n",
        escaped(&legend(advice, &[advice.paths.join("/").as_str(), "extra"])),
    );
    section(body, "By load", &content);
}

/// Writes the bytes on each path.
fn cost(body: &mut String, advice: &Advice) {
    let head: String =
        advice.paths.iter().map(|path| format!("<th>{}</th>", escaped(path))).collect();
    let mut rows = String::new();
    for line in &advice.lines {
        let all: f64 = line.path_bytes.iter().sum::<f64>().max(1.0);
        let mut shares = String::new();
        let mut cells = String::new();
        for (at, (sent, path)) in line.path_bytes.iter().zip(&advice.paths).enumerate() {
            let (share, path) = (sent / all * 100.0, escaped(path));
            let _ =
                write!(shares, "<i style=\"width:{share:.1}%;background:var(--p{})\"></i>", at % 8);
            let sent = bytes(sent.round() as u64);
            let _ = write!(cells, "<td data-name=\"{path}:\">{sent}</td>");
        }
        let copies: f64 = line.extra_bytes.iter().sum();
        let _ = writeln!(
            rows,
            "<tr><th>{}</th><td class=\"bar\"><div class=\"share\">{shares}</div></td>{cells}\
             <td data-name=\"copies:\">{}</td></tr>",
            escaped(&line.name),
            bytes(copies.round() as u64)
        );
    }
    let content = format!(
        "<div class=\"scroll\"><table class=\"loads\"><thead><tr><th>load</th><th></th>{head}<th>copies</th>\
         </tr></thead><tbody>\n{rows}</tbody></table></div>\n<p class=\"hint\">Payload that the bonded links send for \
         one such load; mean over the draws. The bytes on a path include copies and retransmissions.</p>\n"
    );
    section(body, "Cost in bytes", &content);
}

/// Writes the commands that bond the links.
fn to_bond(body: &mut String, advice: &Advice) {
    let mut lines = String::new();
    for command in commands(advice) {
        let (purpose, line) = (escaped(command.purpose), escaped(&command.line));
        let _ = write!(
            lines,
            "<pre><code><span class=\"note\"># {purpose}</span>\n{line}</code></pre>\n"
        );
    }
    if !lines.is_empty() {
        section(body, "Commands", &format!("<p>{}</p>\n{lines}", escaped(ABOUT_COMMANDS)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::advice::tests::advice;

    /// Returns the drawings of the page, each well-formed.
    fn drawings(page: &str) -> Vec<String> {
        let pieces = page.split("<svg ").skip(1).filter_map(|it| it.split_once("</svg>"));
        let drawings: Vec<String> = pieces.map(|it| format!("<svg {}</svg>", it.0)).collect();
        for drawing in &drawings {
            assert!(roxmltree::Document::parse(drawing).is_ok(), "{drawing}");
        }
        drawings
    }

    #[test]
    fn the_page_has_the_answer_the_intervals_the_bytes_and_the_commands() {
        let advice = advice();
        let page = advice_page(&advice);
        for part in [
            "<h1>Bond wifi and lte?</h1>",
            "<p class=\"verdict\">Bond the links: large downloads gain",
            "Use the scheduler slot with the goal interactive",
            "rate=20mbit..30mbit, rtt=22ms",
            "1.50x (1.20x to 1.80x)",
            "<td data-name=\"lte:\">2.08 MB</td>",
            "<td data-name=\"copies:\">80.0 kB</td>",
            "--cost lte=2 --quota lte=1GB --goal interactive",
            "wifi:rate=&lt;5mbit&gt;",
            "plait advise</title>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        // One for the scale, and one for each line.
        assert_eq!(drawings(&page).len(), 1 + advice.lines.len());
        assert!(!page.contains("<script") && !page.contains("http-equiv=\"refresh"), "{page}");
    }

    /// The scale is logarithmic from 0.5 to 2, and 1 is in its middle. Outages do not stretch it.
    #[test]
    fn an_interval_is_drawn_on_the_scale() {
        let mut advice = advice();
        let scale = Scale::of(&advice.lines);
        assert_eq!(scale.ends(), (0.5, 2.0));
        let inner = SIZE.0 - 2.0 * MARGIN;
        assert!((scale.x(1.0) - SIZE.0 / 2.0).abs() < 1e-9, "{}", scale.x(1.0));
        // Gains beyond the scale end at its edge, with an arrow.
        assert_eq!(scale.x(190.0), MARGIN + inner);
        let page = advice_page(&advice);
        let bars = &drawings(&page)[1..];
        assert!(bars[0].contains("class=\"range gain\"") && bars[0].contains("<circle"));
        assert!(bars[1].contains("class=\"range unclear\"") && bars[2].contains("4l9 9"));
        advice.lines[2].gain.median = 0.1;
        assert!(drawings(&advice_page(&advice))[3].contains("4l-9 9"));
        // A wide interval has coarse marks: 0.25 to 2.
        advice.lines[1].gain.low = 0.3;
        let wide = Scale::of(&advice.lines);
        assert_eq!(wide.marks, [0.25, 0.5, 1.0, 2.0]);
        assert!((wide.x(0.5) - (MARGIN + inner / 3.0)).abs() < 1e-9);
        // Almost equal intervals have room around them.
        let near = [advice.lines[0].clone()];
        assert_eq!(Scale::of(&near).marks, [0.8, 1.0, 1.25, 1.5, 2.0]);
    }

    #[test]
    fn without_a_rate_the_page_has_the_answer_alone() {
        let mut advice = advice();
        advice.answer = "Cannot tell: the rate of lte is unknown.".to_owned();
        (advice.lines, advice.goals, advice.take) = (Vec::new(), Vec::new(), None);
        let page = advice_page(&advice);
        assert!(page.contains("Cannot tell") && page.contains("<h2>The paths</h2>"), "{page}");
        assert!(!page.contains("<h2>By load") && !page.contains("<h2>Commands"), "{page}");
    }
}
