//! The timeline of one run: bytes sent, windows and queues of each path over time, and the causes
//! that blocked the sender.

use super::{Align, Column, Emphasis, Table, bytes, chart, millis, percent, rate};
use plait_base::{Span, Time};

/// Greatest width of a timeline in columns.
const MAX_WIDTH: usize = 100;
/// Columns of the names on the left of a chart, and of the numbers on its right.
const LABEL: usize = 14;
const FIGURE: usize = 18;

/// The reason why a sender with data does not send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The peer's window is full.
    SendWindow,
    /// The send buffer is full; the application waits.
    SendBuffer,
    /// Every congestion window is full.
    Cwnd,
    /// The scheduler waits for a better subflow.
    Scheduler,
    /// No subflow is alive.
    NoSubflow,
}

impl Cause {
    const ALL: [Cause; 5] =
        [Cause::SendWindow, Cause::SendBuffer, Cause::Cwnd, Cause::Scheduler, Cause::NoSubflow];

    fn words(self) -> &'static str {
        match self {
            Cause::SendWindow => "peer's window",
            Cause::SendBuffer => "send buffer",
            Cause::Cwnd => "cwnd",
            Cause::Scheduler => "scheduler",
            Cause::NoSubflow => "no subflow",
        }
    }

    /// Returns its name in JSON.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Cause::SendWindow => "send_window",
            Cause::SendBuffer => "send_buffer",
            Cause::Cwnd => "cwnd",
            Cause::Scheduler => "scheduler",
            Cause::NoSubflow => "no_subflow",
        }
    }
}

/// One path over time; every series has one value per bin.
#[derive(Clone, Default, Debug)]
pub struct PathSeries {
    /// The path's name.
    pub name: String,
    /// Payload bytes sent in the bin, all kinds.
    pub sent_bytes: Vec<u64>,
    /// Congestion window in bytes, maximum of the bin.
    pub cwnd_bytes: Vec<u64>,
    /// Bytes in the bottleneck's queue, maximum of the bin.
    pub queue_bytes: Vec<u64>,
    /// Packets lost in the bin.
    pub lost: Vec<u32>,
}

/// Totals of one path over the run.
#[derive(Clone, Default, Debug)]
pub struct PathCounters {
    /// The path's name.
    pub name: String,
    /// Payload bytes sent, all kinds.
    pub sent_bytes: u64,
    /// Data segments sent.
    pub segments: u64,
    /// Share of all payload bytes sent, including copies and retransmissions.
    pub share: f64,
    /// Bytes that the same subflow had sent before.
    pub retransmitted_bytes: u64,
    /// Bytes that another subflow had sent before.
    pub reinjected_bytes: u64,
    /// Payload bytes that a quota counts, since the start of the run: TCP retransmissions are excluded.
    pub metered_bytes: u64,
    /// The quota of the path, if it has one.
    pub quota: Option<u64>,
    /// Packets dropped by the link, all causes.
    pub lost: u64,
    /// Least, mean and greatest RTT sample in milliseconds.
    pub rtt_ms: Option<(f64, f64, f64)>,
}

impl PathCounters {
    /// Returns the bytes that the quota leaves, and the bytes beyond it.
    #[must_use]
    pub fn quota_rest(&self) -> Option<(u64, u64)> {
        let quota = self.quota?;
        Some((quota.saturating_sub(self.metered_bytes), self.metered_bytes.saturating_sub(quota)))
    }
}

/// The data of the drawing.
#[derive(Clone, Default, Debug)]
pub struct Timeline {
    /// A short description of the run.
    pub title: String,
    /// Length of a bin.
    pub bin: Span,
    /// The paths.
    pub paths: Vec<PathSeries>,
    /// The intervals in which the sender was blocked: cause, start, end.
    pub blocked: Vec<(Cause, Time, Time)>,
    /// Totals.
    pub counters: Vec<PathCounters>,
}

/// Bins merged to fit the available columns.
struct Grid {
    bins: usize,
    per_column: usize,
    columns: usize,
    column: Span,
}

impl Grid {
    fn new(timeline: &Timeline, width: usize) -> Grid {
        let bins = timeline.paths.iter().map(|path| path.sent_bytes.len()).max().unwrap_or(0);
        let room = width.min(MAX_WIDTH).saturating_sub(LABEL + FIGURE).max(20);
        let per_column = bins.div_ceil(room).max(1);
        let columns = bins.div_ceil(per_column);
        Grid { bins, per_column, columns, column: timeline.bin.times(per_column as u64) }
    }

    /// Returns one value per column: `merge` of its bins.
    fn merged<T: Copy + Default>(&self, series: &[T], merge: impl Fn(&[T]) -> f64) -> Vec<f64> {
        let mut padded = series.to_vec();
        padded.resize(self.bins, T::default());
        padded.chunks(self.per_column).map(merge).collect()
    }

