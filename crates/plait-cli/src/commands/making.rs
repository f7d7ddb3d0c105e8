//! Flags for making the runs of experiments and for writing their results.

use crate::commands::cache;
use crate::commands::cluster::{self, Wanted};
use crate::console::{Console, json, write};
use crate::failure::Failure;
use crate::flags::whole;
use crate::progress::{self, Tally};
use plait_lab::Simulator;
use plait_lab::experiment::{
    Experiment, Looks, Misses, Open, Progress, Store, Unsettled, ablate, again, settle,
};
use plait_lab::scenario::MOST_JOBS;
use plait_report::reproduction::{LeftOut, Made, ReproductionDocument};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Largest value of `--more`.
const MOST_TIMES: u64 = 1_024;
/// Default of `--more`: an undecided claim gets at most this many times the runs of its file.
const FULL_TIMES: u64 = 8;
/// Default of `--more` in a quick run.
const QUICK_TIMES: u64 = 1;
/// Largest number of further seeds.
const MOST_SEEDS: u64 = 1_000;

/// Settings for making runs.
#[derive(clap::Args, Debug)]
pub(crate) struct Making {
    /// Cache the finished runs in this directory [default: the user's cache]
    #[arg(long, hide_short_help = true, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Neither read nor write the cache of finished runs
    #[arg(long, hide_short_help = true, conflicts_with = "cache")]
    no_cache: bool,
    /// Seed of the first run of each cell
    ///
    /// It is also the seed of networks that are drawn at random.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// Maximum runs of an undecided claim, as a multiple of the runs in its file [default: 8]
    ///
    /// While an exact or hard claim is undecided, its runs double, up to this multiple.
    /// With --quick the default is 1.
    #[arg(long, value_name = "TIMES", value_parser = whole(1, MOST_TIMES), allow_negative_numbers = true)]
    more: Option<u64>,
    /// Number of further seeds with which to judge the claims that hold
    ///
    /// They are the seeds after --seed. If a claim does not hold with each of them, its verdict is `varies`.
    #[arg(long, value_name = "SEEDS", value_parser = whole(1, MOST_SEEDS), allow_negative_numbers = true)]
    again: Option<u64>,
    /// Runs at a time [default: one per processor]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = whole(1, MOST_JOBS), allow_negative_numbers = true)]
    jobs: Option<u64>,
    /// Write every run (CSV and JSON lines), the claims and a manifest into this directory
    #[arg(long, hide_short_help = true, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Making {
    fn store(&self, console: Console) -> Result<Store, Failure> {
        let version = plait_report::program();
        let open = |directory: &Path| Store::in_directory(directory, &version);
        let store = cache::open(self.cache.as_deref(), self.no_cache, "runs", console, open)?;
        Ok(store.unwrap_or_else(|| Store::in_memory(&version)))
    }

