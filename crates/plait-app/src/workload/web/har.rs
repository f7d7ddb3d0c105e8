//! Reads pages from HTTP archives (HAR 1.2) that browsers export.

use super::page::{After, Builder, MOST_ACTIVITIES, Page};
use crate::file::Bounded;
use plait_base::Span;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Longest time that one entry may take, and latest start of an entry; a longer time is an error.
const MAX_TIME: Span = Span::from_secs(3_600);
/// Schemes that use no network. Schemes of extensions, such as `chrome-extension`, are checked
/// separately.
const LOCAL: [&str; 7] = ["about", "blob", "chrome", "data", "file", "javascript", "resource"];

#[derive(Deserialize)]
#[serde(expecting = "an object with `log`")]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `entries`")]
struct Log {
    entries: Bounded<Entry, MOST_ACTIVITIES>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object with `startedDateTime`, `time`, `request` and `response`")]
struct Entry {
    started_date_time: String,
    time: f64,
    request: Request,
    response: Response,
    /// The origin of the request, an extension of browsers.
    #[serde(default, rename = "_initiator")]
    initiator: Option<Initiator>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `url`")]
struct Request {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object with `bodySize` and `content`")]
struct Response {
    /// Size on the wire; -1 if unknown.
    #[serde(default)]
    body_size: i64,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "an object with `size`")]
struct Content {
    #[serde(default)]
    size: i64,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`_initiator` is a URL, or an object with one as `url`")]
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

/// Start and end of an entry, counted from the first start.
#[derive(Clone, Copy)]
struct Times {
    start: Span,
    end: Span,
}

/// Reads an archive. Each entry depends on one earlier entry, with the delay of the recording. It
/// is the initiator if the archive has one; otherwise the last entry that had ended before this one
/// started. If no entry had ended, it is the first entry, by its start.
///
/// # Errors
/// Returns an error if the text is not an archive, has no entries that used a network, or has
/// impossible times.
pub(super) fn read(text: &str) -> Result<Page, String> {
    let archive: Archive = serde_json::from_str(text).map_err(|error| {
        format!("not a HAR 1.2 file: {error}; it has `log.entries`, as browsers export them")
    })?;
    let recorded = archive.log.entries.0.len();
    // Errors state the number of an entry in the file.
    let used = archive.log.entries.0.into_iter().enumerate();
    let used = used.filter(|(_, entry)| !is_local(&entry.request.url));
    let (numbers, entries): (Vec<usize>, Vec<Entry>) = used.unzip();
    if entries.is_empty() {
        let what = match recorded {
            0 => "`log.entries` is empty",
            _ => "`log.entries` has only URLs that use no network (`data:`, `blob:` and the like)",
        };
        return Err(format!("{what}; record the page again with the network panel open"));
    }
    let times = times(&numbers, &entries)?;
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|entry| times[*entry].start);
    graph(&entries, &order, &times)
}

/// Returns the start and end of each entry; `numbers` are their positions in the file.
fn times(numbers: &[usize], entries: &[Entry]) -> Result<Vec<Times>, String> {
    let mut starts = Vec::with_capacity(entries.len());
    for (number, entry) in numbers.iter().zip(entries) {
        let what = &entry.started_date_time;
        let start = instant(what).ok_or_else(|| {
            format!("entry {number}: startedDateTime `{}` is not an ISO 8601 time, such as 2013-10-21T16:00:00.123Z",
                crate::quantity::shortened(what))
        })?;
        starts.push((start, *number));
    }
    let (first, earliest) = starts.iter().min().copied().unwrap_or_default();
    let mut times = Vec::with_capacity(entries.len());
    for ((start, number), entry) in starts.into_iter().zip(entries) {
        let start = Span::from_nanos((start - first).clamp(0, i64::MAX.into()) as u64);
        if start > MAX_TIME {
            return Err(format!(
                "entry {number}: startedDateTime is {:.0} s after that of entry {earliest}, the \
                 earliest; keep the entries of one load, within {:.0} s",
                start.as_secs_f64(),
                MAX_TIME.as_secs_f64()
            ));
        }
        let took = took(number, entry.time)?;
        times.push(Times { start, end: start + took });
    }
    Ok(times)
}

/// Returns the duration of an entry from its `time` in milliseconds.
fn took(number: usize, millis: f64) -> Result<Span, String> {
    // -1 means "not applicable", as in the entry's `timings`.
    let millis = if millis == -1.0 { 0.0 } else { millis };
    if (0.0..=MAX_TIME.as_millis_f64()).contains(&millis) {
        return Ok(Span::from_nanos((millis * 1e6) as u64));
    }
    Err(format!(
        "entry {number}: time is {} ms; give one from 0 to {} or -1 (not applicable), or remove \
         the entry",
        crate::quantity::shortened(&millis.to_string()),
        MAX_TIME.as_millis_f64()
    ))
}

/// Returns whether the URL never uses a network. Browsers export such entries too.
fn is_local(url: &str) -> bool {
    let Some((scheme, _)) = url.trim_start().split_once(':') else { return false };
    let scheme = scheme.to_ascii_lowercase();
    LOCAL.contains(&scheme.as_str()) || scheme.ends_with("-extension")
}

fn graph(entries: &[Entry], order: &[usize], times: &[Times]) -> Result<Page, String> {
    let mut page = Builder::default();
    let mut by_url: BTreeMap<&str, usize> = BTreeMap::new();
    // The activity of each entry. Entries are added in the order of their starts.
    let mut activities = vec![0; entries.len()];
    // Entries added so far, by their end.
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

/// Returns nanoseconds since 1970 of `2013-10-21T16:00:00.123Z` or `...+02:00`.
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
    // Days since 1970 in the Gregorian calendar. Years start in March.
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
    fn entries_that_used_no_network_are_left_out() {
        let read = |urls: &[&str]| {
            let entry = |(at, url): (usize, &&str)| entry(url, &format!("{at}.000"), 10, 1000, "");
            let entries: Vec<String> = urls.iter().enumerate().map(entry).collect();
            read(&format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(",")))
        };
        let page = read(&["data:,a", "https://h/", "Blob:https://h/1", "wss://h/s", "h:8080"]);
        let page = page.unwrap();
        assert_eq!((page.objects(), page.bytes()), (3, 3000));
        // The page starts with the first remaining entry.
        assert_eq!(page.activities[0].then, [(1, After::End(Span::from_millis(1990)))]);
        let local = ["data:image/png;base64,AA", "about:blank", "chrome-extension://x/y"];
        let error = read(&local).unwrap_err();
        assert!(error.contains("only URLs that use no network") && error.contains("record the"));
    }

