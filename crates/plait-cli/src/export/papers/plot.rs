//! Small charts as SVG: axes that may be logarithmic, and marks of up to eight series.

use super::escaped;
use std::fmt::Write;

/// Width and height of the drawing; it is scaled to the room that it gets, a phone's width at least.
const SIZE: (f64, f64) = (420.0, 270.0);
/// Left, right, top and bottom edge of the plane.
const EDGES: (f64, f64, f64, f64) = (52.0, 8.0, 26.0, 40.0);
/// Room of a character of the legend.
const LETTER: f64 = 6.2;

/// A range of numbers on a side of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// A scale that holds these values; one that is not logarithmic begins at zero where `zero`.
    pub(super) fn over(values: impl Iterator<Item = f64>, log: bool, zero: bool) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|it| it.is_finite() && (!log || *it > 0.0)) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        if zero && !log {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if low == high {
            (low, high) = if log { (low / 2.0, high * 2.0) } else { (low - 0.5, high + 0.5) };
        }
        if !log {
            let step = step_of(high - low);
            (low, high) = (libm::floor(low / step) * step, libm::ceil(high / step) * step);
        }
        Scale { low, high, log }
    }

    /// A scale between two numbers as they are.
    pub(super) fn of(low: f64, high: f64) -> Scale {
        Scale { low, high, log: false }
    }

    /// Where a value stands, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        if self.log {
            let of = |x: f64| libm::log(x.max(self.low * 1e-3));
            return (of(value) - of(self.low)) / (of(self.high) - of(self.low));
        }
        (value - self.low) / (self.high - self.low)
    }

    fn ticks(self) -> Vec<f64> {
        if !self.log {
            let step = step_of(self.high - self.low);
            let count = ((self.high - self.low) / step).round() as usize;
            return (0..=count).map(|at| self.low + step * at as f64).collect();
        }
        let first = libm::floor(libm::log10(self.low)) as i32;
        let last = libm::ceil(libm::log10(self.high)) as i32;
        let all = |steps: &'static [f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|power| {
                    steps.iter().map(move |step| step * libm::pow(10.0, power.into()))
                })
                .filter(|at| (self.low * 0.999..=self.high * 1.001).contains(at))
                .collect()
        };
        let few = all(&[1.0]);
        if few.len() >= 3 { few } else { all(&[1.0, 2.0, 5.0]) }
    }
}

/// A round step so that four to eight of them make the length.
fn step_of(length: f64) -> f64 {
    let rough = length / 5.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= rough).unwrap_or(power)
}

/// A drawing that is being made.
pub(super) struct Plot {
    svg: String,
    x: Scale,
    y: Scale,
}

