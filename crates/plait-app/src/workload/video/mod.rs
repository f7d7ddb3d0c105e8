//! A video over one persistent connection: a client that adapts its bit rate, or the traffic
//! pattern of a real player.

mod abr;
mod client;
mod clip;
mod mpd;
mod pattern;
mod player;
mod sizes;
mod source;
mod xml;

pub use abr::Abr;
pub use clip::{Clip, Rung};
pub use pattern::{PATTERNS, Pattern};
pub use source::FileError;

pub(super) use client::Client;

use super::error::WorkloadError;
use super::field::{Files, time};
use crate::name::nearest;
use crate::quantity::shortened;
use core::fmt;
use plait_base::{Rate, Span};
use std::sync::Arc;

/// Name of the built-in clip.
pub const PAPER: &str = "paper";
/// Bit rates of the built-in clip in kbit/s, its chunk length and its total length (ECF 2017).
const LADDER: [u64; 6] = [260, 640, 1_000, 1_600, 4_140, 8_470];
const CHUNK: Span = Span::from_secs(5);
const LENGTH: Span = Span::from_secs(1_332);

/// Default limit of the buffer, and default buffer at the start of playback.
const BUFFER: Span = Span::from_secs(60);
const START: Span = Span::from_secs(10);
/// Default duration of a pattern.
const PATTERN: Span = Span::from_secs(1_200);

/// A video workload.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Video {
    /// A client that adapts its bit rate.
    Adaptive(Session),
    /// The traffic pattern of a player, as measured from outside.
    Pattern {
        /// The pattern.
        pattern: Pattern,
        /// Blocks are due within this time.
        duration: Span,
        /// Seed of the random sizes and periods; `None` for the exact mean values.
        seed: Option<u64>,
    },
}

/// A clip, and the way it is played.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Session {
    /// Name or file of the clip.
    pub source: Arc<str>,
    /// The clip.
    pub clip: Arc<Clip>,
    /// Adaptation of the bit rate.
    pub abr: Abr,
    /// Buffer limit: the client requests no chunk while this much or more is buffered.
    pub buffer: Span,
    /// Playback starts when this much is buffered.
    pub start: Span,
    /// The client leaves this long after its first SYN, even if chunks are missing.
    pub duration: Option<Span>,
    /// Chunk length of the built-in clip, if it differs from that of the paper.
    chunk: Option<Span>,
}

/// The options after the name.
#[derive(Default)]
struct Options {
    abr: Option<Abr>,
    buffer: Option<Span>,
    start: Option<Span>,
    duration: Option<Span>,
    chunk: Option<Span>,
    seed: Option<u64>,
}

impl Video {
    /// Reads `paper`, `paper,abr=mpc,for=20min`, `netflix-ipad,spread=1`, `clip.mpd,abr=bola`.
    pub(super) fn parse(
        text: &str,
        form: &dyn Fn() -> WorkloadError,
        read: Files<'_>,
    ) -> Result<Video, WorkloadError> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default().trim();
        let options = Options::read(parts, form)?;
        if let Some(pattern) = Pattern::named(name) {
            return options.pattern(pattern, form);
        }
        let clip = if name == PAPER {
            let rates = LADDER.map(|kbps| Rate::from_bps(kbps * 1_000));
            let chunk = options.chunk.unwrap_or(CHUNK);
            Clip::constant(LENGTH, chunk, &rates)
                .map_err(|clip::Unfit(_)| WorkloadError::TooLarge { given: shortened(text) })?
        } else if options.chunk.is_some() {
            return Err(form());
        } else {
            from_file(name, read)?
        };
        options.session(name, clip)
    }

    /// Returns the client.
    pub(super) fn client(&self) -> Box<dyn super::App> {
        match self {
            Video::Adaptive(session) => Box::new(Client::new(session)),
            Video::Pattern { pattern, duration, seed } => {
                let schedule = pattern.schedule(*duration, *seed);
                Box::new(super::exchange::Asking::new(schedule))
            }
        }
    }

    /// Returns the maximum number of messages.
    pub(super) fn messages(&self) -> u64 {
        match self {
            Video::Adaptive(session) => session.clip.chunks() as u64,
            Video::Pattern { pattern, duration, seed } => match seed {
                Some(_) => pattern.schedule(*duration, *seed).len() as u64,
                None => pattern.blocks(*duration) + 1,
            },
        }
    }

    /// Returns the latest time at which the client leaves, counted from its first SYN.
    #[must_use]
    pub fn deadline(&self) -> Option<Span> {
        match self {
            Video::Adaptive(session) => session.duration,
            Video::Pattern { .. } => None,
        }
    }

    /// Returns the approximate duration: the length of the clip, or the time until the client
    /// leaves if that is shorter.
    #[must_use]
    pub fn length(&self) -> Option<Span> {
        match self {
            Video::Adaptive(session) => {
                let clip = session.clip.length();
                Some(session.duration.map_or(clip, |duration| duration.min(clip)))
            }
            Video::Pattern { duration, .. } => Some(*duration),
        }
    }

    /// Returns the highest bit rate of the clip; `None` for a pattern.
    #[must_use]
    pub fn top(&self) -> Option<Rate> {
        match self {
            Video::Adaptive(session) => Some(session.clip.top()),
            Video::Pattern { .. } => None,
        }
    }
}

