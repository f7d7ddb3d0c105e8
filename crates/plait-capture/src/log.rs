//! The qlog files of plait: JSON records with the headers of packets, and the state of the sender.

use crate::held::{Change, Held};
use crate::packet::{PacketReader, RAW_IP, Seen, Unread};
use crate::source::{Broken, Frame};
use serde::Deserialize;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

/// Largest record in bytes.
const MAX_RECORD: u64 = 1 << 20;
/// Each record of the sequential form begins with this byte (RFC 7464).
const RECORD: u8 = 0x1e;
/// Largest number of paths with a name.
const MAX_PATHS: usize = 4_096;

/// The bytes with which a qlog begins, with and without the byte of the sequential form.
const LOGS: [&[u8]; 3] = [b"\x1e{", b"{\"file_s", b"{\"qlog_v"];

/// Returns true if a file that begins with these bytes is a qlog.
pub(crate) fn is_log(head: &[u8]) -> bool {
    LOGS.iter().any(|begin| head.starts_with(begin))
}

#[derive(Deserialize)]
struct Record<'a> {
    time: Option<f64>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    group_id: Option<String>,
    #[serde(borrow, default)]
    data: Data<'a>,
    trace: Option<Trace>,
}

#[derive(Deserialize, Default)]
struct Data<'a> {
    #[serde(borrow)]
    raw: Option<Raw<'a>>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    cause: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Raw<'a> {
    length: u32,
    #[serde(borrow)]
    data: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Trace {
    vantage_point: Vantage,
}

#[derive(Deserialize)]
struct Vantage {
    #[serde(rename = "type")]
    kind: String,
}

/// A record that counts.
pub(crate) enum Entry {
    Packet(Result<Box<Seen>, Unread>),
    Change { number: u64, at_ns: i64, group: Option<String>, change: Change },
}

/// A qlog that is being read.
pub(crate) struct LogSource {
    input: BufReader<Box<dyn Read + Send>>,
    /// Number of lines so far.
    lines: u64,
    packets: u64,
    /// The end whose view it is.
    side: usize,
    /// Names of the paths; a packet's interface is the index of its path.
    paths: Vec<String>,
    line: Vec<u8>,
    /// Headers of a packet.
    bytes: Vec<u8>,
}

impl LogSource {
    /// Opens a qlog and reads its first record.
    ///
    /// # Errors
    /// If the first record is not that of a qlog in sequential form. [`Broken::packet`] is then zero.
    pub(crate) fn open(input: impl Read + Send + 'static) -> Result<LogSource, Broken> {
        let mut log = LogSource {
            input: BufReader::new(Box::new(input)),
            lines: 0,
            packets: 0,
            side: 1,
            paths: Vec::new(),
            line: Vec::new(),
            bytes: Vec::new(),
        };
        let refused = |problem: String| Broken { packet: 0, problem };
        let trace = match log.read_line().map_err(|broken| refused(broken.problem))? {
            false => None,
            true => {
                serde_json::from_slice::<Record<'_>>(json(&log.line)).ok().and_then(|it| it.trace)
            }
        };
        let Some(trace) = trace else {
            return Err(refused(
                "it is not a qlog in sequential form\n  allowed: a file of `plait run --qlog FILE`, or of \
                 `--qlog` of `plait serve`, `get` and `proxy`"
                    .to_owned(),
            ));
        };
        log.side = usize::from(trace.vantage_point.kind != "client");
        Ok(log)
    }

    /// Returns the number of packets so far.
    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the name of a path.
    pub(crate) fn path_name(&self, interface: u32) -> Option<&str> {
        self.paths.get(interface as usize).map(String::as_str)
    }

    /// Reads the next line. Returns false at the end of the file.
    fn read_line(&mut self) -> Result<bool, Broken> {
        self.line.clear();
        let number = self.lines + 1;
        let broken = |problem: String| Broken { packet: number, problem };
        let mut limited = (&mut self.input).take(MAX_RECORD);
        let read = limited.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| broken(format!("it cannot be read: {error}")))?;
        if read as u64 == MAX_RECORD {
            return Err(broken(format!("its record is longer than {MAX_RECORD} bytes")));
        }
        self.lines = number;
        Ok(read > 0)
    }

    /// Returns the next packet or change; none at the end of the file.
    ///
    /// # Errors
    /// If a record is damaged, with the number of its line.
    pub(crate) fn next(
        &mut self,
        file: usize,
        reader: &mut PacketReader,
    ) -> Result<Option<Entry>, Broken> {
        while self.read_line()? {
            let LogSource { line, lines, packets, side, paths, bytes, .. } = self;
            let text = json(line);
            if text.is_empty() {
                continue;
            }
            let broken = |problem: String| Broken { packet: *lines, problem };
            let record: Record<'_> =
                serde_json::from_slice(text).map_err(|error| broken(damaged(&error)))?;
            let (Some(name), Some(time)) = (record.name, record.time) else {
                return Err(broken("its record has no `name` or no `time`".to_owned()));
            };
            let at_ns = (time.clamp(0.0, 1e12) * 1e6).round() as i64;
            let held = match &*name {
                "transport:packet_sent" | "transport:packet_received" => {
                    let raw = record
                        .data
                        .raw
                        .as_ref()
                        .and_then(|raw| Some((raw.length, raw.data.as_ref()?)));
                    let Some((original, data)) = raw else {
                        return Err(broken(
                            "its packet has no `raw.data`: an earlier version of plait wrote it\n  \
                             make the file again"
                                .to_owned(),
                        ));
                    };
                    if !unhex(data, bytes) {
                        return Err(broken("its `raw.data` is not hexadecimal".to_owned()));
                    }
                    *packets += 1;
                    let interface = named(paths, record.data.path.as_deref().unwrap_or_default());
                    let (number, link, bytes) = (*lines, RAW_IP, &bytes[..]);
                    let frame = Frame { number, link, interface, at_ns, bytes, original };
                    return Ok(Some(Entry::Packet(reader.read(file, &frame).map(Box::new))));
                }
                "mptcp:rcvbuf_blocked" => Some(Held::ReceiveWindow),
                "mptcp:blocked" => match record.data.cause.as_deref() {
                    None => None,
                    Some(word) => Some(Held::from_word(word).ok_or_else(|| {
                        broken(format!("`{word}` is not a cause that blocks a sender"))
                    })?),
                },
                _ => continue,
            };
            let change = Change { side: *side, held };
            return Ok(Some(Entry::Change {
                number: *lines,
                at_ns,
                group: record.group_id,
                change,
            }));
        }
        Ok(None)
    }
}

