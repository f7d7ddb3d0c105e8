//! Tables: aligned text that fits the reader's width, Markdown, and CSV.

use anstyle::Style;

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    title: String,
    /// Alignment of its text.
    align: Align,
    /// 0 is never dropped. If the width is too small, columns with the highest rank are dropped
    /// first.
    dispensable: u8,
    /// A drawing; only text output has it.
    drawing: bool,
    /// Running text, wrapped if the width is too small.
    prose: bool,
}

impl Column {
    /// Creates a column that is never dropped.
    #[must_use]
    pub fn new(title: &str, align: Align) -> Column {
        Column { title: title.to_owned(), align, dispensable: 0, drawing: false, prose: false }
    }

    /// Returns the column with a rank for dropping.
    #[must_use]
    pub fn dispensable(self, rank: u8) -> Column {
        Column { dispensable: rank, ..self }
    }

    /// Returns the column as running text.
    #[must_use]
    pub fn prose(self) -> Column {
        Column { prose: true, ..self }
    }

    /// Returns the column as a drawing, for text only.
    #[must_use]
    pub fn drawing(self) -> Column {
        Column { drawing: true, ..self }
    }
}

/// The emphasis of a row.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Emphasis {
    /// No emphasis.
    #[default]
    None,
    /// The best: bold.
    Best,
    /// Worse than the reference: red.
    Bad,
    /// For reference: dimmed.
    Reference,
}

impl Emphasis {
    fn style(self) -> Style {
        match self {
            Emphasis::None => Style::new(),
            Emphasis::Best => Style::new().bold(),
            Emphasis::Bad => anstyle::AnsiColor::Red.on_default(),
            Emphasis::Reference => Style::new().dimmed(),
        }
    }
}

/// A table.
#[derive(Clone, Default, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<(Emphasis, Vec<String>)>,
}

impl Table {
    /// Creates an empty table with these columns.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty; surplus cells are dropped.
    pub fn row(&mut self, emphasis: Emphasis, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push((emphasis, cells));
    }

    /// Returns the columns that fit into `width`, after dropping dispensable ones.
    fn fitting(&self, width: usize) -> Vec<(usize, &Column, usize)> {
        let cell_width = |index: usize| {
            let cells = self.rows.iter().filter_map(|(_, cells)| cells.get(index));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut kept: Vec<_> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| (i, column, cell_width(i).max(column.title.chars().count())))
            .collect();
        while kept.iter().map(|(_, _, w)| w + 2).sum::<usize>() > width + 2 {
            let last = kept.iter().enumerate().max_by_key(|(_, (_, c, _))| c.dispensable);
            match last {
                Some((at, (_, column, _))) if column.dispensable > 0 => kept.remove(at),
                _ => break,
            };
        }
        let total: usize = kept.iter().map(|(_, _, w)| w + 2).sum();
        if let Some((_, _, room)) = kept.iter_mut().find(|(_, column, _)| column.prose) {
            *room = room.saturating_sub(total.saturating_sub(width + 2)).max(20);
        }
        kept
    }

    /// Returns the titles of all columns except drawings, and true if a column has numbers.
    pub(crate) fn headings(&self) -> Vec<(&str, bool)> {
        let columns = self.columns.iter().filter(|column| !column.drawing);
        columns.map(|column| (column.title.trim(), column.align == Align::Right)).collect()
    }

    /// Returns the emphasis of each row, and its cells in the order of [`Table::headings`].
    pub(crate) fn cells(&self) -> impl Iterator<Item = (Emphasis, Vec<&str>)> {
        self.rows.iter().map(|(emphasis, cells)| {
            let cells = self.columns.iter().zip(cells).filter(|(column, _)| !column.drawing);
            (*emphasis, cells.map(|(_, cell)| cell.trim()).collect())
        })
    }

    /// Returns the titles of the columns that [`Table::to_text`] shows at this width.
    pub(crate) fn shown(&self, width: usize) -> Vec<&str> {
        self.fitting(width).into_iter().map(|(_, column, _)| column.title.as_str()).collect()
    }

