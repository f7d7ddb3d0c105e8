//! Reads a clip from a static DASH manifest (ISO/IEC 23009-1) with templates, lists or timelines.
//!
//! The reader takes the playing times of chunks and the bit rates. If a list has byte ranges, they
//! are the sizes of the chunks. Otherwise the sizes follow from the bit rate.

use super::clip::{Clip, MOST_CHUNKS, MOST_RUNGS, Unfit, even};
use super::source::FileError;
use super::xml;
use crate::quantity::Binary;
use plait_base::{Rate, Span};
use roxmltree::{Document, Node, ParsingOptions};

/// Maximum size of a manifest (16 MiB).
const MOST_BYTES: u64 = 16 << 20;
/// Maximum number of nodes of a manifest.
const MOST_NODES: u32 = 2_000_000;

/// Reads the manifest called `file`.
///
/// # Errors
/// Returns an error if the text is not XML, not a static manifest, has no video representation, or
/// lacks data about its chunks. The error has the place and a remedy.
pub(super) fn read(file: &str, text: &str) -> Result<Clip, FileError> {
    let smaller = "name a smaller manifest";
    if text.len() as u64 > MOST_BYTES {
        let problem = format!("it is larger than {}, the limit of a manifest", Binary(MOST_BYTES));
        return Err(FileError::of(file, &problem, smaller));
    }
    xml::check(text).map_err(|excess| {
        let (row, column) = position(text, excess.at);
        FileError::at(file, row, column, &format!("{excess}, the limit"), smaller)
    })?;
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        FileError::at(
            file,
            at.row,
            at.col,
            &format!("no XML: {error}"),
            "name an MPD, or a size list",
        )
    })?;
    Manifest { file, document: &document }.clip()
}

/// Returns row and column of a byte, counted from 1.
fn position(text: &str, at: usize) -> (u32, u32) {
    let before = text.get(..at).unwrap_or(text);
    let row = before.matches('\n').count() + 1;
    let line = before.rsplit('\n').next().unwrap_or_default();
    (row as u32, line.chars().count() as u32 + 1)
}

/// A node, and its children that define the duration of segments.
struct Level<'a> {
    node: Node<'a, 'a>,
    segments: Vec<Node<'a, 'a>>,
}

impl<'a> Level<'a> {
    fn of(node: Node<'a, 'a>) -> Level<'a> {
        let kinds = ["SegmentTemplate", "SegmentList"];
        let segments = node.children().filter(|it| kinds.contains(&it.tag_name().name()));
        Level { node, segments: segments.collect() }
    }

    fn list(&self) -> Option<Node<'a, 'a>> {
        self.segments.iter().find(|it| it.tag_name().name() == "SegmentList").copied()
    }
}

/// A representation, its adaptation set and its period. Each inherits attributes from the later
/// ones.
type Levels<'b, 'a> = [&'b Level<'a>; 3];

struct Manifest<'a> {
    file: &'a str,
    document: &'a Document<'a>,
}

/// One representation in one period.
struct Encoding {
    rate: Rate,
    lasts: Vec<Span>,
    sizes: Vec<u64>,
}

type Read<T> = Result<T, FileError>;

impl<'a> Manifest<'a> {
    fn wrong<T>(&self, node: Node<'_, '_>, problem: &str, remedy: &str) -> Read<T> {
        let at = self.document.text_pos_at(node.range().start);
        Err(FileError::at(self.file, at.row, at.col, problem, remedy))
    }

    fn clip(&self) -> Read<Clip> {
        let root = self.document.root_element();
        if root.tag_name().name() != "MPD" {
            let problem = format!("the root is <{}>, not <MPD>", root.tag_name().name());
            return self.wrong(root, &problem, "name a DASH manifest");
        }
        if root.attribute("type") == Some("dynamic") {
            let remedy = "name a manifest of type=\"static\"";
            return self.wrong(root, "a live stream has no last chunk", remedy);
        }
        let periods: Vec<Node<'a, 'a>> = children(root, "Period").collect();
        if periods.is_empty() {
            return self.wrong(root, "<MPD> has no <Period>", "add a Period with an AdaptationSet");
        }
        let mut whole: Vec<Encoding> = Vec::new();
        let mut lasts: Vec<Span> = Vec::new();
        for (index, period) in periods.iter().enumerate() {
            let length = self.length(root, &periods, index)?;
            let mut encodings = self.encodings(*period, length)?;
            encodings.sort_by_key(|encoding| encoding.rate);
            lasts.extend(self.common(*period, &encodings)?);
            if lasts.len() > MOST_CHUNKS {
                return self.wrong(*period, &too_many_chunks(), "name a shorter clip");
            }
            let rates = |list: &[Encoding]| list.iter().map(|it| it.rate).collect::<Vec<_>>();
            if index == 0 {
                whole = encodings;
            } else if rates(&whole) != rates(&encodings) {
                let remedy = "name a manifest whose periods have the same bandwidths";
                return self.wrong(*period, "this Period has other bandwidths", remedy);
            } else {
                for (all, more) in whole.iter_mut().zip(encodings) {
                    all.sizes.extend(more.sizes);
                }
            }
        }
        let encodings = whole.into_iter().map(|it| (it.rate, it.sizes)).collect();
        Clip::new(lasts, encodings).or_else(|Unfit(problem)| {
            self.wrong(root, &problem, "name a clip with chunks of one byte and more")
        })
    }

