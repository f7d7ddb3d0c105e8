//! A drawing as a separate file. Each mark has its own colours and fonts, because converters and
//! LaTeX do not support style sheets with variables and media queries.

use super::super::page::STYLE;
use super::plot::{LETTER, LINE};
use crate::render::wrap;
use std::fmt::Write;

/// The size of text, in units of the drawing.
pub(super) const TEXT_SIZE: f64 = 10.5;

/// Margin left of the title.
const MARGIN: f64 = 4.0;

/// Returns a colour of the style sheet's light theme: `light("p0")` is `#0072b2`.
fn light(name: &str) -> &'static str {
    let light = STYLE.split("@media").next().unwrap_or_default();
    let (_, rest) = light.split_once(&format!("--{name}: ")).unwrap_or_default();
    rest.split(';').next().unwrap_or("#000000")
}

/// Returns the attributes of a class. If classes set the same attribute, the later class wins.
fn attributes(class: &str) -> Vec<(&'static str, &'static str)> {
    let colour = |attribute, number: &str| vec![(attribute, light(&format!("p{number}")))];
    match class {
        "t" => vec![("fill", light("soft"))],
        "k" | "h" => vec![("fill", light("text"))],
        "e" => vec![("text-anchor", "end")],
        "m" => vec![("text-anchor", "middle")],
        "g" => vec![("stroke", light("grid")), ("stroke-width", "1")],
        "l" => vec![("fill", "none"), ("stroke-width", "1.8"), ("stroke-linejoin", "round")],
        "thin" => vec![("stroke-width", "1")],
        "w" => vec![("stroke", light("text")), ("stroke-width", "1.2")],
        "b" => vec![("fill-opacity", "0.75")],
        "d" => vec![("stroke-dasharray", "5 3")],
        _ => match class.split_at_checked(1) {
            Some(("s", number)) => colour("stroke", number),
            Some(("f", number)) => colour("fill", number),
            _ => Vec::new(),
        },
    }
}

/// Returns the drawing on white with attributes instead of classes, and with its title above it.
pub(super) fn svg(drawing: &str) -> String {
    let mut out = String::new();
    let mut rest = drawing;
    while let Some((before, after)) = rest.split_once("class=\"") {
        let Some((classes, after)) = after.split_once('"') else { break };
        out.push_str(before);
        let mut list: Vec<(&str, &str)> = Vec::new();
        for class in classes.split(' ') {
            for (name, value) in attributes(class) {
                list.retain(|earlier| earlier.0 != name);
                list.push((name, value));
            }
        }
        let list: Vec<String> =
            list.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        out.push_str(&list.join(" "));
        rest = after;
    }
    out.push_str(rest);
    let title = drawing.split_once("<title>").and_then(|it| it.1.split_once("</title>"));
    let title = title.map_or("", |it| it.0);
    let lines = wrap(title, (size(drawing).0 / LETTER) as usize);
    let above = LINE * lines.len() as f64 + 4.0;
    let (width, height) = (size(drawing).0, size(drawing).1 + above);
    let head = format!(
        "width=\"{width}\" height=\"{height}\" font-family=\"DejaVu Sans, Helvetica, Arial, \
         sans-serif\" font-size=\"{TEXT_SIZE}\" viewBox=\"0 -{above} {width} {height}\""
    );
    let mut ground = String::from("</title>");
    let _ = write!(
        ground,
        "<rect y=\"-{above}\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
    );
    for (at, line) in lines.iter().enumerate() {
        let (y, fill) = (LINE * (at + 1) as f64 - above, light("text"));
        let _ = write!(ground, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{fill}\">{line}</text>");
    }
    let view = format!("viewBox=\"0 0 {} {}\"", size(drawing).0, size(drawing).1);
    out.replacen(&view, &head, 1).replacen("</title>", &ground, 1) + "\n"
}

/// Returns the width and height of a drawing.
pub(super) fn size(drawing: &str) -> (f64, f64) {
    let (_, view) = drawing.split_once("viewBox=\"").unwrap_or_default();
    let numbers: Vec<f64> = view
        .split('"')
        .next()
        .unwrap_or_default()
        .split(' ')
        .filter_map(|number| number.parse().ok())
        .collect();
    (numbers.get(2).copied().unwrap_or(1.0), numbers.get(3).copied().unwrap_or(1.0))
}