impl Plot {
    /// An empty plane with its axes, and the names of the series above it.
    pub(super) fn new(title: &str, x: Scale, y: Scale, series: &[(usize, &str)]) -> Plot {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" \
             class=\"plot\"><title>{}</title>",
            SIZE.0,
            SIZE.1,
            escaped(title)
        );
        let mut at = EDGES.0;
        let mut line = 10.0;
        for (colour, name) in series {
            let room = 16.0 + LETTER * name.chars().count() as f64;
            if at + room > SIZE.0 && at > EDGES.0 {
                (at, line) = (EDGES.0, line + 12.0);
            }
            let _ = write!(
                svg,
                "<rect x=\"{at:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\" class=\"f{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{line:.1}\" class=\"k\">{}</text>",
                line - 8.0,
                at + 12.0,
                escaped(name)
            );
            at += room;
        }
        Plot { svg, x, y }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (left, right, top, bottom) = EDGES;
        let width = SIZE.0 - left - right;
        let height = SIZE.1 - top - bottom;
        (
            left + width * self.x.share(x).clamp(-0.02, 1.02),
            top + height * (1.0 - self.y.share(y).clamp(-0.02, 1.02)),
        )
    }

    /// Lines and numbers of the vertical axis, and its name.
    pub(super) fn vertical(&mut self, name: &str) {
        for tick in self.y.ticks() {
            let (_, y) = self.at(self.x.low, tick);
            let _ = write!(
                self.svg,
                "<line x1=\"{}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"g\"/>\
                 <text x=\"{}\" y=\"{:.1}\" class=\"t e\">{}</text>",
                EDGES.0,
                SIZE.0 - EDGES.1,
                EDGES.0 - 4.0,
                y + 3.5,
                number(tick)
            );
        }
        let _ = write!(
            self.svg,
            "<text x=\"11\" y=\"{:.1}\" class=\"t m\" transform=\"rotate(-90 11 {:.1})\">{}</text>",
            SIZE.1 / 2.0,
            SIZE.1 / 2.0,
            escaped(name)
        );
    }

    /// Numbers of the horizontal axis.
    pub(super) fn horizontal(&mut self, name: &str) {
        for tick in self.x.ticks() {
            self.below(tick, &number(tick));
        }
        self.name(name);
    }

    /// A word under the horizontal axis.
    pub(super) fn below(&mut self, x: f64, text: &str) {
        let (x, _) = self.at(x, self.y.low);
        let y = SIZE.1 - EDGES.3 + 13.0;
        let _ = write!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"t m\">{}</text>",
            escaped(text)
        );
    }

    /// The name of the horizontal axis.
    pub(super) fn name(&mut self, name: &str) {
        let _ = write!(
            self.svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"t m\">{}</text>",
            (SIZE.0 + EDGES.0) / 2.0,
            SIZE.1 - 8.0,
            escaped(name)
        );
    }

    /// A line through points.
    pub(super) fn line(&mut self, colour: usize, points: &[(f64, f64)]) {
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| {
                let (x, y) = self.at(*x, *y);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let _ = write!(self.svg, "<polyline points=\"{}\" class=\"l s{colour}\"/>", path.join(" "));
    }

    /// A dot, with what it says where it is pointed at.
    pub(super) fn dot(&mut self, colour: usize, x: f64, y: f64, says: &str) {
        let (x, y) = self.at(x, y);
        let _ = write!(
            self.svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" class=\"f{colour}\"><title>{}</title></circle>",
            escaped(says)
        );
    }

    /// A bar from the axis up.
    pub(super) fn bar(&mut self, colour: usize, x: (f64, f64), y: (f64, f64), says: &str) {
        let (left, bottom) = self.at(x.0, y.0);
        let (right, top) = self.at(x.1, y.1);
        let (top, bottom) = (top.min(bottom), top.max(bottom));
        let _ = write!(
            self.svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"b f{colour}\">\
             <title>{}</title></rect>",
            (right - left).max(0.5),
            (bottom - top).max(0.5),
            escaped(says)
        );
    }

    /// A straight line.
    pub(super) fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (self.at(from.0, from.1), self.at(to.0, to.1));
        let _ = write!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        );
    }

    /// A cell of a heat map, `share` of the way to the full colour.
    pub(super) fn cell(&mut self, x: f64, y: f64, share: f64, text: &str) {
        let (left, bottom) = self.at(x - 0.5, y - 0.5);
        let (right, top) = self.at(x + 0.5, y + 0.5);
        let _ = write!(
            self.svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"f0\" \
             opacity=\"{:.3}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"h m\">{}</text>",
            right - left,
            bottom - top,
            0.08 + 0.6 * share.clamp(0.0, 1.0),
            (left + right) / 2.0,
            (top + bottom) / 2.0 + 4.0,
            escaped(text)
        );
    }

    /// A word beside the vertical axis.
    pub(super) fn beside(&mut self, y: f64, text: &str) {
        let (_, y) = self.at(self.x.low, y);
        let _ = write!(
            self.svg,
            "<text x=\"{}\" y=\"{:.1}\" class=\"t e\">{}</text>",
            EDGES.0 - 4.0,
            y + 3.5,
            escaped(text)
        );
    }

    pub(super) fn finish(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }

    /// The least of the vertical axis: where bars stand.
    pub(super) fn floor(&self) -> f64 {
        if self.y.log { self.y.low } else { 0.0_f64.max(self.y.low) }
    }
}

/// A number of an axis.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e6 {
        return format!("{}M", trimmed(value / 1e6));
    }
    if size >= 1e4 { format!("{}k", trimmed(value / 1e3)) } else { trimmed(value) }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        let scale = Scale::over([3.0, 17.0].into_iter(), false, true);
        assert_eq!(scale.ticks(), [0.0, 5.0, 10.0, 15.0, 20.0]);
        let scale = Scale::over([12.0, 900.0].into_iter(), true, false);
        assert_eq!(scale.ticks(), [20.0, 50.0, 100.0, 200.0, 500.0]);
        assert!((scale.share(12.0)).abs() < 1e-9 && (scale.share(900.0) - 1.0).abs() < 1e-9);
        // Nothing, one value, and what has no logarithm.
        for values in [vec![], vec![5.0], vec![f64::NAN, -1.0]] {
            for log in [false, true] {
                let scale = Scale::over(values.iter().copied(), log, false);
                assert!(scale.high > scale.low && scale.ticks().len() < 20, "{values:?} {scale:?}");
            }
        }
    }

    #[test]
    fn numbers_of_axes_are_short() {
        let texts = [0.0, 0.25, 15.0, 20_000.0, 6e6].map(number);
        assert_eq!(texts, ["0", "0.25", "15", "20k", "6M"]);
    }
}