/// Returns the problem without its place: the record is one line, and its number is known.
fn damaged(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    format!("its record is damaged: {}", text.strip_suffix(&place).unwrap_or(&text))
}

/// Returns the index of a path in the list of names, and adds a new one.
fn named(paths: &mut Vec<String>, name: &str) -> u32 {
    let known = paths.iter().position(|path| path == name);
    let index = known.unwrap_or(paths.len().min(MAX_PATHS));
    if known.is_none() && paths.len() < MAX_PATHS {
        paths.push(name.to_owned());
    }
    index as u32
}

/// Returns the JSON text of a line.
fn json(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(&[RECORD]).unwrap_or(line);
    line.trim_ascii()
}

/// Converts hexadecimal text to bytes. Returns false if it is not hexadecimal.
fn unhex(text: &str, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    let digits = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    for pair in digits.chunks(2) {
        match *pair {
            [high, low] => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => bytes.push(high << 4 | low),
                _ => return false,
            },
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_text_is_checked() {
        let mut bytes = Vec::new();
        assert!(unhex("450aFf", &mut bytes));
        assert_eq!(bytes, [0x45, 0x0a, 0xff]);
        assert!(!unhex("450", &mut bytes) && !unhex("4g", &mut bytes));
    }

    #[test]
    fn a_log_is_known_by_its_first_bytes() {
        assert!(is_log(b"\x1e{\"file_") && is_log(b"{\"file_s"));
        assert!(!is_log(b"{\"schema") && !is_log(b"\x0a\x0d\x0d\x0a"));
    }
}