    /// Returns the titles of the columns, except drawings, that [`Table::to_text`] drops at this
    /// width.
    pub(crate) fn left_out(&self, width: usize) -> Vec<&str> {
        let kept = self.fitting(width);
        let gone = |at: &usize| kept.iter().all(|(index, ..)| index != at);
        let columns =
            self.columns.iter().enumerate().filter(|(at, column)| gone(at) && !column.drawing);
        columns.map(|(_, column)| column.title.as_str()).collect()
    }

    /// Returns aligned text. It is at most `width` columns wide if dropping dispensable columns
    /// suffices.
    #[must_use]
    pub fn to_text(&self, width: usize, colour: bool) -> String {
        let columns = self.fitting(width);
        let line = |cells: &dyn Fn(usize) -> String| -> String {
            let mut text = String::new();
            for (nth, (index, column, room)) in columns.iter().enumerate() {
                let cell = cells(*index);
                let pad = " ".repeat(room.saturating_sub(cell.chars().count()));
                let gap = if nth == 0 { "" } else { "  " };
                match column.align {
                    Align::Left => text.push_str(&format!("{gap}{cell}{pad}")),
                    Align::Right => text.push_str(&format!("{gap}{pad}{cell}")),
                }
            }
            text.trim_end().to_owned()
        };
        let title = |i: usize| self.columns.get(i).map(|c| c.title.clone()).unwrap_or_default();
        let mut text = styled(&line(&title), Style::new().underline(), colour) + "\n";
        for (emphasis, cells) in &self.rows {
            for cells in broken(cells, &columns) {
                let row = line(&|i| cells.get(i).cloned().unwrap_or_default());
                text.push_str(&styled(&row, emphasis.style(), colour));
                text.push('\n');
            }
        }
        text
    }

    /// Divides the columns among tables that fit into `width`, each with the first `names` columns. A table
    /// has at least one further column, so a very wide one may not fit.
    pub(crate) fn parts(&self, names: usize, width: usize) -> Vec<Table> {
        let of = |columns: &[usize]| Table {
            columns: columns.iter().filter_map(|at| self.columns.get(*at).cloned()).collect(),
            rows: self
                .rows
                .iter()
                .map(|(emphasis, cells)| {
                    (*emphasis, columns.iter().filter_map(|at| cells.get(*at).cloned()).collect())
                })
                .collect(),
        };
        let first: Vec<usize> = (0..names).collect();
        let mut parts = vec![first.clone()];
        for column in names..self.columns.len() {
            let Some(last) = parts.last_mut() else { break };
            last.push(column);
            let too_wide = of(last)
                .to_text(usize::MAX / 2, false)
                .lines()
                .any(|line| line.chars().count() > width);
            if too_wide && last.len() > names + 1 {
                last.pop();
                parts.push(first.iter().copied().chain([column]).collect());
            }
        }
        parts.iter().map(|part| of(part)).collect()
    }

    /// Returns an HTML table, without drawings. The classes of rows and cells are those of `papers.css`, and `html`
    /// escapes a text.
    pub(crate) fn to_html(&self, html: fn(&str) -> String) -> String {
        let columns: Vec<_> = self.columns.iter().enumerate().filter(|(_, c)| !c.drawing).collect();
        let class = |column: &Column| match column.align {
            Align::Left => "",
            Align::Right => " class=\"right\"",
        };
        let mut text = "<div class=\"scroll\"><table class=\"board\"><thead><tr>".to_owned();
        for (_, column) in &columns {
            text += &format!("<th{}>{}</th>", class(column), html(&column.title));
        }
        text += "</tr></thead><tbody>\n";
        for (emphasis, cells) in &self.rows {
            text += if *emphasis == Emphasis::Best { "<tr class=\"best\">" } else { "<tr>" };
            for (at, column) in &columns {
                let cell = cells.get(*at).map(|it| html(it)).unwrap_or_default();
                text += &format!("<td{}>{cell}</td>", class(column));
            }
            text += "</tr>\n";
        }
        text + "</tbody></table></div>\n"
    }

