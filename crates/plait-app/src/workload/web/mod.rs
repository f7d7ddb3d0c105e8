//! Web pages: graphs of objects, loaded over HTTP/1.1 or HTTP/2.
//!
//! The connections carry real requests and responses, so an end depends only on its stream and the
//! time. The client requests `/N`, and the server answers with the bytes of that object.

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

/// Default number of HTTP/1.1 connections: browsers open this many to one server.
const CONNECTIONS: u8 = 6;
/// Maximum number of HTTP/1.1 connections; more are an error.
const MOST_CONNECTIONS: u8 = 64;
/// Default HTTP/2 window of each stream and of the connection, in bytes: the window of libcurl.
const WINDOW: u32 = 32 << 20;

/// The HTTP version of a page load, and its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Http {
    /// HTTP/1.1 over several persistent connections. Each is opened when an object needs it, and
    /// has one request at a time.
    One {
        /// Maximum number of connections.
        connections: u8,
    },
    /// HTTP/2 over one connection.
    Two {
        /// The client's window for each stream and for the connection, in bytes.
        window: u32,
    },
}

impl Http {
    /// Returns the length in bytes of a request, and of a response head. They are constants,
    /// because real values vary little and are small compared with the objects.
    #[must_use]
    pub const fn head_bytes(self) -> (usize, usize) {
        match self {
            Http::One { .. } => (http1::REQUEST, http1::RESPONSE),
            Http::Two { .. } => (http2::HEAD, http2::HEAD),
        }
    }
}

/// A page, and the way it is loaded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Web {
    /// Name of the page or file, as given.
    source: String,
    page: Arc<Page>,
    http: Http,
    /// Total size of all objects of a file in bytes, if it was given.
    total: Option<u64>,
    /// If false, computing and waiting take no time.
    think: bool,
}

impl Web {
    /// Returns the page.
    #[must_use]
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Returns the HTTP version and its parameters.
    #[must_use]
    pub const fn http(&self) -> Http {
        self.http
    }

    /// Returns the maximum number of connections of the client.
    #[must_use]
    pub const fn connections(&self) -> usize {
        match self.http {
            Http::One { connections } => connections as usize,
            Http::Two { .. } => 1,
        }
    }

    /// Returns the client's and the server's end of each connection.
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

    /// Reads the text after `web:`.
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
                return Err(invalid("window is only for http=2".to_owned()));
            }
            Some(1) => Http::One { connections: connections.unwrap_or(CONNECTIONS) },
            Some(_) if connections.is_some() => {
                return Err(invalid("connections is only for http=1; http=2 has one".to_owned()));
            }
            // The option `connections` alone selects HTTP/1.1.
            None if connections.is_some() && window.is_none() => {
                Http::One { connections: connections.unwrap_or(CONNECTIONS) }
            }
            None if connections.is_some() => {
                return Err(invalid(
                    "connections is only for http=1, and window for http=2".to_owned(),
                ));
            }
            _ => Http::Two { window: window.unwrap_or(WINDOW) },
        };
        let page = load(source, total, form, read)?;
        let (source, page) = (source.to_owned(), Arc::new(page));
        Ok(Web { source, page, http, total, think: think.unwrap_or(true) })
    }
}

/// Prints the text after `web:`.
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

/// Returns the page called `source`.
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
            return Err(invalid(format!(
                "bytes is only for files; `{source}` has {}",
                known.bytes
            )));
        }
        return known.page().map_err(failed);
    }
    if !source.contains(['.', '/', '\\']) {
        let names = known::all().map(|known| known.name);
        let near = nearest(source, names.clone());
        let near =
            near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_else(|| ";".to_owned());
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

/// Reads a file in either format. The member `log` or `objs` selects the format.
fn file(text: &str, total: Option<u64>) -> Result<Page, String> {
    // HAR 1.2 requires readers to ignore a byte order mark.
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
    // serde would read a list as the members in order, so refuse it.
    let either = if text.trim_start().starts_with('[') { Either::default() } else { either };
    match (either.log, either.objs) {
        (Some(_), _) if total.is_some() => {
            Err("bytes is only for Epload graphs; a HAR file has sizes".to_owned())
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
        invalid(format!("connections=`{value}` is not a number from 1 to {MOST_CONNECTIONS}"))
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