    fn column_of(&self, at: Time) -> usize {
        (at.as_nanos() / self.column.as_nanos().max(1)) as usize
    }
}

impl Timeline {
    /// Returns the drawing and the table of counters, at most `width` (and 100) columns wide.
    #[must_use]
    pub fn to_text(&self, width: usize, colour: bool) -> String {
        let grid = Grid::new(self, width);
        let end = Span::from_nanos(self.bin.as_nanos().saturating_mul(grid.bins as u64));
        let mut lines = vec![
            self.title.clone(),
            format!(
                "{} in all, one column is {}",
                millis(end.as_millis_f64()),
                millis(grid.column.as_millis_f64())
            ),
        ];
        for path in &self.paths {
            lines.push(String::new());
            lines.extend(path_lines(path, &grid));
        }
        lines.push(String::new());
        lines.extend(self.blocked_lines(&grid));
        lines.push(axis(&grid));
        let drawing: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        format!("{}\n\n{}", drawing.join("\n"), self.counter_table().to_text(width, colour))
    }

    fn blocked_lines(&self, grid: &Grid) -> Vec<String> {
        let mut lines = Vec::new();
        for cause in Cause::ALL {
            let spans = || self.blocked.iter().filter(move |(c, _, _)| *c == cause);
            let total: Span = spans().fold(Span::ZERO, |sum, (_, from, to)| sum + to.since(*from));
            if total == Span::ZERO {
                continue;
            }
            let mut cells = vec![' '; grid.columns];
            for (_, from, to) in spans().filter(|(_, from, to)| from < to) {
                let last = grid.column_of(*to - Span::from_nanos(1));
                let first = grid.column_of(*from);
                cells.iter_mut().take(last + 1).skip(first).for_each(|cell| *cell = '▬');
            }
            let held = format!("{} held", millis(total.as_millis_f64()));
            lines.push(labelled(cause.words(), &cells.iter().collect::<String>(), grid, &held));
        }
        if lines.is_empty() {
            lines.push(labelled("held back", "", grid, "never"));
        }
        lines
    }

    fn counter_table(&self) -> Table {
        let mut columns = vec![
            Column::new("path", Align::Left),
            Column::new("sent %", Align::Right),
            Column::new("sent", Align::Right),
            Column::new("segments", Align::Right).dispensable(3),
            Column::new("retransmitted", Align::Right),
            Column::new("reinjected", Align::Right),
            Column::new("lost packets", Align::Right).dispensable(2),
            Column::new("rtt min/mean/max", Align::Right).dispensable(1),
        ];
        let limited = self.counters.iter().any(|path| path.quota.is_some());
        if limited {
            columns.push(Column::new("quota", Align::Right));
        }
        let mut table = Table::new(columns);
        for path in &self.counters {
            let rtt = path.rtt_ms.map(|(min, mean, max)| format!("{min:.0}/{mean:.0}/{max:.0} ms"));
            let mut row = vec![
                path.name.clone(),
                percent(path.share),
                bytes(path.sent_bytes),
                path.segments.to_string(),
                bytes(path.retransmitted_bytes),
                bytes(path.reinjected_bytes),
                path.lost.to_string(),
                rtt.unwrap_or_else(|| "-".to_owned()),
            ];
            if limited {
                row.push(match path.quota_rest() {
                    Some((_, over)) if over > 0 => format!("{} over", bytes(over)),
                    Some((left, _)) => format!("{} left", bytes(left)),
                    None => "-".to_owned(),
                });
            }
            table.row(Emphasis::None, row);
        }
        table
    }
}

/// Draws the charts of one path. Bytes sent take three lines, windows two, and the queue one;
/// losses are marked.
fn path_lines(path: &PathSeries, grid: &Grid) -> Vec<String> {
    let sum = |cells: &[u64]| cells.iter().map(|n| *n as f64).sum::<f64>();
    let greatest = |cells: &[u64]| cells.iter().copied().max().unwrap_or(0) as f64;
    let peak = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);

    let sent = grid.merged(&path.sent_bytes, sum);
    let cwnd = grid.merged(&path.cwnd_bytes, greatest);
    let queue = grid.merged(&path.queue_bytes, greatest);
    let lost = grid.merged(&path.lost, |cells| cells.iter().map(|n| f64::from(*n)).sum());

    let peak_rate = peak(&sent) * 8.0 / grid.column.as_secs_f64().max(1e-9);
    let peak_of = |values: &[f64]| format!("peak {}", bytes(peak(values) as u64));
    let mut lines = Vec::new();
    let mut graph = |name: &str, values: &[f64], height: usize, figure: &str| {
        let rows = chart(values, peak(values), height);
        for (nth, row) in rows.iter().enumerate() {
            let label = match nth {
                0 if name == "sent" => path.name.clone(),
                1 if name == "sent" => name.to_owned(),
                0 => name.to_owned(),
                _ => String::new(),
            };
            lines.push(labelled(&label, row, grid, if nth == 0 { figure } else { "" }));
        }
    };
    graph("sent", &sent, 3, &format!("peak {}", rate(peak_rate as u64)));
    graph("cwnd", &cwnd, 2, &peak_of(&cwnd));
    if peak(&queue) > 0.0 {
        graph("queue", &queue, 1, &peak_of(&queue));
    }
    let total: f64 = lost.iter().sum();
    if total > 0.0 {
        let marks = lost.iter().map(|n| if *n > 0.0 { '×' } else { ' ' }).collect::<String>();
        let packets = if total == 1.0 { "packet" } else { "packets" };
        lines.push(labelled("lost", &marks, grid, &format!("{total} {packets}")));
    }
    lines
}

