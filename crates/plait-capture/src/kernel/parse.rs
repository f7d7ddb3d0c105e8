//! The text of a trace as lines.

use super::Line;
use crate::source::Broken;
use std::io::{BufRead, Read};

/// Name of the event, with the character that follows it.
const EVENT: &str = "mptcp_subflow_get_send:";
/// Largest length of a line in bytes.
const MAX_LINE: u64 = 64 << 10;
/// Times are below this number of seconds: the year 2096.
const MAX_SECONDS: i64 = 4_000_000_000;
/// Largest number of lines of the event that are kept.
const MAX_LINES: usize = 1_000_000;

/// The contents of a file.
pub(super) struct Parsed {
    pub(super) lines: Vec<Line>,
    /// True if there are more lines of the event.
    pub(super) more: bool,
    /// Notices of lost events.
    pub(super) lost: u64,
}

/// Reads a trace.
pub(super) fn read(mut input: impl BufRead) -> Result<Parsed, Broken> {
    let mut parsed = Parsed { lines: Vec::new(), more: false, lost: 0 };
    let mut number = 0;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        number += 1;
        let broken = |problem: String| Broken { packet: number, problem };
        let read = (&mut input).take(MAX_LINE).read_until(b'\n', &mut bytes);
        match read.map_err(|error| broken(format!("it cannot be read: {error}")))? as u64 {
            0 => break,
            MAX_LINE => return Err(broken(format!("the line is longer than {MAX_LINE} bytes"))),
            _ => {}
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end();
        if text.contains("LOST ") && text.contains("EVENTS") {
            parsed.lost += 1;
        }
        let Some((before, fields)) = text.split_once(EVENT) else { continue };
        if before.trim_start().starts_with('#') {
            continue;
        }
        let line = line(before, fields).map_err(|problem| {
            broken(format!(
                "{problem}\n  allowed: lines such as `nc-17 [001] 12.345678: {EVENT} active=1 free=1 \
                 snd_wnd=65536 pace=125000 backup=0 ratio=0`"
            ))
        })?;
        if parsed.lines.len() < MAX_LINES {
            parsed.lines.push(line);
        } else {
            parsed.more = true;
        }
    }
    if parsed.lines.is_empty() {
        return Err(Broken {
            packet: 0,
            problem: "it has no line of the tracepoint mptcp_subflow_get_send\n  record it: perf \
                      record -a -e mptcp:mptcp_subflow_get_send, and then perf script"
                .to_owned(),
        });
    }
    Ok(parsed)
}

/// Parses a line from the texts before and after the name of the event.
fn line(before: &str, fields: &str) -> Result<Line, String> {
    let before = before.strip_suffix("mptcp:").unwrap_or(before).trim_end();
    let stamp = before.rsplit(' ').next().unwrap_or_default();
    let at_ns = stamp.strip_suffix(':').and_then(nanoseconds).ok_or_else(|| {
        format!("`{stamp}` is not a time in seconds; the clock of the trace must count seconds, as `mono` does")
    })?;
    let cpu =
        before.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']')?.0.trim().parse().ok());
    let cpu: u16 = cpu.ok_or("the number of the CPU is missing: `[001]`")?;
    let flag = |name: &str| match value(fields, name)? {
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(format!("{name}: `{other}` is neither 0 nor 1")),
    };
    Ok(Line {
        at_ns,
        cpu,
        active: flag("active")?,
        free: flag("free")?,
        backup: flag("backup")?,
        snd_wnd: number(fields, "snd_wnd")?,
        pace: number(fields, "pace")?,
        ratio: number(fields, "ratio")?,
    })
}

/// Returns the text of a field.
fn value<'a>(fields: &'a str, name: &str) -> Result<&'a str, String> {
    let mut pairs = fields.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
        .ok_or_else(|| format!("the field {name} is missing"))
}

fn number<T: std::str::FromStr>(fields: &str, name: &str) -> Result<T, String> {
    let text = value(fields, name)?;
    text.parse().map_err(|_| format!("{name}: `{text}` is not a number in its range"))
}

/// Parses seconds with a decimal fraction as nanoseconds.
fn nanoseconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds = seconds.parse::<i64>().ok().filter(|seconds| *seconds < MAX_SECONDS)?;
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    let rest = fraction.parse::<i64>().ok()? * scale;
    Some(seconds * 1_000_000_000 + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "active=1 free=0 snd_wnd=64512 pace=1842999 backup=0 ratio=162542344";
    const EXPECTED: Line = Line {
        at_ns: 1_299_610_588_000,
        cpu: 1,
        active: true,
        free: false,
        backup: false,
        snd_wnd: 64_512,
        pace: 1_842_999,
        ratio: 162_542_344,
    };

    fn parsed(text: &str) -> Result<Parsed, Broken> {
        read(text.as_bytes())
    }

    #[test]
    fn every_tool_prints_the_same_line() {
        for prefix in [
            "   kworker/1:2-eve-23010   [001] b..2.  1299.610588: mptcp_subflow_get_send: ",
            "           nc-23010   [001]  1299.610588: mptcp_subflow_get_send: ",
            "nc-23010 [001] d..1  1299.610588: mptcp_subflow_get_send:   ",
            "         python3 25080 [001]  1299.610588: mptcp:mptcp_subflow_get_send: ",
            "         python3 25080/25081 [001]  1299.610588000: mptcp:mptcp_subflow_get_send: ",
        ] {
            let lines =
                parsed(&format!("# tracer: nop\n\ncpus=2\n{prefix}{FIELDS}\n")).unwrap().lines;
            assert_eq!(lines, [EXPECTED], "{prefix}");
        }
    }

    #[test]
    fn other_lines_are_left_out_and_losses_are_counted() {
        let text = format!(
            "nc-1 [001] 1.5: tcp_probe: x=1\nCPU:1 [LOST 27 EVENTS]\nnc-1 [001] 1299.610588: {EVENT} {FIELDS}"
        );
        let parsed = parsed(&text).unwrap();
        assert_eq!((parsed.lines.len(), parsed.lost, parsed.more), (1, 1, false));
    }

    #[test]
    fn a_damaged_line_has_its_number() {
        let good = format!("nc-1 [001] 1299.610588: {EVENT} {FIELDS}\n");
        for (bad, problem) in [
            (good.replace("active=1", "active=2"), "active: `2` is neither 0 nor 1"),
            (good.replace("ratio=", "ration="), "the field ratio is missing"),
            (
                good.replace("pace=1842999", "pace=99999999999"),
                "pace: `99999999999` is not a number",
            ),
            (good.replace("1299.610588", "837465"), "`837465:` is not a time in seconds"),
            (good.replace("1299.", "4000000000."), "`4000000000.610588:` is not a time in seconds"),
            (good.replace("[001] ", ""), "the number of the CPU is missing"),
            (good[..good.len() - 30].to_owned(), "the field backup is missing"),
        ] {
            let broken = parsed(&format!("# comment\n{good}{bad}")).err().unwrap();
            assert_eq!(broken.packet, 3, "{bad}");
            assert!(broken.problem.starts_with(problem), "{bad}: {}", broken.problem);
        }
        assert!(parsed("nothing\n").err().unwrap().problem.contains("no line of the tracepoint"));
        let long = "x".repeat(MAX_LINE as usize);
        assert_eq!(parsed(&long).err().unwrap().packet, 1);
    }
}
