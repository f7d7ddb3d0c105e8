//! Small charts as SVG, with linear or logarithmic axes and marks of up to eight series.

use super::escaped;
use super::palette::Look;
use std::fmt::Write;

/// Width of a drawing and height of its plane. A page scales the drawing to the available room.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Size(f64, f64);

/// A figure as wide as the page.
pub(super) const WHOLE: Size = Size(760.0, 280.0);
/// A panel beside another one.
pub(super) const PANEL: Size = Size(500.0, 230.0);
/// Greatest width of a character in the fonts of a page.
pub(super) const LETTER: f64 = 6.4;
/// Height of a line of text.
pub(super) const LINE: f64 = 13.0;
/// Gap between the plane and the words below it, which clears the lowest word on the vertical axis.
const DROP: f64 = 4.0;
/// Room for the name of the vertical axis.
const NAME: f64 = 18.0;
/// Margin right of the plane.
const RIGHT: f64 = 8.0;
/// Ticks of a logarithmic axis that spans at most about two decades.
const EVERY_DIGIT: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
/// Least gap between two words at the same height.
const GAP: f64 = 6.0;

/// Returns the greatest width of a text.
fn room(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// The labels of the vertical axis.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    /// The numbers of the scale, with lines across the plane.
    Numbers,
    /// A word at each whole number.
    Words(&'a [String]),
}

/// A range of numbers on a side of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// Creates a scale that contains these values. A linear scale begins at zero if `zero` is set.
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

    /// Creates a linear scale between exactly these two numbers.
    pub(super) fn of(low: f64, high: f64) -> Scale {
        Scale { low, high, log: false }
    }

    /// Returns the position of a value, from 0 to 1.
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
        let coarse: [&'static [f64]; 3] = [&[1.0], &[1.0, 2.0, 5.0], &EVERY_DIGIT];
        let enough = coarse.into_iter().map(all).find(|ticks| ticks.len() >= 3);
        // A narrow range has evenly spaced ticks.
        enough.unwrap_or_else(|| {
            let step = step_of((self.high - self.low) / 2.0);
            let first = libm::ceil(self.low / step);
            let ticks = (0..16).map(|at| (first + f64::from(at)) * step);
            ticks.take_while(|tick| *tick <= self.high).collect()
        })
    }
}

/// Returns a round step; four to eight steps cover the length.
fn step_of(length: f64) -> f64 {
    let rough = length / 5.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= rough).unwrap_or(power)
}

/// A drawing in progress.
pub(super) struct Plot {
    svg: String,
    size: Size,
    x: Scale,
    y: Scale,
    /// Left and upper edge of the plane, and the lower end of the text below it.
    left: f64,
    top: f64,
    bottom: f64,
}

impl Plot {
    /// Creates an empty plane with a legend above it, and with the vertical axis and its name.
    pub(super) fn new(
        (title, size): (&str, Size),
        scales: (Scale, Scale),
        series: &[(Look, &str)],
        name: &str,
        side: Side<'_>,
    ) -> Plot {
        let (x, y) = scales;
        let beside: Vec<(f64, String)> = match side {
            Side::Numbers => y.ticks().into_iter().map(|tick| (tick, number(tick))).collect(),
            Side::Words(words) => {
                let short = |word: &String| shortened(word, size.0 / 3.0);
                words.iter().enumerate().map(|(at, word)| (at as f64, short(word))).collect()
            }
        };
        let widest = beside.iter().map(|(_, text)| room(text)).fold(0.0, f64::max);
        let left = NAME + widest + GAP;
        let mut plot = Plot { svg: String::new(), size, x, y, left, top: 8.0, bottom: 0.0 };
        plot.legend(series);
        plot.bottom = plot.top + size.1;
        // Words are at least a line's height apart.
        let lines = (size.1 / LINE) as usize;
        let every = match side {
            Side::Numbers => 1,
            Side::Words(words) => words.len().div_ceil(lines).max(1),
        };
        for (value, text) in beside.into_iter().step_by(every) {
            let (_, height) = plot.at(x.low, value);
            if matches!(side, Side::Numbers) {
                let right = size.0 - RIGHT;
                let _ = write!(
                    plot.svg,
                    "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{height:.1}\" y2=\"{height:.1}\" class=\"g\"/>",
                );
            }
            plot.word(left - 4.0, height + 3.5, "t e", &text);
        }
        let middle = plot.top + size.1 / 2.0;
        let _ = write!(
            plot.svg,
            "<text x=\"11\" y=\"{middle:.1}\" class=\"t m\" transform=\"rotate(-90 11 {middle:.1})\">{}</text>",
            escaped(&shortened(name, size.1))
        );
        let before = std::mem::take(&mut plot.svg);
        plot.svg = format!("<title>{}</title>{before}", escaped(title));
        plot
    }