    /// Returns a table in GitHub's Markdown, without drawings.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let columns: Vec<_> = self.columns.iter().enumerate().filter(|(_, c)| !c.drawing).collect();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(columns.iter().map(|(_, c)| escaped(&c.title)).collect());
        let rule = columns.iter().map(|(_, c)| match c.align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        text.push_str(&line(rule.collect()));
        for (emphasis, cells) in &self.rows {
            let cell = |i: usize| cells.get(i).map(|c| escaped(c)).unwrap_or_default();
            let mark = |c: String| match emphasis {
                Emphasis::Best if !c.is_empty() => format!("**{c}**"),
                _ => c,
            };
            text.push_str(&line(columns.iter().map(|(i, _)| mark(cell(*i))).collect()));
        }
        text
    }
}

/// Splits a row into lines of cells; running text is wrapped to the width of its column.
fn broken(cells: &[String], columns: &[(usize, &Column, usize)]) -> Vec<Vec<String>> {
    let Some((at, _, room)) = columns.iter().find(|(_, column, _)| column.prose) else {
        return vec![cells.to_vec()];
    };
    let Some(prose) = cells.get(*at) else { return vec![cells.to_vec()] };
    let lines = wrap_words(prose, *room);
    let row = |(nth, line): (usize, String)| {
        let mut row = if nth == 0 { cells.to_vec() } else { vec![String::new(); cells.len()] };
        if let Some(cell) = row.get_mut(*at) {
            *cell = line;
        }
        row
    };
    lines.into_iter().enumerate().map(row).collect()
}

/// Wraps text to lines of at most `width` columns; returns at least one line.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Wraps text as [`wrap`] does. Words wider than `width` are broken: behind the last `_`, `/`, `,`, `=` or `:`
/// that fits, or else at the width.
#[must_use]
pub(crate) fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let mut rest = word;
        while let Some((limit, _)) = rest.char_indices().nth(width) {
            let mark = rest[..limit].rfind(['_', '/', ',', '=', ':']).map(|at| at + 1);
            let (part, after) = rest.split_at(mark.unwrap_or(limit));
            words.push(part);
            rest = after;
        }
        words.push(rest);
    }
    wrap(&words.join(" "), width)
}

/// Wraps the lines wider than `width` at spaces. Continuation lines begin below the text after a
/// label, or two columns further right.
#[must_use]
pub fn fold(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut rest = line.to_owned();
        let margin = " ".repeat(hanging(line).min(width / 2));
        while let Some(cut) = break_of(&rest, width) {
            out.push_str(rest[..cut].trim_end());
            out.push('\n');
            rest = format!("{margin}{}", rest[cut..].trim_start());
        }
        out.push_str(&rest);
        out.push('\n');
    }
    out
}

/// Returns the column of the text after a label such as `    apply    once in I`. Without a label,
/// it is two columns right of the indentation.
fn hanging(line: &str) -> usize {
    /// Labels are shorter than this.
    const LONGEST_LABEL: usize = 24;
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let body = line.trim_start();
    let described = body.find("  ").filter(|at| *at < LONGEST_LABEL).map(|at| {
        let spaces = body[at..].chars().take_while(|c| *c == ' ').count();
        indent + body[..at].chars().count() + spaces
    });
    described.unwrap_or(indent + 2)
}

/// Returns the byte at which to break a line wider than `width`. Returns `None` if the line fits,
/// or is one word without options.
fn break_of(line: &str, width: usize) -> Option<usize> {
    let end = line.char_indices().nth(width).map(|(at, _)| at)?;
    let indent = line.len() - line.trim_start().len();
    let before = line[..=end].rfind(' ').filter(|at| *at > indent);
    // An option of a form such as `video:NAME[,buffer=TIME]`.
    let option = || line[..=end].rfind("[,").filter(|at| *at > indent);
    before.or_else(option).or_else(|| line[end..].find(' ').map(|at| end + at))
}

