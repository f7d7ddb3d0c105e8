//! The page of a random scoreboard, and its map as a drawing.

use super::super::page::escaped;
use super::plot::{Plot, Scale, Side, WHOLE};
use super::{page, standalone};
use crate::render::random_board::{
    CLASSES, MIN_COMPARISONS, about_map, classes, columns_of, first, legend, range_text, standings,
    title,
};
use plait_lab::scoreboard::random::{MapCell, RandomBoard};
use std::fmt::Write;

/// Colour of cells in which the scheduler is faster than plain TCP, and of those in which it is slower.
const FASTER: usize = 0;
const SLOWER: usize = 1;
/// The factor at which a cell has its full colour.
const FULL: f64 = 2.0;

/// Returns the map of the first scheduler as a file of its own (SVG).
#[must_use]
pub fn board_map(board: &RandomBoard) -> String {
    standalone::svg(&map(board))
}

/// Returns the board as a page for a browser, which needs no other file.
#[must_use]
pub fn board_page(board: &RandomBoard) -> String {
    let mut body = format!(
        "<header><h1>Schedulers on random links</h1>\n<p class=\"what\">{}</p></header>\n",
        escaped(&title(board))
    );
    let mut section = |heading: &str, about: &str, content: &str| {
        let (heading, about) = (escaped(heading), prose(about));
        let _ =
            write!(body, "<section>\n<h2>{heading}</h2>\n{content}<p>{about}</p>\n</section>\n");
    };
    section("Schedulers", &legend(board), &standings(board).to_html(escaped));
    let drawn = format!("<div class=\"plots\"><figure>{}</figure></div>\n", map(board));
    section("By the ratios of the paths", &about_map(board), &drawn);
    section("By property of the cell", CLASSES, &classes(board, usize::MAX).to_html(escaped));
    let mut worst = String::new();
    for it in &board.worst {
        let (measure, command) = (escaped(&it.measure), escaped(&it.command));
        let _ = writeln!(
            worst,
            "<li>{:.2}x the time, {measure}: <code>{command}</code></li>",
            it.ratio
        );
    }
    let name = first(board);
    section(
        &format!("The worst cells of {name}"),
        "Each command compares the rows of its cell again.",
        &format!("<ol>\n{worst}</ol>\n"),
    );
    for what in &board.missing {
        let _ = writeln!(body, "<p class=\"hint\">Missing: {}</p>", escaped(what));
    }
    page("Schedulers on random links", "", &body, &board.command)
}

/// Returns a text as HTML, with code between backticks.
fn prose(text: &str) -> String {
    let parts = text.split('`').map(escaped).enumerate();
    let html = |(at, part): (usize, String)| match at % 2 {
        0 => part,
        _ => format!("<code>{part}</code>"),
    };
    parts.map(html).collect()
}

/// Draws the map: a column for each range of the rate, a row for each range of the RTT.
fn map(board: &RandomBoard) -> String {
    let rates: Vec<String> = columns_of(board).into_iter().map(range_text).collect();
    let rows: Vec<&[MapCell]> = board.map.chunks(rates.len().max(1)).collect();
    let heads = rows.iter().filter_map(|row| row.first());
    let rtts: Vec<String> = heads.map(|cell| range_text(cell.rtt_ratio)).collect();
    let side = |count: usize| Scale::of(-0.5, count as f64 - 0.5);
    let title = format!("{}: time over that of plain TCP; below 1 is faster", first(board));
    let scales = (side(rates.len()), side(rtts.len()));
    let mut plot =
        Plot::new((&title, WHOLE), scales, &[], "RTT, second path over first", Side::Words(&rtts));
    for (y, row) in rows.iter().enumerate() {
        for (x, cell) in row.iter().enumerate() {
            let Some(mean) = cell.mean.filter(|_| cell.comparisons >= MIN_COMPARISONS) else {
                continue;
            };
            let colour = if mean <= 1.0 { FASTER } else { SLOWER };
            let share = (libm::log(mean) / libm::log(FULL)).abs();
            let says = format!(
                "rate {}, RTT {}: {mean:.3}, {} comparisons",
                rates[x], rtts[y], cell.comparisons
            );
            plot.cell((x as f64, y as f64), (colour, share), &format!("{mean:.2}"), &says);
        }
    }
    let at: Vec<f64> = (0..rates.len()).map(|at| at as f64).collect();
    plot.words(&at, &rates, "rate, second path over first");
    plot.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::random_board::tests::board;

    #[test]
    fn the_map_has_every_cell_with_enough_comparisons() {
        let mut board = board();
        let played = board.map.iter_mut().filter(|it| it.mean.is_some());
        played.for_each(|it| it.comparisons = MIN_COMPARISONS);
        let svg = board_map(&board);
        let shown = board.map.iter().filter(|it| it.comparisons >= MIN_COMPARISONS);
        let means: Vec<String> =
            shown.filter_map(|it| it.mean).map(|mean| format!(">{mean:.2}<")).collect();
        assert!(!means.is_empty());
        for mean in &means {
            assert!(svg.contains(mean.as_str()), "{mean}: {svg}");
        }
        assert_eq!(svg.matches("opacity=").count(), means.len());
        assert!(roxmltree::Document::parse(&svg).is_ok());
    }

    #[test]
    fn the_page_has_the_tables_and_the_worst_cells() {
        let board = board();
        let page = board_page(&board);
        for it in &board.standings {
            assert!(
                page.contains(&format!("<td>{}</td>", escaped(&it.scheduler))),
                "{}",
                it.scheduler
            );
        }
        for it in &board.worst {
            assert!(page.contains(&escaped(&it.command)));
        }
        assert!(
            page.contains("<code>startable</code>")
                && page.contains("plait scoreboard</title>")
                && !page.contains("http://www.w3.org/1999")
        );
    }
}