    /// Draws the legend on as many lines as needed.
    fn legend(&mut self, series: &[(Look, &str)]) {
        let (first, mut line) = (self.left, 10.0);
        let mut at = first;
        for (Look { colour, dashed }, name) in series {
            let wide = 12.0 + room(name) + GAP;
            if at + wide > self.size.0 && at > first {
                (at, line) = (first, line + LINE);
            }
            let (height, solid) = (line - 8.0, if *dashed { 4 } else { 9 });
            let _ = write!(
                self.svg,
                "<rect x=\"{at:.1}\" y=\"{height:.1}\" width=\"{solid}\" height=\"9\" class=\"f{colour}\"/>",
            );
            if *dashed {
                let second = at + 6.0;
                let _ = write!(
                    self.svg,
                    "<rect x=\"{second:.1}\" y=\"{height:.1}\" width=\"3\" height=\"9\" class=\"f{colour}\"/>",
                );
            }
            self.word(at + 12.0, line, "k", name);
            at += wide;
        }
        if !series.is_empty() {
            self.top = line + 12.0;
        }
    }

    fn word(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = write!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>",
            escaped(text)
        );
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let width = self.size.0 - self.left - RIGHT;
        (
            self.left + width * self.x.share(x).clamp(-0.02, 1.02),
            self.top + self.size.1 * (1.0 - self.y.share(y).clamp(-0.02, 1.02)),
        )
    }

    /// Draws the numbers of the horizontal axis that fit, and its name.
    pub(super) fn horizontal(&mut self, name: &str) {
        let ticks = self.x.ticks().into_iter().map(|tick| (tick, number(tick)));
        let placed = self.placed(ticks);
        let mut end = f64::NEG_INFINITY;
        for (x, text) in placed {
            let half = room(&text) / 2.0;
            if x - half >= end + GAP {
                self.word(x, self.top + self.size.1 + DROP + LINE, "t m", &text);
                end = x + half;
            }
        }
        self.bottom += DROP + LINE;
        self.name(name);
    }

    /// Draws words under the horizontal axis at evenly spaced values, and the name of the axis. The
    /// words take one line, or two if one is too short. If two are too short, only every n-th word
    /// is drawn.
    pub(super) fn words(&mut self, values: &[f64], words: &[String], name: &str) {
        let most = (self.size.0 - self.left - RIGHT) / 2.0;
        let words = words.iter().map(|word| shortened(word, most));
        let placed = self.placed(values.iter().copied().zip(words));
        let fits = |every: usize, lines: usize| {
            let some: Vec<&(f64, String)> = placed.iter().step_by(every).collect();
            let apart = |pair: (&&(f64, String), &&(f64, String))| {
                (pair.1.0 - pair.0.0).abs() >= (room(&pair.0.1) + room(&pair.1.1)) / 2.0 + GAP
            };
            some.iter().zip(some.iter().skip(lines)).all(apart)
        };
        let ways = (1..=placed.len().max(1)).flat_map(|every| [(every, 1), (every, 2)]);
        let (every, lines) = ways.into_iter().find(|way| fits(way.0, way.1)).unwrap_or((1, 1));
        for (at, (x, text)) in placed.iter().step_by(every).enumerate() {
            let line = (at % lines) as f64;
            self.word(*x, self.top + self.size.1 + DROP + LINE * (1.0 + line), "t m", text);
        }
        self.bottom += DROP + LINE * lines as f64;
        self.name(name);
    }

    /// Returns the centre of each text, moved so that no text leaves the drawing.
    fn placed(&self, texts: impl Iterator<Item = (f64, String)>) -> Vec<(f64, String)> {
        let inside = |(value, text): (f64, String)| {
            let half = room(&text) / 2.0;
            let (x, _) = self.at(value, self.y.low);
            (x.min(self.size.0 - half).max(half), text)
        };
        texts.map(inside).collect()
    }

    /// Draws the name of the horizontal axis.
    fn name(&mut self, name: &str) {
        if !name.is_empty() {
            self.bottom += LINE;
            self.word(
                (self.size.0 + self.left) / 2.0,
                self.bottom,
                "t m",
                &shortened(name, self.size.0),
            );
        }
    }

    /// Draws a line through points.
    pub(super) fn line(&mut self, look: Look, points: &[(f64, f64)]) {
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| {
                let (x, y) = self.at(*x, *y);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let Look { colour, dashed } = look;
        let dashes = if dashed { " d" } else { "" };
        let _ = write!(
            self.svg,
            "<polyline points=\"{}\" class=\"l s{colour}{dashes}\"/>",
            path.join(" ")
        );
    }

    /// Draws a dot with a tooltip.
    pub(super) fn dot(&mut self, look: Look, x: f64, y: f64, says: &str) {
        let (x, y) = self.at(x, y);
        let _ = write!(
            self.svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" class=\"f{}\"><title>{}</title></circle>",
            look.colour,
            escaped(says)
        );
    }

    /// Draws a bar from the axis upward.
    pub(super) fn bar(&mut self, look: Look, x: (f64, f64), y: (f64, f64), says: &str) {
        let (left, bottom) = self.at(x.0, y.0);
        let (right, top) = self.at(x.1, y.1);
        let (top, bottom) = (top.min(bottom), top.max(bottom));
        let _ = write!(
            self.svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"b f{}\">\
             <title>{}</title></rect>",
            (right - left).max(0.5),
            (bottom - top).max(0.5),
            look.colour,
            escaped(says)
        );
    }

    /// Draws a straight line.
    pub(super) fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (self.at(from.0, from.1), self.at(to.0, to.1));
        let _ = write!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        );
    }

    /// Draws a cell of a heat map in the colour with this number, `share` of the way to the full colour. Its
    /// number is drawn if it fits.
    pub(super) fn cell(
        &mut self,
        (x, y): (f64, f64),
        (colour, share): (usize, f64),
        text: &str,
        says: &str,
    ) {
        let (left, bottom) = self.at(x - 0.5, y - 0.5);
        let (right, top) = self.at(x + 0.5, y + 0.5);
        let _ = write!(
            self.svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"f{colour}\" \
             opacity=\"{:.3}\"><title>{}</title></rect>",
            right - left,
            bottom - top,
            0.04 + 0.46 * share.clamp(0.0, 1.0),
            escaped(says),
        );
        if room(text) + 2.0 <= right - left && LINE <= bottom - top {
            self.word((left + right) / 2.0, (top + bottom) / 2.0 + 4.0, "h m", text);
        }
    }

    pub(super) fn finish(self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {:.0}\" role=\"img\" \
             class=\"plot\">{}</svg>",
            self.size.0,
            self.bottom + 6.0,
            self.svg
        )
    }

    /// Returns the least value of the vertical axis, at which bars begin.
    pub(super) fn floor(&self) -> f64 {
        if self.y.log { self.y.low } else { 0.0_f64.max(self.y.low) }
    }
}

