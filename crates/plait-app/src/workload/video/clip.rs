//! A clip: chunks, and the encodings of each chunk.

use plait_base::{Rate, Span};

/// Maximum number of chunks; a longer clip is an error.
pub(super) const MOST_CHUNKS: usize = 100_000;
/// Maximum number of encodings; more are an error.
pub(super) const MOST_RUNGS: usize = 64;
/// Maximum size of a chunk in bytes; a larger one is an error.
pub(super) const MOST_BYTES: u64 = 1 << 40;

/// One encoding of a clip.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rung {
    /// Mean bit rate.
    pub rate: Rate,
    /// Size of each chunk in bytes.
    sizes: Vec<u64>,
}

impl Rung {
    /// Returns the size of a chunk in bytes, or 0 after the last chunk.
    #[must_use]
    pub fn size(&self, chunk: usize) -> u64 {
        self.sizes.get(chunk).copied().unwrap_or(0)
    }
}

/// Chunks and their encodings, in order of bit rate, lowest first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clip {
    lasts: Vec<Span>,
    rungs: Vec<Rung>,
}

/// The reason why a clip is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unfit(pub(super) String);

impl Clip {
    /// Creates a clip from the playing times of its chunks, and the bit rate and sizes of each
    /// encoding.
    pub(super) fn new(
        lasts: Vec<Span>,
        mut encodings: Vec<(Rate, Vec<u64>)>,
    ) -> Result<Clip, Unfit> {
        let unfit = |text: &str| Err(Unfit(text.to_owned()));
        if lasts.is_empty() || lasts.contains(&Span::ZERO) {
            return unfit("it has no chunk with a duration");
        }
        if encodings.is_empty() {
            return unfit("it has no encoding");
        }
        if lasts.len() > MOST_CHUNKS || encodings.len() > MOST_RUNGS {
            return Err(Unfit(format!(
                "it has {} chunks in {} encodings; at most {MOST_CHUNKS} in {MOST_RUNGS} are read",
                lasts.len(),
                encodings.len()
            )));
        }
        for (rate, sizes) in &encodings {
            if *rate == Rate::ZERO || rate.is_infinite() {
                return unfit("a bit rate is zero or infinite");
            }
            if sizes.len() != lasts.len() {
                return Err(Unfit(format!(
                    "it has {} chunks and the sizes of {}",
                    lasts.len(),
                    sizes.len()
                )));
            }
            if let Some(size) = sizes.iter().find(|size| !(1..=MOST_BYTES).contains(*size)) {
                return Err(Unfit(format!("a chunk of {size} bytes: 1 to 2^40 are possible")));
            }
        }
        encodings.sort_by_key(|(rate, _)| *rate);
        let rungs = encodings.into_iter().map(|(rate, sizes)| Rung { rate, sizes }).collect();
        Ok(Clip { lasts, rungs })
    }

    /// Creates a clip of `length` with chunks of `chunk`; the last one may be shorter. The size of
    /// a chunk follows from its bit rate.
    pub(super) fn constant(length: Span, chunk: Span, rates: &[Rate]) -> Result<Clip, Unfit> {
        let lasts = even(length, chunk)?;
        let sizes = |rate: &Rate| lasts.iter().map(|lasts| rate.bytes_in(*lasts).max(1)).collect();
        let encodings = rates.iter().map(|rate| (*rate, sizes(rate))).collect();
        Clip::new(lasts, encodings)
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.lasts.len()
    }

    /// Returns the playing time of a chunk. After the end it is that of the last chunk.
    #[must_use]
    pub fn lasts(&self, chunk: usize) -> Span {
        let at = chunk.min(self.lasts.len().saturating_sub(1));
        self.lasts.get(at).copied().unwrap_or(Span::ZERO)
    }

    /// Returns the playing time of the clip.
    #[must_use]
    pub fn length(&self) -> Span {
        self.lasts.iter().fold(Span::ZERO, |sum, lasts| sum + *lasts)
    }

    /// Returns the encodings in order of bit rate, lowest first. There is at least one.
    #[must_use]
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Returns the highest bit rate.
    #[must_use]
    pub fn top(&self) -> Rate {
        self.rungs.last().map_or(Rate::ZERO, |rung| rung.rate)
    }
}

/// Cuts `length` into pieces of `chunk`; the last one may be shorter.
pub(super) fn even(length: Span, chunk: Span) -> Result<Vec<Span>, Unfit> {
    if chunk == Span::ZERO || length == Span::ZERO {
        return Err(Unfit("it has no chunk with a duration".to_owned()));
    }
    let count = length.as_nanos().div_ceil(chunk.as_nanos());
    if count > MOST_CHUNKS as u64 {
        return Err(Unfit(format!("it has {count} chunks; at most {MOST_CHUNKS} are read")));
    }
    let mut lasts = vec![chunk; count as usize];
    if let Some(last) = lasts.last_mut() {
        *last = length.minus(chunk.times(count - 1));
    }
    Ok(lasts)
}