/// Formats rows as CSV (RFC 4180; lines end with LF).
#[must_use]
pub fn csv(header: &[&str], rows: &[Vec<String>]) -> String {
    let field = |text: &str| -> String {
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let head = line(header.iter().map(|cell| field(cell)).collect());
    rows.iter().fold(head, |text, row| text + &line(row.iter().map(|c| field(c)).collect()))
}

fn escaped(cell: &str) -> String {
    cell.trim().trim_start_matches("* ").replace('|', "\\|")
}

fn styled(text: &str, style: Style, colour: bool) -> String {
    if colour && style != Style::new() && !text.is_empty() {
        format!("{}{text}{}", style.render(), style.render_reset())
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(vec![
            Column::new("scheduler", Align::Left),
            Column::new("median", Align::Right),
            Column::new("", Align::Left).dispensable(1).drawing(),
            Column::new("reinjected", Align::Right).dispensable(2),
        ]);
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        table.row(Emphasis::Best, row(["ecf", "412.3", "████", "0.4 %"]));
        table.row(Emphasis::None, row(["a|b", "1050", "████████", "0"]));
        table
    }

    #[test]
    fn columns_align_and_nothing_trails() {
        assert_eq!(
            sample().to_text(80, false),
            "scheduler  median            reinjected\n\
             ecf         412.3  ████           0.4 %\n\
             a|b          1050  ████████           0\n"
        );
    }

    #[test]
    fn dispensable_columns_go_highest_rank_first() {
        let text = sample().to_text(30, false);
        assert!(text.contains('█') && !text.contains("reinjected"), "{text}");
        let text = sample().to_text(20, false);
        assert!(!text.contains('█') && text.contains("412.3"), "{text}");
    }

    #[test]
    fn colour_is_for_those_who_want_it() {
        assert!(sample().to_text(80, true).contains("\u{1b}[1mecf"));
        assert!(!sample().to_text(80, false).contains('\u{1b}'));
    }

    #[test]
    fn markdown_has_no_drawings_and_escapes_bars() {
        assert_eq!(
            sample().to_markdown(),
            "| scheduler | median | reinjected |\n| --- | ---: | ---: |\n\
             | **ecf** | **412.3** | **0.4 %** |\n| a\\|b | 1050 | 0 |\n"
        );
    }

    #[test]
    fn running_text_is_broken_under_its_column() {
        let mut table = Table::new(vec![
            Column::new("name", Align::Left),
            Column::new("what it is", Align::Left).prose(),
        ]);
        table.row(Emphasis::None, vec!["ecf".into(), "one two three four five six".into()]);
        assert_eq!(
            table.to_text(28, false),
            "name  what it is\necf   one two three four\n      five six\n"
        );
    }

    #[test]
    fn a_wide_table_is_divided_between_columns() {
        let titles = ["rtt", "minrtt", "blest", "ecf"];
        let mut table = Table::new(titles.map(|it| Column::new(it, Align::Right)).to_vec());
        table.row(Emphasis::None, ["40ms", "1", "2", "3"].map(str::to_owned).to_vec());
        let parts = |width| {
            table.parts(1, width).iter().map(|it| it.to_text(width, false)).collect::<Vec<_>>()
        };
        assert_eq!(parts(30).len(), 1);
        assert_eq!(
            parts(20),
            [" rtt  minrtt  blest\n40ms       1      2\n", " rtt  ecf\n40ms    3\n"]
        );
        assert_eq!(parts(1).len(), 3);
    }

    #[test]
    fn long_words_are_broken_where_they_have_a_mark() {
        assert_eq!(
            wrap_words("by the_long_name_of a/test", 9),
            ["by", "the_long_", "name_of", "a/test"]
        );
        assert_eq!(wrap_words("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap_words("", 3), [""]);
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let rows = vec![vec!["ecf:beta=0.25,floor=off".to_owned(), "say \"x\"".to_owned()]];
        assert_eq!(csv(&["a", "b"], &rows), "a,b\n\"ecf:beta=0.25,floor=off\",\"say \"\"x\"\"\"\n");
    }
}