/// Shortens a text that is wider than `most`.
fn shortened(text: &str, most: f64) -> String {
    let letters = (most / LETTER) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// Formats a number of an axis.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e6 {
        return format!("{}M", trimmed(value / 1e6));
    }
    if size >= 1e4 {
        return format!("{}k", trimmed(value / 1e3));
    }
    if size > 0.0 && size < 1e-3 { format!("{value:.0e}") } else { trimmed(value) }
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
        // A logarithmic axis has at least three ticks, even if it is short.
        let scale = Scale::over([12_000.0, 38_000.0].into_iter(), true, false);
        assert_eq!(scale.ticks(), [15_000.0, 20_000.0, 25_000.0, 30_000.0, 35_000.0]);
        // No value, one value, and values without a logarithm.
        for values in [vec![], vec![5.0], vec![f64::NAN, -1.0]] {
            for log in [false, true] {
                let scale = Scale::over(values.iter().copied(), log, false);
                assert!(scale.high > scale.low && scale.ticks().len() < 20, "{values:?} {scale:?}");
            }
        }
    }

    #[test]
    fn numbers_of_axes_are_short() {
        let texts = [0.0, 0.25, 0.0004, 15.0, 20_000.0, 6e6].map(number);
        assert_eq!(texts, ["0", "0.25", "4e-4", "15", "20k", "6M"]);
    }
}