    #[test]
    fn times_that_cannot_be_are_refused_with_entry_and_field() {
        let read = |start: &str, time: &str| {
            let last = entry("/b", "1.000", 0, 1000, "");
            let last = last.replace("2024-01-01T00:00:01.000Z", start).replace("\"time\":0", time);
            // The first entry is ignored, but counts in the numbers of errors.
            let entries = [entry("data:,", "0.000", 0, 1, ""), entry("/", "0.000", 9, 9, ""), last];
            read(&format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(",")))
        };
        let near = "2024-01-01T00:00:01Z";
        for time in ["-1", "-1.0", "0", "3600000"] {
            assert!(read(near, &format!("\"time\":{time}")).is_ok(), "{time}");
        }
        for time in ["-5", "-0.5", "3600001", "1e300"] {
            let error = read(near, &format!("\"time\":{time}")).unwrap_err();
            assert!(error.starts_with("entry 2: time is "), "{error}");
            assert!(
                error.ends_with(
                    "ms; give one from 0 to 3600000 or -1 (not applicable), or remove the entry"
                ),
                "{error}"
            );
        }
        for (start, late, earliest, seconds) in
            [("2030-01-01T00:00:00Z", 2, 1, 189_388_800), ("2023-12-31T22:59:59Z", 1, 2, 3_601)]
        {
            assert_eq!(
                read(start, "\"time\":0").unwrap_err(),
                format!(
                    "entry {late}: startedDateTime is {seconds} s after that of entry {earliest}, the earliest; keep the entries of one load, within 3600 s"
                )
            );
        }
    }

    #[test]
    fn an_archive_without_entries_is_refused() {
        let error = read(r#"{"log":{"entries":[]}}"#).unwrap_err();
        assert!(error.starts_with("`log.entries` is empty"), "{error}");
        let error = read(r#"{"log":{}}"#).unwrap_err();
        assert!(error.contains("missing field `entries` at line 1 column"), "{error}");
        for (file, expected) in [
            (r#"{"log":5}"#, "integer `5`, expected an object with `entries` at line 1 column 8"),
            (r#"{"log":{"entries":{}}}"#, "invalid type: map, expected a sequence at line 1"),
            (r#"{"log":{"entries":[5]}}"#, "expected an object with `startedDateTime`, `time`, "),
        ] {
            let error = read(file).unwrap_err();
            assert!(error.contains(expected) && error.contains("it has `log.entries`"), "{error}");
        }
        let strange = entry("/", "0.000", 0, 1, r#","_initiator":5"#);
        let error = read(&format!(r#"{{"log":{{"entries":[{strange}]}}}}"#)).unwrap_err();
        assert!(error.contains("`_initiator` is a URL, or an object with one"), "{error}");
    }
}
