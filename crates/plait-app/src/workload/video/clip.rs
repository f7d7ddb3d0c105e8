//! A clip: chunks, and encodings of each.

use plait_base::{Rate, Span};

/// The most chunks of a clip.
pub(super) const MOST_CHUNKS: usize = 100_000;
/// The most encodings.
pub(super) const MOST_RUNGS: usize = 64;
/// The most bytes of a chunk.
pub(super) const MOST_BYTES: u64 = 1 << 40;

/// One encoding of a clip.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rung {
    /// Its mean bit rate.
    pub rate: Rate,
    /// Bytes of each chunk.
    sizes: Vec<u64>,
}

impl Rung {
    /// Bytes of a chunk; 0 behind the end.
    #[must_use]
    pub fn size(&self, chunk: usize) -> u64 {
        self.sizes.get(chunk).copied().unwrap_or(0)
    }
}

/// Chunks and their encodings, lowest bit rate first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clip {
    lasts: Vec<Span>,
    rungs: Vec<Rung>,
}

/// What is wrong with a clip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unfit(pub(super) String);

impl Clip {
    /// A clip whose chunks last `lasts` and whose encodings have these bit rates and sizes.
    pub(super) fn new(
        lasts: Vec<Span>,
        mut encodings: Vec<(Rate, Vec<u64>)>,
    ) -> Result<Clip, Unfit> {
        let unfit = |text: &str| Err(Unfit(text.to_owned()));
        if lasts.is_empty() || lasts.contains(&Span::ZERO) {
            return unfit("it has no chunk that lasts");
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
                return unfit("a bit rate is zero or without end");
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

    /// A clip of `length` in chunks of `chunk`, the last one shorter, each as long as its bit rate
    /// says.
    pub(super) fn constant(length: Span, chunk: Span, rates: &[Rate]) -> Result<Clip, Unfit> {
        let lasts = even(length, chunk)?;
        let sizes = |rate: &Rate| lasts.iter().map(|lasts| rate.bytes_in(*lasts).max(1)).collect();
        let encodings = rates.iter().map(|rate| (*rate, sizes(rate))).collect();
        Clip::new(lasts, encodings)
    }

    /// How many chunks there are.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.lasts.len()
    }

    /// How long a chunk lasts; one behind the end as long as the last.
    #[must_use]
    pub fn lasts(&self, chunk: usize) -> Span {
        let at = chunk.min(self.lasts.len().saturating_sub(1));
        self.lasts.get(at).copied().unwrap_or(Span::ZERO)
    }

    /// How long all of them last.
    #[must_use]
    pub fn length(&self) -> Span {
        self.lasts.iter().fold(Span::ZERO, |sum, lasts| sum + *lasts)
    }

    /// The encodings, lowest bit rate first; at least one.
    #[must_use]
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The highest bit rate.
    #[must_use]
    pub fn top(&self) -> Rate {
        self.rungs.last().map_or(Rate::ZERO, |rung| rung.rate)
    }
}

/// `length` cut into pieces of `chunk`, the last one shorter.
pub(super) fn even(length: Span, chunk: Span) -> Result<Vec<Span>, Unfit> {
    if chunk == Span::ZERO || length == Span::ZERO {
        return Err(Unfit("it has no chunk that lasts".to_owned()));
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