    fn looks<'a>(&self, quick: bool, misses: &'a Misses) -> Looks<'a> {
        let most = self.more.unwrap_or(if quick { QUICK_TIMES } else { FULL_TIMES });
        Looks {
            seed: self.seed,
            quick,
            claims_only: false,
            most: u32::try_from(most).unwrap_or(u32::MAX),
            misses,
            read: &plait_app::file::named,
        }
    }

    /// Returns the number of runs before further ones for undecided claims.
    pub(crate) fn count(
        &self,
        experiments: &[Experiment],
        quick: bool,
        misses: &Misses,
    ) -> Result<usize, Failure> {
        let looks = self.looks(quick, misses);
        let mut runs = 0;
        for experiment in experiments {
            runs += looks.plan(experiment)?.runs();
        }
        Ok(runs)
    }

    /// Runs experiments and judges their claims.
    pub(crate) fn make(
        &self,
        experiments: &[Experiment],
        quick: bool,
        misses: &Misses,
        open: Option<&Open>,
        console: Console,
    ) -> Result<Made, Failure> {
        let looks = self.looks(quick, misses);
        // Errors in a file are reported before anything is written.
        let runs = self.count(experiments, quick, misses)?;
        if let Some(directory) = &self.output {
            std::fs::create_dir_all(directory)
                .map_err(|error| Failure::unwritable("--output", directory, &error))?;
        }
        let store = self.store(console)?;
        let cancelled = progress::on_interrupt()?;
        let tally = Tally::new(console);
        let told = |done: usize, total: usize, _: &str| tally.tell(done, total);
        let jobs = self.jobs.and_then(|jobs| NonZeroUsize::new(jobs as usize));
        let count = experiments.len();
        console.remark(2, &format!("plait: {count} experiments, {runs} runs at first"));
        let progress = Progress { told: &told, cancelled, jobs };
        let failure = |error: Unsettled| match error {
            Unsettled::Plan(error) => error.into(),
            Unsettled::Store(error) => {
                let path = store.path().unwrap_or(Path::new("the cache"));
                Failure::unwritable("--cache", path, &error)
            }
        };
        let settled = settle(experiments, &looks, &Simulator, &store, &progress);
        let settled = settled.map_err(failure)?;
        let further = u32::try_from(self.again.unwrap_or(0)).unwrap_or(u32::MAX);
        let repeated = &settled.judged;
        let repeated = again(experiments, repeated, &looks, further, &Simulator, &store, &progress);
        let ablated = match open {
            Some(open) => ablate(experiments, open, &looks, &Simulator, &store, &progress),
            None => Ok(Vec::new()),
        };
        tally.clear();
        let (repeated, ablated) = (repeated.map_err(failure)?, ablated.map_err(failure)?);
        let (seed, interrupted) = (self.seed, cancelled.load(Ordering::Relaxed));
        let run =
            |it: &Experiment| settled.results.iter().any(|one| one.plan.experiment.id == it.id);
        let left_out =
            experiments.iter().filter(|it| quick && !run(it)).map(LeftOut::from).collect();
        Ok(Made { settled, repeated, ablated, left_out, seed, interrupted })
    }

    /// Makes the first runs of an experiment on the Dask cluster at `address`. The cache has them afterwards.
    pub(crate) fn make_on_cluster(
        &self,
        address: &str,
        experiment: &str,
        quick: bool,
    ) -> Result<(), Failure> {
        let directory = cache::directory(self.cache.as_deref()).filter(|_| !self.no_cache);
        let directory = directory.ok_or_else(|| {
            Failure::Usage("--cluster: it needs a cache\n  allowed: --cache DIR".to_owned())
        })?;
        cluster::make(address, &Wanted { experiment, seed: self.seed, quick }, &directory)
    }

    /// Returns the flags that repeat the same runs.
    pub(crate) fn flags(&self) -> String {
        let mut line = String::new();
        if self.seed != 1 {
            line += &format!(" --seed {}", self.seed);
        }
        if let Some(more) = self.more {
            line += &format!(" --more {more}");
        }
        if let Some(again) = self.again {
            line += &format!(" --again {again}");
        }
        line
    }

    /// Writes every run and the document, and nothing else, into the directory of `--output`.
    pub(crate) fn keep(&self, made: &Made, document: &ReproductionDocument) -> Result<(), Failure> {
        let Some(directory) = &self.output else { return Ok(()) };
        let first = made.settled.results.iter().map(|results| ("", results));
        let further = made.settled.further.iter().map(|results| ("-more", results));
        for (which, results) in first.chain(further) {
            let file =
                |end: &str| directory.join(format!("{}{which}.{end}", results.plan.experiment.id));
            write("--output", &file("csv"), &results.csv())?;
            write("--output", &file("jsonl"), &results.json_lines())?;
        }
        let mut manifest =
            serde_json::to_value(document).map_err(|error| Failure::Internal(error.to_string()))?;
        if let Some(fields) = manifest.as_object_mut() {
            fields.remove("cells");
        }
        write("--output", &directory.join("manifest.json"), &json(&manifest)?)
    }
}

/// Fails if a claim fails or the user interrupted the command.
pub(crate) fn judge(made: &Made, document: &ReproductionDocument) -> Result<(), Failure> {
    if made.interrupted {
        return Err(Failure::Interrupted);
    }
    let broken = document.broken();
    if broken.is_empty() { Ok(()) } else { Err(Failure::Claim(broken.join("\n"))) }
}