    /// Returns the duration of a period, if the manifest defines it.
    fn length(
        &self,
        root: Node<'_, '_>,
        periods: &[Node<'_, '_>],
        at: usize,
    ) -> Read<Option<Span>> {
        if let Some(own) = self.time(periods[at], "duration")? {
            return Ok(Some(own));
        }
        let start = |at: usize| match periods.get(at) {
            Some(period) => self.time(*period, "start"),
            None => self.time(root, "mediaPresentationDuration"),
        };
        let begins = if at == 0 { Some(start(0)?.unwrap_or(Span::ZERO)) } else { start(at)? };
        Ok(begins.zip(start(at + 1)?).map(|(begin, end)| end.minus(begin)))
    }

    /// Returns the representations of the video of a period. It uses the first adaptation set
    /// marked as video; if there is none, the first one not marked as another type.
    fn encodings(&self, period: Node<'a, 'a>, length: Option<Span>) -> Read<Vec<Encoding>> {
        let sets: Vec<Node<'a, 'a>> = children(period, "AdaptationSet").collect();
        let video = sets.iter().find(|set| is_video(**set));
        let Some(set) = video.or_else(|| sets.iter().find(|set| !is_other(**set))).copied() else {
            if let Some(first) = sets.first() {
                let problem = "no AdaptationSet of its Period is video: all say that they are \
                               audio, text or image";
                let remedy = "name a manifest with video (mimeType=\"video/mp4\")";
                return self.wrong(*first, problem, remedy);
            }
            let remedy = "add an AdaptationSet with a Representation";
            return self.wrong(period, "<Period> has no <AdaptationSet>", remedy);
        };
        let list: Vec<Node<'a, 'a>> =
            children(set, "Representation").take(MOST_RUNGS + 1).collect();
        if let Some(beyond) = list.get(MOST_RUNGS) {
            let problem = format!("more than {MOST_RUNGS} representations, the limit");
            return self.wrong(*beyond, &problem, "name a manifest with fewer");
        }
        if list.is_empty() {
            let remedy = "add <Representation bandwidth=\"...\"> for each encoding";
            return self.wrong(set, "the AdaptationSet has no <Representation>", remedy);
        }
        let (set, period) = (Level::of(set), Level::of(period));
        let encoding = |it| self.encoding([&Level::of(it), &set, &period], length);
        list.into_iter().map(encoding).collect()
    }

    /// Reads one representation; `levels` are the representation and the nodes that it inherits
    /// from.
    fn encoding(&self, levels: Levels<'_, '_>, length: Option<Span>) -> Read<Encoding> {
        let own = levels[0].node;
        let bandwidth = own.attribute("bandwidth").and_then(|text| text.trim().parse().ok());
        let Some(bps) = bandwidth.filter(|bps| *bps > 0) else {
            let remedy = "give its mean bit rate: bandwidth=\"1000000\"";
            return self.wrong(own, "the Representation has no usable bandwidth", remedy);
        };
        let rate = Rate::from_bps(bps);
        let lasts = self.chunks(levels, length)?;
        let sizes = match self.ranges(levels)? {
            Some(sizes) if sizes.len() == lasts.len() => sizes,
            Some(sizes) => {
                let problem = format!("{} chunks, and byte ranges of {}", lasts.len(), sizes.len());
                return self.wrong(own, &problem, "give one SegmentURL for each chunk");
            }
            None => lasts.iter().map(|lasts| rate.bytes_in(*lasts).max(1)).collect(),
        };
        Ok(Encoding { rate, lasts, sizes })
    }

