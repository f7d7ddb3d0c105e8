//! Web pages: graphs of objects, loaded over HTTP/1.1 or HTTP/2.
//!
//! What crosses the connections are real requests and responses, so that each end knows no more than
//! its stream and the time: a client asks for `/N`, the server of a page answers with so many bytes.

mod epload;
mod har;
mod http1;
mod http2;
mod known;
mod outbox;
mod page;
mod session;
mod sizes;
#[cfg(test)]
mod tests;
mod walk;

pub use page::{After, Builder, Does, Page};

use super::Ends;
use super::error::WorkloadError;
use super::field::Files;
use crate::name::nearest;
use crate::quantity::{self, shortened};
use core::fmt;
use session::Session;
use std::sync::{Arc, Mutex};

/// Connections of a client over HTTP/1.1 where nothing is said: what browsers open to a server.
const CONNECTIONS: u8 = 6;
/// The most that may be asked for.
const MOST_CONNECTIONS: u8 = 64;
/// Window of each stream and of the connection over HTTP/2 where nothing is said: that of libcurl.
const WINDOW: u32 = 32 << 20;

/// How a page is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Http {
    /// HTTP/1.1 over so many persistent connections, opened when needed; one request at a time on
    /// each.
    One {
        /// At most.
        connections: u8,
    },
    /// HTTP/2 over one connection.
    Two {
        /// Window of each stream, and of the connection, that the client gives, in bytes.
        window: u32,
    },
}

impl Http {
    /// Bytes of a request, and of an answer before its body: constants, for they are alike in real
    /// traffic and weigh little beside the objects.
    #[must_use]
    pub const fn head_bytes(self) -> (usize, usize) {
        match self {
            Http::One { .. } => (http1::REQUEST, http1::RESPONSE),
            Http::Two { .. } => (http2::HEAD, http2::HEAD),
        }
    }
}

/// A page and how it is loaded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Web {
    /// As given: the name of a page, or a file.
    source: String,
    page: Arc<Page>,
    http: Http,
    /// Bytes of all objects of a file, where that was said.
    total: Option<u64>,
    /// Off: computing and waiting take no time.
    think: bool,
}

impl Web {
    /// The page.
    #[must_use]
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// How it is loaded.
    #[must_use]
    pub const fn http(&self) -> Http {
        self.http
    }

    /// How many connections the client may open.
    #[must_use]
    pub const fn connections(&self) -> usize {
        match self.http {
            Http::One { connections } => connections as usize,
            Http::Two { .. } => 1,
        }
    }

    /// The two ends of each connection.
    pub(super) fn apps(&self) -> Vec<Ends> {
        let session = Session::new(Arc::clone(&self.page), self.think, self.connections());
        let session = Arc::new(Mutex::new(session));
        let ends = |index: usize| -> Ends {
            let (session, page) = (Arc::clone(&session), Arc::clone(&self.page));
            match self.http {
                Http::One { .. } => (
                    Box::new(http1::Client::new(session, index)),
                    Box::new(http1::Server::new(page)),
                ),
                Http::Two { window } => (
                    Box::new(http2::Client::new(session, window)),
                    Box::new(http2::Server::new(page)),
                ),
            }
        };
        (0..self.connections()).map(ends).collect()
    }

    /// Reads what follows `web:`.
    pub(super) fn parse(
        text: &str,
        form: impl Fn() -> WorkloadError,
        read: Files<'_>,
    ) -> Result<Web, WorkloadError> {
        let mut parts = text.split(',');
        let source = parts.next().unwrap_or_default().trim();
        let (mut http, mut connections, mut window) = (None, None, None);
        let (mut total, mut think) = (None, None);
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(&form)?;
            let set = match key.trim() {
                "http" => http.replace(choice("http", value, &["1", "2"])? + 1).is_some(),
                "connections" => connections.replace(count(value)?).is_some(),
                "window" => window.replace(bytes("window", value, 1 << 30)? as u32).is_some(),
                "bytes" => total.replace(bytes("bytes", value, 1 << 40)?).is_some(),
                "think" => think.replace(choice("think", value, &["off", "on"])? == 1).is_some(),
                _ => return Err(form()),
            };
            if set {
                return Err(invalid(format!("`{}` is given twice", shortened(key.trim()))));
            }
        }
        let http = match http {
            Some(1) if window.is_some() => {
                return Err(invalid("window is of http=2".to_owned()));
            }
            Some(1) => Http::One { connections: connections.unwrap_or(CONNECTIONS) },
            Some(_) if connections.is_some() => {
                return Err(invalid("connections is of http=1; http=2 has one".to_owned()));
            }
            // One word about it is enough to mean HTTP/1.1.
            None if connections.is_some() && window.is_none() => {
                Http::One { connections: connections.unwrap_or(CONNECTIONS) }
            }
            None if connections.is_some() => {
                return Err(invalid("connections is of http=1, window of http=2".to_owned()));
            }
            _ => Http::Two { window: window.unwrap_or(WINDOW) },
        };
        let page = load(source, total, form, read)?;
        let (source, page) = (source.to_owned(), Arc::new(page));
        Ok(Web { source, page, http, total, think: think.unwrap_or(true) })
    }
}

