//! Parses the head and the body of HTTP/1 responses (RFC 9112).

use std::io::{self, BufRead, Read, Write};

/// Longest head of a response, in bytes, interim responses included; also the most between two chunks.
/// Longer ones are refused.
const LONGEST_HEAD: u64 = 64 * 1024;

/// The reason why a body is not complete.
#[derive(Debug)]
pub enum Broken {
    /// The stream ended too early. The text describes the received part, and is `None` if nothing arrived.
    Cut(Option<String>),
    /// The response cannot be parsed, or its status is not a success.
    Refused(String),
    /// Writing the body failed.
    Sink(io::Error),
}

/// The way in which the end of a body was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// The response declares its length, or has a last chunk.
    Declared,
    /// The stream ended. The body is complete only if the connection ended without an error.
    ToTheEnd,
}

/// The length of a body (RFC 9112 section 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Body {
    Bytes(u64),
    Chunks,
    ToTheEnd,
}

/// Reads a response to GET. Calls `open` after the head, and writes the body to the result.
///
/// # Errors
/// If the body is not complete.
pub fn answer<W: Write>(
    stream: &mut impl BufRead,
    open: impl FnOnce() -> io::Result<W>,
) -> Result<Whole, Broken> {
    let body = head(stream)?;
    let mut sink = open().map_err(Broken::Sink)?;
    let whole = match body {
        Body::Bytes(length) => {
            let copied = copy(stream, &mut sink, length)?;
            if copied < length {
                return Err(Broken::Cut(Some(format!("{copied} of {length} bytes arrived"))));
            }
            Whole::Declared
        }
        Body::Chunks => chunks(stream, &mut sink).map(|()| Whole::Declared)?,
        Body::ToTheEnd => copy(stream, &mut sink, u64::MAX).map(|_| Whole::ToTheEnd)?,
    };
    sink.flush().map_err(Broken::Sink)?;
    Ok(whole)
}

/// Copies up to `limit` bytes and returns their number. It is less than `limit` if the stream ends.
///
/// # Errors
/// If writing to `sink` fails.
pub fn copy(stream: &mut impl BufRead, sink: &mut impl Write, limit: u64) -> Result<u64, Broken> {
    let mut copied = 0;
    while copied < limit {
        let bytes = match stream.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The relay has closed its socket. It reports the reason elsewhere.
            Err(_) => &[],
        };
        let left = usize::try_from(limit - copied).unwrap_or(usize::MAX);
        let count = bytes.len().min(left);
        if count == 0 {
            break;
        }
        sink.write_all(&bytes[..count]).map_err(Broken::Sink)?;
        copied += count as u64;
        stream.consume(count);
    }
    Ok(copied)
}

fn refused<T>(what: impl Into<String>) -> Result<T, Broken> {
    Err(Broken::Refused(what.into()))
}

/// Reads a line and returns it without its line end. `budget` is the number of bytes that further lines
/// may have. Error texts contain `what`.
fn line(stream: &mut impl BufRead, budget: &mut u64, what: &str) -> Result<String, Broken> {
    let mut line = Vec::new();
    // An error counts as the end of the stream.
    let _ = stream.by_ref().take(*budget).read_until(b'\n', &mut line);
    *budget -= line.len() as u64;
    if line.pop_if(|last| *last == b'\n').is_none() {
        return match *budget {
            0 => refused(format!("{what} is longer than {LONGEST_HEAD} bytes")),
            _ if line.is_empty() => Err(Broken::Cut(None)),
            _ => Err(Broken::Cut(Some(format!("{what} is cut off")))),
        };
    }
    line.pop_if(|last| *last == b'\r');
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Reads the head, and skips the heads of interim responses before it.
fn head(stream: &mut impl BufRead) -> Result<Body, Broken> {
    let mut budget = LONGEST_HEAD;
    loop {
        let what = "the head of the answer";
        let status = line(stream, &mut budget, what)?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok());
        let code = code.filter(|code| status.starts_with("HTTP/1.") && *code < 1_000);
        let Some(code) = code else { return refused("the answer is not HTTP/1") };
        let mut fields = Fields::default();
        loop {
            let within = |broken| match broken {
                Broken::Cut(None) => Broken::Cut(Some(format!("{what} is cut off"))),
                other => other,
            };
            let field = line(stream, &mut budget, what).map_err(within)?;
            if field.is_empty() {
                break;
            }
            fields.take(&field)?;
        }
        return match code {
            // Another head follows. 101 is refused, because the request did not ask for an upgrade.
            100 | 102..200 => continue,
            204 => Ok(Body::Bytes(0)),
            200..300 => fields.body(),
            _ => refused(status.escape_debug().to_string()),
        };
    }
}