fn labelled(label: &str, drawing: &str, grid: &Grid, figure: &str) -> String {
    let room = LABEL - 1;
    let label: String = if label.chars().count() > room {
        label.chars().take(room - 1).chain(['…']).collect()
    } else {
        label.to_owned()
    };
    format!("{label:>room$} {drawing:<columns$}  {figure}", columns = grid.columns)
}

/// Draws the time axis, with a tick and its time about every fifteen columns.
fn axis(grid: &Grid) -> String {
    let mut text = " ".repeat(LABEL);
    let mut at = 0;
    while at < grid.columns {
        let time = millis(grid.column.times(at as u64).as_millis_f64());
        let tick = format!("└{}", if at == 0 { "0" } else { &time });
        if at + tick.chars().count() > grid.columns + FIGURE {
            break;
        }
        text.push_str(&format!("{tick:<15}"));
        at += 15;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Timeline {
        let ms = |n: u64| Time::ZERO + Span::from_millis(n);
        let wifi = PathSeries {
            name: "wifi".into(),
            sent_bytes: (0..120).map(|t| if t < 4 { 0 } else { (t * 700).min(25_000) }).collect(),
            cwnd_bytes: (0..120).map(|t| 14_280 + (t % 60) * 900).collect(),
            queue_bytes: (0..120).map(|t| (t % 60) * 1_000).collect(),
            lost: (0..120).map(|t| u32::from(t % 60 == 59)).collect(),
        };
        let lte = PathSeries {
            name: "lte".into(),
            sent_bytes: (0..120).map(|t| if t % 7 == 0 { 9_000 } else { 0 }).collect(),
            cwnd_bytes: vec![14_280; 120],
            ..PathSeries::default()
        };
        Timeline {
            title: "ecf, cubic, download:2MB, seed 1".into(),
            bin: Span::from_millis(10),
            paths: vec![wifi, lte],
            blocked: vec![
                (Cause::SendWindow, ms(300), ms(420)),
                (Cause::Scheduler, ms(1_100), ms(1_200)),
            ],
            counters: vec![
                PathCounters {
                    name: "wifi".into(),
                    sent_bytes: 1_750_000,
                    segments: 1_226,
                    share: 0.87,
                    retransmitted_bytes: 2_856,
                    reinjected_bytes: 0,
                    lost: 2,
                    rtt_ms: Some((25.1, 31.4, 58.0)),
                    ..PathCounters::default()
                },
                PathCounters { name: "lte".into(), share: 0.13, ..PathCounters::default() },
            ],
        }
    }

    #[test]
    fn a_run_reads_at_a_glance() {
        insta::assert_snapshot!(sample().to_text(100, false));
    }

    #[test]
    fn a_narrow_terminal_gets_a_narrow_drawing() {
        for width in [40, 60, 80, 100, 300] {
            let text = sample().to_text(width, false);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.clamp(66, 100), "{widest} at {width}\n{text}");
        }
    }

    /// Only paths with a quota have a rest, and only runs with one have the column.
    #[test]
    fn a_run_has_the_rest_of_each_quota_or_the_bytes_beyond_it() {
        let mut run = sample();
        assert!(!run.to_text(100, false).contains("quota"));
        let last_cells = |run: &Timeline| {
            let text = run.to_text(100, false);
            let rows = text.lines().skip_while(|line| !line.starts_with("path ")).take(3);
            rows.map(|line| line.rsplit("  ").next().unwrap().trim().to_owned()).collect::<Vec<_>>()
        };
        run.counters[1].quota = Some(100_000);
        run.counters[1].metered_bytes = 60_000;
        assert_eq!(last_cells(&run), ["quota", "-", "40.0 kB left"]);
        run.counters[1].metered_bytes = 1_100_000;
        assert_eq!(last_cells(&run), ["quota", "-", "1.00 MB over"]);
        assert_eq!(run.counters[1].quota_rest(), Some((0, 1_000_000)));
    }

    #[test]
    fn an_empty_run_is_drawn_without_fuss() {
        assert!(Timeline::default().to_text(80, false).contains("never"));
    }
}
