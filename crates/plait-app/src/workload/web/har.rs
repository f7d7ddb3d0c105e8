//! Pages from HTTP archives (HAR 1.2), as browsers export them.

use super::page::{After, Builder, Page};
use plait_base::Span;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The longest that one entry may take or wait.
const LONGEST: Span = Span::from_secs(3_600);

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: String,
    time: f64,
    request: Request,
    response: Response,
    /// What browsers add: who asked for it.
    #[serde(default, rename = "_initiator")]
    initiator: Option<Initiator>,
}

#[derive(Deserialize)]
struct Request {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// As on the wire; -1 where nobody knows.
    #[serde(default)]
    body_size: i64,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    size: i64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Initiator {
    Url(String),
    Told {
        #[serde(default)]
        url: Option<String>,
    },
}

impl Initiator {
    fn url(&self) -> Option<&str> {
        match self {
            Initiator::Url(url) => Some(url),
            Initiator::Told { url } => url.as_deref(),
        }
    }
}

/// When an entry was asked for and had come, in time since the first.
#[derive(Clone, Copy)]
struct Times {
    start: Span,
    end: Span,
}

/// Reads an archive. Each entry waits for another one, as long as it did in the recording: for the
/// one that asked for it, where the archive says so, otherwise for the one that had come last before
/// it was asked for; an entry that was asked for before anything had come follows the first's start.
///
/// # Errors
/// Where it is no such archive, or has no entries.
pub(super) fn read(text: &str) -> Result<Page, String> {
    let archive: Archive = serde_json::from_str(text).map_err(|error| {
        format!("not a HAR 1.2 file: {error}; it has `log.entries`, as browsers export them")
    })?;
    let mut entries = archive.log.entries;
    if entries.is_empty() {
        return Err(
            "`log.entries` is empty; record the page again with the network panel open".to_owned()
        );
    }
    let mut starts = Vec::with_capacity(entries.len());
    for (number, entry) in entries.iter().enumerate() {
        let what = &entry.started_date_time;
        let start = instant(what).ok_or_else(|| {
            format!("entry {number}: startedDateTime `{}` is no ISO 8601 time, such as 2013-10-21T16:00:00.123Z",
                crate::quantity::shortened(what))
        })?;
        starts.push(start);
    }
    let first = starts.iter().min().copied().unwrap_or_default();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|entry| starts[*entry]);
    let mut times = Vec::with_capacity(entries.len());
    for (number, entry) in entries.iter_mut().enumerate() {
        let start = Span::from_nanos((starts[number] - first).clamp(0, i64::MAX.into()) as u64);
        let took = Span::from_nanos((entry.time.max(0.0) * 1e6) as u64);
        if start > LONGEST || took > LONGEST {
            return Err(format!(
                "entry {number}: more than {LONGEST:?} after the first, or as long"
            ));
        }
        times.push(Times { start, end: start + took });
    }
    graph(&entries, &order, &times)
}

fn graph(entries: &[Entry], order: &[usize], times: &[Times]) -> Result<Page, String> {
    let mut page = Builder::default();
    let mut by_url: BTreeMap<&str, usize> = BTreeMap::new();
    // In the order of their starts: activities, and what each entry is.
    let mut activities = vec![0; entries.len()];
    // Those that have come, by their end.
    let mut come: BTreeMap<Span, usize> = BTreeMap::new();
    for (place, entry) in order.iter().enumerate() {
        let (it, Times { start, end }) = (&entries[*entry], times[*entry]);
        let size = [it.response.body_size, it.response.content.size];
        let size = size.into_iter().find(|size| *size > 0).unwrap_or(0) as u64;
        let activity = page.fetch(&it.request.url, size);
        activities[*entry] = activity;
        let asked_by = it.initiator.as_ref().and_then(Initiator::url);
        let asked_by = asked_by.and_then(|url| by_url.get(url)).copied();
        let before = asked_by.or_else(|| come.range(..=start).next_back().map(|(_, it)| *it));
        if place > 0 {
            let before = before.unwrap_or(order[0]);
            let after = match start >= times[before].end {
                true => After::End(start.minus(times[before].end)),
                false => After::Start(start.minus(times[before].start)),
            };
            page.wait(activities[before], after, activity);
        }
        by_url.entry(it.request.url.as_str()).or_insert(*entry);
        come.entry(end).or_insert(*entry);
    }
    page.build()
}

