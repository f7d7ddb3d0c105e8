//! Bars and charts of block characters; a cell has eight steps.

/// Left part of a cell, in eighths.
const ACROSS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Lower part of a cell, in eighths.
const UPWARD: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns how many eighths of `cells` cells `value` fills if `max` fills all. A positive value
/// fills at least one.
fn eighths(value: f64, max: f64, cells: usize) -> usize {
    if !(value > 0.0 && max > 0.0 && value.is_finite()) {
        return 0;
    }
    let full = cells * 8;
    (((value / max) * full as f64).round() as usize).clamp(1, full)
}

/// Draws a horizontal bar without trailing space.
pub(crate) fn bar(value: f64, max: f64, width: usize) -> String {
    let filled = eighths(value, max, width);
    let mut text = "█".repeat(filled / 8);
    if !filled.is_multiple_of(8) {
        text.push(ACROSS[filled % 8]);
    }
    text
}

/// Draws columns `height` lines high, top line first, one column per value.
#[must_use]
pub fn chart(values: &[f64], max: f64, height: usize) -> Vec<String> {
    let line = |row: usize| -> String {
        let below = (height - 1 - row) * 8;
        let cell = |value: &f64| {
            let filled = eighths(*value, max, height);
            UPWARD[filled.saturating_sub(below).min(8)]
        };
        values.iter().map(cell).collect()
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bar_is_as_long_as_its_value() {
        assert_eq!(bar(10.0, 10.0, 4), "████");
        assert_eq!(bar(5.0, 10.0, 4), "██");
        assert_eq!(bar(5.3125, 10.0, 4), "██▏");
        assert_eq!(bar(0.0, 10.0, 4), "");
        assert_eq!(bar(0.0001, 10.0, 4), "▏");
        assert_eq!(bar(f64::NAN, 10.0, 4), "");
    }

    #[test]
    fn a_chart_stacks_full_cells_under_the_top_one() {
        assert_eq!(chart(&[0.0, 1.0, 4.0, 8.0], 8.0, 1), [" ▁▄█"]);
        assert_eq!(chart(&[0.0, 4.0, 8.0, 12.0, 16.0], 16.0, 2), ["   ▄█", " ▄███"]);
    }

    proptest! {
        #[test]
        fn nothing_is_longer_than_its_room(
            values in prop::collection::vec(prop::num::f64::ANY, 0..50),
            max in prop::num::f64::ANY,
            size in 1..20_usize,
        ) {
            for value in &values {
                prop_assert!(bar(*value, max, size).chars().count() <= size);
            }
            for line in chart(&values, max, size) {
                prop_assert_eq!(line.chars().count(), values.len());
            }
        }
    }
}