    /// Returns the playing time of each chunk.
    fn chunks(&self, levels: Levels<'_, '_>, length: Option<Span>) -> Read<Vec<Span>> {
        let own = levels[0].node;
        // The attribute of the nearest level applies.
        let attribute = |name: &str| {
            let mut segments = levels.iter().flat_map(|level| &level.segments);
            segments.find_map(|it| it.attribute(name).map(|text| (*it, text)))
        };
        let number = |name: &str| match attribute(name) {
            None => Ok(None),
            Some((node, text)) => match text.trim().parse::<u64>().ok().filter(|it| *it > 0) {
                Some(number) => Ok(Some(number)),
                None => {
                    let problem = format!("{name}=\"{}\" is not a number above zero", short(text));
                    self.wrong(node, &problem, "give a whole number")
                }
            },
        };
        let scale = number("timescale")?.unwrap_or(1);
        let mut segments = levels.iter().flat_map(|level| &level.segments);
        let timeline = segments.find_map(|it| children(*it, "SegmentTimeline").next());
        if let Some(timeline) = timeline {
            return self.timeline(timeline, scale, length);
        }
        let Some(ticks) = number("duration")? else {
            let remedy = "add a SegmentTemplate or SegmentList with duration and timescale, or name \
                          a size list";
            return self.wrong(own, "the duration of its chunks is missing", remedy);
        };
        let chunk = in_time(ticks, scale);
        let list = levels.iter().find_map(|level| level.list());
        let urls = list.map_or(0, |list| children(list, "SegmentURL").count() as u64);
        let length = length.or_else(|| (urls > 0).then(|| chunk.times(urls)));
        let Some(length) = length else {
            let remedy = "give mediaPresentationDuration, or the Period's duration";
            return self.wrong(own, "the length of the clip is missing", remedy);
        };
        even(length, chunk).or_else(|Unfit(problem)| {
            self.wrong(own, &problem, "give chunks with a duration, and a length that they fit")
        })
    }

    /// Returns the durations of a timeline. `d` is repeated `r` more times, or until the end if `r`
    /// is negative.
    fn timeline(&self, line: Node<'_, '_>, scale: u64, length: Option<Span>) -> Read<Vec<Span>> {
        let mut lasts: Vec<Span> = Vec::new();
        let mut total = Span::ZERO;
        for entry in children(line, "S") {
            let number = |name: &str| entry.attribute(name).map(|text| text.trim().parse::<i64>());
            let (ticks, repeat) = match (number("d"), number("r")) {
                (Some(Ok(ticks)), None) if ticks > 0 => (ticks, 0),
                (Some(Ok(ticks)), Some(Ok(repeat))) if ticks > 0 => (ticks, repeat),
                _ => return self.wrong(entry, "<S> has no usable d, or r", "give d=\"...\""),
            };
            let chunk = in_time(ticks.unsigned_abs(), scale);
            let left = length.unwrap_or(total).minus(total).as_nanos();
            let count = match u64::try_from(repeat) {
                Ok(more) => more.saturating_add(1),
                Err(_) => left.div_ceil(chunk.as_nanos().max(1)),
            };
            if lasts.len() as u64 + count.min(1 << 32) > MOST_CHUNKS as u64 {
                return self.wrong(entry, &too_many_chunks(), "name a shorter clip");
            }
            lasts.extend((0..count).map(|_| chunk));
            total += chunk.times(count);
        }
        if lasts.is_empty() {
            let remedy = "add <S d=\"...\"/> for its chunks";
            return self.wrong(line, "the SegmentTimeline has no chunk", remedy);
        }
        Ok(lasts)
    }

    /// Returns the size of each chunk in bytes, if a list has a byte range for each.
    fn ranges(&self, levels: Levels<'_, '_>) -> Read<Option<Vec<u64>>> {
        // Ranges apply to one representation. A list at a higher level would give all of them the
        // same sizes.
        let Some(list) = levels[0].list() else { return Ok(None) };
        let mut sizes = Vec::new();
        for url in children(list, "SegmentURL") {
            let Some(range) = url.attribute("mediaRange") else { return Ok(None) };
            let ends = range.split_once('-').and_then(|(first, last)| {
                let ends = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
                (ends.0 <= ends.1).then_some(ends)
            });
            let Some((first, last)) = ends else {
                let problem = format!("mediaRange=\"{}\" is not a range of bytes", short(range));
                return self.wrong(url, &problem, "give mediaRange=\"FIRST-LAST\"");
            };
            sizes.push((last - first).saturating_add(1));
        }
        Ok((!sizes.is_empty()).then_some(sizes))
    }