/// The fields of a head that determine the length of the body.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    codings: Vec<String>,
}

impl Fields {
    fn take(&mut self, field: &str) -> Result<(), Broken> {
        let (name, value) = match field.split_once(':') {
            Some((name, value)) if !name.starts_with([' ', '\t']) => (name.trim_end(), value),
            _ => return refused(format!("`{}` is not a header of an answer", shown(field))),
        };
        if name.eq_ignore_ascii_case("content-length") {
            for text in value.split(',').map(str::trim) {
                let number = text.bytes().all(|byte| byte.is_ascii_digit());
                let Some(length) = text.parse::<u64>().ok().filter(|_| number) else {
                    let text = shown(text);
                    return refused(format!("Content-Length `{text}` is not a number of bytes"));
                };
                if self.length.replace(length).is_some_and(|before| before != length) {
                    return refused("the answer has two values of Content-Length");
                }
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            let codings = value.split(',').map(|text| text.trim().to_ascii_lowercase());
            self.codings.extend(codings.filter(|text| !text.is_empty()));
        }
        Ok(())
    }

    fn body(self) -> Result<Body, Broken> {
        match self.codings.as_slice() {
            // `chunked` overrides Content-Length (RFC 9112 section 6.3).
            [coding] if coding == "chunked" => Ok(Body::Chunks),
            [] => Ok(self.length.map_or(Body::ToTheEnd, Body::Bytes)),
            codings => {
                let given = shown(&codings.join(", "));
                refused(format!("Transfer-Encoding `{given}` is not supported; only `chunked` is"))
            }
        }
    }
}

/// Returns the first 60 characters of a text of the peer, escaped for an error message.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Copies a body in chunks (RFC 9112 section 7.1).
fn chunks(stream: &mut impl BufRead, sink: &mut impl Write) -> Result<(), Broken> {
    let mut whole = 0;
    let cut = |whole: u64| Broken::Cut(Some(format!("it is cut off after {whole} bytes")));
    let next = |stream: &mut _, budget: &mut u64, whole| {
        line(stream, budget, "a line between chunks").map_err(|broken| match broken {
            Broken::Cut(_) => cut(whole),
            other => other,
        })
    };
    loop {
        let mut budget = LONGEST_HEAD;
        let text = next(stream, &mut budget, whole)?;
        let size = text.split(';').next().unwrap_or_default().trim_end();
        let hex = size.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(size) = u64::from_str_radix(size, 16).ok().filter(|_| hex) else {
            return refused(format!("`{}` is not the size of a chunk", shown(&text)));
        };
        if size == 0 {
            // Trailers are skipped.
            while !next(stream, &mut budget, whole)?.is_empty() {}
            return Ok(());
        }
        let copied = copy(stream, sink, size)?;
        whole = whole.saturating_add(copied);
        if copied < size {
            return Err(cut(whole));
        }
        let mut budget = LONGEST_HEAD;
        if !next(stream, &mut budget, whole)?.is_empty() {
            return refused("a chunk is longer than its size line");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the written body and the outcome of [`answer`].
    fn taken(mut answer_bytes: &[u8]) -> (Vec<u8>, Result<Whole, String>) {
        let mut body = Vec::new();
        let outcome = answer(&mut answer_bytes, || Ok(&mut body));
        let told = |broken| match broken {
            Broken::Cut(what) => format!("cut: {what:?}"),
            Broken::Refused(what) => what,
            Broken::Sink(error) => panic!("{error}"),
        };
        (body, outcome.map_err(told))
    }

    fn is(answer: &str, body: &str, whole: Whole) {
        let (bytes, outcome) = taken(answer.as_bytes());
        assert_eq!((String::from_utf8(bytes).unwrap().as_str(), outcome), (body, Ok(whole)));
    }

    fn fails(answer: &str, body: &str, why: &str) {
        let (bytes, outcome) = taken(answer.as_bytes());
        let told = outcome.unwrap_err();
        assert!(told.contains(why), "{answer:?}: {told}");
        assert_eq!(String::from_utf8(bytes).unwrap(), body, "{answer:?}");
    }

    #[test]
    fn a_body_ends_where_the_answer_says() {
        is("HTTP/1.0 200 OK\r\n\r\nuntil close", "until close", Whole::ToTheEnd);
        for (answer, body) in [
            ("HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", "abc"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcEXTRA", "abc"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc", "abc"),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nabcde", ""),
            ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", ""),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                "ok",
            ),
        ] {
            is(answer, body, Whole::Declared);
        }
    }

    #[test]
    fn chunks_are_put_together() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 3\r\n\r\n";
        for (chunks, body) in [
            ("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: x\r\n\r\n", "hello world"),
            ("0\r\n\r\n", ""),
            ("0000A \r\n0123456789\r\n0;last\r\n\r\nmore", "0123456789"),
        ] {
            is(&format!("{head}{chunks}"), body, Whole::Declared);
        }
        for (chunks, body, why) in [
            ("5\r\nhello\r\n6\r\n wo", "hello wo", "cut off after 8 bytes"),
            ("5\r\nhello\r\n", "hello", "cut off after 5 bytes"),
            ("5\r\nhello\r\n0\r\n", "hello", "cut off after 5 bytes"),
            ("ffffffffffffffff1\r\nhello", "", "`ffffffffffffffff1` is not the size"),
            ("-1\r\nhello", "", "`-1` is not the size"),
            ("+5\r\nhello\r\n0\r\n\r\n", "", "`+5` is not the size"),
            ("\r\nhello", "", "`` is not the size"),
            ("3\r\nhello\r\n0\r\n\r\n", "hel", "longer than its size line"),
        ] {
            fails(&format!("{head}{chunks}"), body, why);
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_and_nothing_written() {
        for (head, why) in [
            ("garbage not http\r\n", "not HTTP/1"),
            ("HTTP/2 200\r\n", "not HTTP/1"),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n", "HTTP/1.1 404 Not Found"),
            ("HTTP/1.1 304 Not Modified\r\n", "304"),
            ("HTTP/1.1 101 Switching Protocols\r\n", "101"),
            ("HTTP/1.1 200 OK\r\nno header\r\n", "`no header` is not a header"),
            ("HTTP/1.1 200 OK\r\nX: y\r\n folded: 1\r\n", "is not a header"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n", "not a number"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n", "`-5` is not a number of bytes"),
            ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n", "`+5` is not a number of bytes"),
            ("HTTP/1.1 200 OK\r\nContent-Length:\r\n", "`` is not a number of bytes"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n", "two values"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", "`gzip, chunked`"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
                "chunked, x",
            ),
        ] {
            fails(&format!("{head}\r\nbody"), "", why);
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(70_000));
        fails(&endless, "", "the head of the answer is longer than 65536 bytes");
        let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000);
        fails(&endless, "", "the head of the answer is longer than 65536 bytes");
    }

    #[test]
    fn an_answer_that_is_cut_off_is_told_as_such() {
        fails("", "", "cut: None");
        fails("HTTP/1.1 200", "", "head of the answer is cut off");
        fails("HTTP/1.1 200 OK\r\n", "", "head of the answer is cut off");
        fails(
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
            "short",
            "5 of 100 bytes arrived",
        );
    }

    #[test]
    fn a_sink_that_takes_no_more_is_told_as_such() {
        let mut room = [0; 2];
        let said = b"HTTP/1.1 200 OK\r\n\r\nthree";
        let outcome = answer(&mut &said[..], || Ok(&mut room[..]));
        assert!(matches!(outcome, Err(Broken::Sink(_))), "{outcome:?}");
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(lines in "[\\r\\n0-9a-f:; ]{0,60}", declared in 0..3_usize) {
            let head = ["", "Transfer-Encoding: chunked\r\n\r\n", "Content-Length: 7\r\n\r\n"];
            let (body, _) = taken(format!("HTTP/1.1 200 OK\r\n{}{lines}", head[declared]).as_bytes());
            prop_assert!(body.len() <= lines.len());
        }
    }
}