/// Nanoseconds since 1970 of `2013-10-21T16:00:00.123Z` or `...+02:00`.
fn instant(text: &str) -> Option<i128> {
    let number = |part: &str| -> Option<i128> {
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    };
    let (date, rest) = text.split_once('T')?;
    let mut parts = date.splitn(3, '-');
    let (year, month, day) =
        (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    let zone = rest.find(['Z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(zone)?;
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next()?;
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let seconds = number(seconds)?;
    let in_range = (1..=9_999).contains(&year) && (1..=12).contains(&month);
    if !in_range || !(1..=31).contains(&day) || hour > 24 || minute > 59 || seconds > 60 {
        return None;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos = number(&digits)?;
    let offset = match zone.split_at_checked(1)? {
        ("Z", "") => 0,
        (sign, offset) => {
            let offset: String = offset.chars().filter(|char| *char != ':').collect();
            if offset.len() != 4 {
                return None;
            }
            let minutes = number(offset.get(..2)?)? * 60 + number(offset.get(2..)?)?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + seconds) * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_read() {
        assert_eq!(instant("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(instant("2013-10-21T16:00:00.123Z"), Some(1_382_371_200_123_000_000));
        assert_eq!(instant("2013-10-21T18:00:00.123+02:00"), Some(1_382_371_200_123_000_000));
        assert_eq!(instant("2000-02-29T23:30:00-0130"), Some(951_872_400_000_000_000));
        for wrong in
            ["", "2013-10-21", "2013-10-21T16:00Z", "2013-13-01T00:00:00Z", "T::Z", "a-b-cTd:e:fZ"]
        {
            assert_eq!(instant(wrong), None, "{wrong}");
        }
    }

    fn entry(url: &str, start: &str, time: u64, size: i64, more: &str) -> String {
        format!(
            r#"{{"startedDateTime":"2024-01-01T00:00:0{start}Z","time":{time},
            "request":{{"url":"{url}"}},"response":{{"bodySize":{size},"content":{{"size":77}}}}{more}}}"#
        )
    }

    #[test]
    fn entries_wait_for_what_asked_for_them_or_had_come_before() {
        let entries = [
            entry("/late", "1.000", 100, -1, ""),
            entry("/", "0.000", 200, 1000, ""),
            entry("/a.css", "0.300", 100, 500, ""),
            entry("/font", "0.450", 50, 400, r#","_initiator":{"type":"css","url":"/"}"#),
            entry("/early", "0.100", 500, 300, ""),
        ];
        let page = read(&format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","))).unwrap();
        assert_eq!((page.objects(), page.bytes()), (5, 77 + 1000 + 500 + 400 + 300));
        // In the order of their starts: /, /early, /a.css, /font, /late.
        let waits = |activity: usize| page.activities[activity].then.clone();
        let ms = Span::from_millis;
        assert_eq!(
            waits(0),
            [(1, After::Start(ms(100))), (2, After::End(ms(100))), (3, After::End(ms(250)))]
        );
        assert_eq!(waits(1), [(4, After::End(ms(400)))]);
        assert!((2..5).all(|activity| waits(activity).is_empty()));
    }

    #[test]
    fn an_archive_without_entries_is_refused() {
        let error = read(r#"{"log":{"entries":[]}}"#).unwrap_err();
        assert!(error.starts_with("`log.entries` is empty"), "{error}");
        let error = read(r#"{"log":{}}"#).unwrap_err();
        assert!(error.contains("missing field `entries` at line 1 column"), "{error}");
    }
}
