//! `plait scoreboard --random`: how often each scheduler harms on random links.

use super::finished_cells::FinishedCells;
use super::{Args, Order};
use crate::commands::cache;
use crate::console::{Console, check_writable, json, write};
use crate::failure::Failure;
use crate::output::TableFormat;
use crate::progress::{self, Tally};
use plait_lab::Simulator;
use plait_lab::scoreboard::random::{
    PathOrder, Played, RandomBoard, RandomControl, RandomOptions, random_scoreboard,
};
use plait_report::papers;
use plait_report::render::random_board as render;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Default schedulers: those that users choose between.
const USUAL: &str = "slot,ecf+copy,minrtt,blest,ecf,stms-c+copy,linux";

pub(super) fn run(args: &Args, count: u64, console: Console) -> Result<(), Failure> {
    args.output.check()?;
    let drawings = [
        ("--svg", &args.board.svg, papers::board_map as fn(&RandomBoard) -> String),
        ("--html", &args.board.html, papers::board_page),
    ];
    for (flag, file, _) in &drawings {
        check_writable(flag, file.as_deref())?;
    }
    let options = options(args, count);
    let finished = finished_cells(args, &options, console)?;
    let cancelled = progress::on_interrupt()?;
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let known = |number| finished.as_ref().and_then(|cells| cells.find(number));
    let keep = |cell: &Played| finished.iter().for_each(|cells| cells.add(cell));
    let control = RandomControl { progress: &advance, cancelled, known: &known, keep: &keep };
    let board = random_scoreboard(&options, &Simulator, &control)?;
    tally.clear();
    finished.map_or(Ok(()), FinishedCells::check)?;
    args.output.deliver(&text(args, &board, console)?)?;
    for (flag, file, draw) in &drawings {
        file.as_deref().map_or(Ok(()), |file| write(flag, file, &draw(&board)))?;
    }
    if cancelled.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

fn options(args: &Args, count: u64) -> RandomOptions {
    let schedulers = args.schedulers.clone().unwrap_or_else(|| USUAL.to_owned());
    let mut command = format!("plait scoreboard --random {count} --seed {}", args.seed);
    if args.board.path_order == Order::Known {
        command += " --path-order known";
    }
    if args.schedulers.is_some() {
        command += &format!(" --schedulers {schedulers}");
    }
    let runs = args.runs();
    if runs != 1 {
        command += &format!(" --runs {runs}");
    }
    let mut settings = Vec::new();
    if args.cc != "cubic" {
        command += &format!(" --cc {}", args.cc);
        settings.push(("cc", args.cc.clone()));
    }
    for (name, text) in [("join", &args.board.join), ("path-memory", &args.board.path_memory)] {
        if let Some(text) = text {
            command += &format!(" --{name} {text}");
            settings.push((name, text.clone()));
        }
    }
    RandomOptions {
        count: u32::try_from(count).unwrap_or(u32::MAX),
        seed: args.seed,
        order: match args.board.path_order {
            Order::Startable => PathOrder::Startable,
            Order::Known => PathOrder::Known,
        },
        runs: u32::try_from(runs).unwrap_or(u32::MAX),
        schedulers,
        settings,
        jobs: args.jobs.and_then(|jobs| NonZeroUsize::new(usize::try_from(jobs).ok()?)),
        command,
    }
}

/// Opens the file of finished cells. The number of cells is no part of its key, so a larger board continues a
/// smaller one.
fn finished_cells(
    args: &Args,
    options: &RandomOptions,
    console: Console,
) -> Result<Option<FinishedCells>, Failure> {
    let RandomOptions { seed, order, runs, schedulers, settings, .. } = options;
    let key =
        || format!("{} {seed} {order:?} {runs} {schedulers} {settings:?}", plait_report::program());
    let open = |directory: &Path| FinishedCells::open(directory, &key());
    cache::open(args.board.cache.as_deref(), args.board.no_cache, "cells", console, open)
}

fn text(args: &Args, board: &RandomBoard, console: Console) -> Result<String, Failure> {
    let console = args.output.reader(console);
    match (args.output.json, args.output.format) {
        (true, _) => json(board),
        (_, Some(TableFormat::Csv)) => Ok(render::csv(board)),
        (_, Some(TableFormat::Markdown)) => Ok(render::markdown(board)),
        (_, None) => Ok(render::text(board, console.width, console.colour)),
    }
}