/// What follows `web:`.
impl fmt::Display for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        match self.http {
            Http::One { connections: CONNECTIONS } => f.write_str(",http=1")?,
            Http::One { connections } => write!(f, ",http=1,connections={connections}")?,
            Http::Two { window: WINDOW } => {}
            Http::Two { window } => write!(f, ",window={window}B")?,
        }
        if let Some(total) = self.total {
            write!(f, ",bytes={total}B")?;
        }
        if !self.think {
            f.write_str(",think=off")?;
        }
        Ok(())
    }
}

/// The page that `source` names.
fn load(
    source: &str,
    total: Option<u64>,
    form: impl Fn() -> WorkloadError,
    read: Files<'_>,
) -> Result<Page, WorkloadError> {
    if source.is_empty() {
        return Err(form());
    }
    let failed = |problem| WorkloadError::Page { file: shortened(source), problem };
    if let Some(known) = known::by_name(source) {
        if total.is_some() {
            return Err(invalid(format!("bytes is for files; `{source}` has {}", known.bytes)));
        }
        return known.page().map_err(failed);
    }
    if !source.contains(['.', '/', '\\']) {
        let names = known::all().map(|known| known.name);
        let near = nearest(source, names.clone());
        let near = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        let names: Vec<&str> = names.collect();
        return Err(invalid(format!(
            "unknown page `{}`{near} known: {}; or a file (Epload JSON or HAR), such as ./page.har",
            shortened(source),
            names.join(", ")
        )));
    }
    let text = read(source).map_err(|error| {
        failed(format!("cannot be read ({error}); give an Epload JSON or HAR 1.2 file"))
    })?;
    file(&text, total).map_err(failed)
}

/// Reads a file of either form, which its first member tells.
fn file(text: &str, total: Option<u64>) -> Result<Page, String> {
    // HAR 1.2 has readers ignore a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    #[derive(Default, serde::Deserialize)]
    #[serde(expecting = "an object with `log` (HAR 1.2), or with `objs` and `deps` (Epload)")]
    struct Either {
        #[serde(default)]
        log: Option<serde::de::IgnoredAny>,
        #[serde(default)]
        objs: Option<serde::de::IgnoredAny>,
    }
    let either: Either = serde_json::from_str(text)
        .map_err(|error| format!("not JSON of a page: {error}; export it again"))?;
    // A list would be taken for the members in their order.
    let either = if text.trim_start().starts_with('[') { Either::default() } else { either };
    match (either.log, either.objs) {
        (Some(_), _) if total.is_some() => {
            Err("bytes is for Epload graphs; a HAR file has sizes".to_owned())
        }
        (Some(_), _) => har::read(text),
        (None, Some(_)) => epload::read(text, total),
        (None, None) => {
            Err("neither a HAR file (`log`) nor an Epload graph (`objs`, `deps`)".to_owned())
        }
    }
}

fn invalid(problem: String) -> WorkloadError {
    WorkloadError::Invalid { problem }
}

fn choice(key: &'static str, value: &str, allowed: &[&str]) -> Result<usize, WorkloadError> {
    let found = allowed.iter().position(|allowed| *allowed == value.trim());
    found.ok_or_else(|| {
        invalid(format!("{key}=`{}` is none of: {}", shortened(value), allowed.join(", ")))
    })
}

fn count(value: &str) -> Result<u8, WorkloadError> {
    let count = value.trim().parse().ok().filter(|count| (1..=MOST_CONNECTIONS).contains(count));
    count.ok_or_else(|| {
        let value = shortened(value);
        invalid(format!("connections=`{value}` is no number from 1 to {MOST_CONNECTIONS}"))
    })
}

fn bytes(field: &'static str, value: &str, most: u64) -> Result<u64, WorkloadError> {
    let size = quantity::size(value).map_err(|error| WorkloadError::Quantity { field, error })?;
    match size {
        quantity::Size::Bytes(0) => Err(WorkloadError::Zero { field }),
        quantity::Size::Bytes(bytes) if bytes <= most => Ok(bytes),
        _ => Err(invalid(format!("{field} is a number of bytes, at most {most}"))),
    }
}