    /// Returns the playing times of the chunks, which all representations must share.
    fn common(&self, period: Node<'_, '_>, encodings: &[Encoding]) -> Read<Vec<Span>> {
        let first = encodings.first().map(|it| it.lasts.clone()).unwrap_or_default();
        if encodings.iter().any(|it| it.lasts != first) {
            let remedy = "name a manifest whose representations are cut at the same times";
            return self.wrong(period, "its representations have different chunks", remedy);
        }
        Ok(first)
    }

    fn time(&self, node: Node<'_, '_>, name: &str) -> Read<Option<Span>> {
        let Some(text) = node.attribute(name) else { return Ok(None) };
        match iso_8601(text.trim()) {
            Ok(time) => Ok(Some(time)),
            Err(Unread::Form) => {
                let problem = format!("{name}=\"{}\" is not a duration", short(text));
                self.wrong(node, &problem, "write it as PT22M12S")
            }
            Err(Unread::Calendar) => {
                let problem = format!(
                    "{name}=\"{}\" has years or months, whose length is not fixed",
                    short(text)
                );
                self.wrong(node, &problem, "write it in days, hours, minutes and seconds: P31DT2H")
            }
        }
    }
}

fn children<'a>(node: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |it| it.tag_name().name() == name)
}

/// Returns whether a set, its components or its representations are marked as video. A width alone
/// is enough unless the set is marked as another type: thumbnails have a width too.
fn is_video(set: Node<'_, '_>) -> bool {
    says(set, &["video"]) || !is_other(set) && descends(set).any(|it| it.has_attribute("width"))
}

/// Returns whether the set is marked as a type other than video.
fn is_other(set: Node<'_, '_>) -> bool {
    says(set, &["audio", "text", "image"])
}

fn says(set: Node<'_, '_>, kinds: &[&str]) -> bool {
    let is = |text: &str| {
        let kind = text.trim().split('/').next().unwrap_or_default();
        kinds.iter().any(|it| it.eq_ignore_ascii_case(kind))
    };
    descends(set).any(|node| {
        ["contentType", "mimeType"].iter().any(|name| node.attribute(*name).is_some_and(is))
    })
}

/// Returns the message about a clip with too many chunks.
fn too_many_chunks() -> String {
    format!("more than {MOST_CHUNKS} chunks, the limit")
}

/// Returns a set and its children.
fn descends<'a>(set: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    core::iter::once(set).chain(set.children())
}

/// Converts `ticks` to a time; one second has `scale` ticks.
fn in_time(ticks: u64, scale: u64) -> Span {
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(scale.max(1));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The reason why a duration is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unread {
    /// The text is not a duration.
    Form,
    /// The duration has years or months, whose length is not fixed.
    Calendar,
}

/// Reads a duration of XML Schema (2, 3.2.6): `PT1H22M12.5S`, `P1DT2H`, `P0Y0M0DT0H1M0.000S`. Days
/// have 24 hours.
fn iso_8601(text: &str) -> Result<Span, Unread> {
    let text = text.strip_prefix('P').ok_or(Unread::Form)?;
    let (date, time) = text.split_once('T').unwrap_or((text, ""));
    let mut calendar = false;
    let mut nanos: u128 = 0;
    let mut rest = date;
    for unit in ['Y', 'M', 'D'] {
        let Some((number, behind)) = rest.split_once(unit) else { continue };
        let count = decimal(number).filter(|_| !number.contains('.')).ok_or(Unread::Form)?;
        match unit {
            'D' => nanos += count * 86_400,
            _ => calendar |= count > 0,
        }
        rest = behind;
    }
    let mut left = time;
    for (unit, seconds) in [('H', 3_600u128), ('M', 60), ('S', 1)] {
        let Some((number, behind)) = left.split_once(unit) else { continue };
        nanos += decimal(number).ok_or(Unread::Form)? * seconds;
        left = behind;
    }
    if date.is_empty() && time.is_empty() || !rest.is_empty() || !left.is_empty() {
        return Err(Unread::Form);
    }
    if calendar {
        return Err(Unread::Calendar);
    }
    u64::try_from(nanos).map(Span::from_nanos).map_err(|_| Unread::Form)
}

/// Converts a decimal number of seconds to nanoseconds.
fn decimal(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let nanos: String = part.chars().chain("000000000".chars()).take(9).collect();
    Some(whole.parse::<u128>().ok()? * 1_000_000_000 + nanos.parse::<u128>().ok()?)
}

/// Returns at most 40 characters of a text.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
#[path = "mpd_tests.rs"]
mod tests;