impl Options {
    fn read<'a>(
        parts: impl Iterator<Item = &'a str>,
        form: &dyn Fn() -> WorkloadError,
    ) -> Result<Options, WorkloadError> {
        let mut options = Options::default();
        for part in parts {
            let (key, text) = part.split_once('=').ok_or_else(form)?;
            match key.trim() {
                "abr" => options.abr = Some(adaptation(text.trim())?),
                "buffer" => options.buffer = Some(time("buffer", text)?),
                "start" => options.start = Some(time("start", text)?),
                "for" => options.duration = Some(time("for", text)?),
                "chunk" => options.chunk = Some(time("chunk", text)?),
                "spread" => options.seed = spread(text.trim(), form)?,
                _ => return Err(form()),
            }
        }
        Ok(options)
    }

    fn pattern(
        self,
        pattern: Pattern,
        form: &dyn Fn() -> WorkloadError,
    ) -> Result<Video, WorkloadError> {
        let adapts = self.abr.is_some() || self.chunk.is_some();
        if adapts || self.buffer.is_some() || self.start.is_some() {
            return Err(form());
        }
        let duration = self.duration.unwrap_or(PATTERN);
        if !pattern.fits(duration) {
            return Err(WorkloadError::TooLarge { given: pattern.name.to_owned() });
        }
        Ok(Video::Pattern { pattern, duration, seed: self.seed })
    }

    fn session(self, name: &str, clip: Clip) -> Result<Video, WorkloadError> {
        let buffer = self.buffer.unwrap_or(BUFFER);
        // If the buffer is smaller than the default start, playback starts when it is full.
        let start = self.start.unwrap_or(START.min(buffer));
        if start > buffer {
            return Err(WorkloadError::Exceeds { field: "start", limit: "buffer" });
        }
        Ok(Video::Adaptive(Session {
            source: name.into(),
            clip: Arc::new(clip),
            abr: self.abr.unwrap_or_default(),
            buffer,
            start,
            duration: self.duration,
            chunk: self.chunk,
        }))
    }
}

/// Reads a clip from a file: a manifest if it starts as XML, a size list if it starts as JSON.
/// Otherwise the extension of the name selects the format, so that the error is helpful.
fn from_file(name: &str, read: Files<'_>) -> Result<Clip, WorkloadError> {
    if !name.contains(['.', '/']) {
        let known = PATTERNS.iter().map(|pattern| pattern.name).chain([PAPER]);
        let nearest = nearest(name, known);
        return Err(WorkloadError::UnknownVideo { given: shortened(name), nearest });
    }
    let failed = |problem: &str| {
        let remedy = "name a DASH manifest (.mpd) or a size list (.json)";
        WorkloadError::File(FileError::of(name, problem, remedy))
    };
    let text = read(name).map_err(|problem| failed(&problem.to_string()))?;
    let text = text.trim_start_matches('\u{feff}');
    let named = name.to_ascii_lowercase().ends_with(".mpd");
    let clip = match text.trim_start().chars().next() {
        None => return Err(failed("the file is empty")),
        Some('<') => mpd::read(name, text),
        Some('{') => sizes::read(name, text),
        _ if named => mpd::read(name, text),
        _ => sizes::read(name, text),
    };
    clip.map_err(WorkloadError::File)
}

fn adaptation(text: &str) -> Result<Abr, WorkloadError> {
    Abr::ALL.into_iter().find(|abr| abr.name() == text).ok_or_else(|| WorkloadError::UnknownAbr {
        given: shortened(text),
        nearest: nearest(text, Abr::ALL.map(Abr::name)),
    })
}

fn spread(text: &str, form: &dyn Fn() -> WorkloadError) -> Result<Option<u64>, WorkloadError> {
    match text {
        "off" => Ok(None),
        seed => seed.parse().map(Some).map_err(|_| form()),
    }
}

/// Prints the text that `parse` reads, without options that have their default values.
impl fmt::Display for Video {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Video::Adaptive(session) => session.fmt(f),
            Video::Pattern { pattern, duration, seed } => {
                f.write_str(pattern.name)?;
                if *duration != PATTERN {
                    write!(f, ",for={duration}")?;
                }
                seed.map_or(Ok(()), |seed| write!(f, ",spread={seed}"))
            }
        }
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if self.abr != Abr::default() {
            write!(f, ",abr={}", self.abr)?;
        }
        if self.buffer != BUFFER {
            write!(f, ",buffer={}", self.buffer)?;
        }
        if self.start != START.min(self.buffer) {
            write!(f, ",start={}", self.start)?;
        }
        let times = [("for", self.duration), ("chunk", self.chunk)];
        for (key, time) in times {
            if let Some(time) = time {
                write!(f, ",{key}={time}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
