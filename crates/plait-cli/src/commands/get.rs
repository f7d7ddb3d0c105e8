//! `plait get`: a Multipath TCP client that dials from several addresses.

use crate::commands::endpoint::{EndpointFlags, origins, resolve, stop_on_signal};
use crate::console::{Console, deliver};
use crate::failure::Failure;
use plait_app::Host;
use plait_live::{Client, DialSettings, Happening};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;

const EXAMPLES: &str = "Examples:
  plait get http://10.99.0.1/file --from 10.98.1.77@wifi0 --from 10.98.2.77@lte0 --dry-run
  plait get 10.99.0.1:7 --from 10.98.1.77 --from 10.98.2.77 --scheduler blest --dry-run";

/// A Multipath TCP client that dials from several addresses
///
/// Fetches a URL (http, without TLS), or with ADDR:PORT sends standard input and prints what comes.
/// Each --from is an address of its own behind a TUN device, and a subflow is opened from each; what
/// the other end sends there has to reach this host and be forwarded. Needs CAP_NET_ADMIN, and
/// CAP_NET_RAW for `@DEVICE`; both are dropped before anything is sent.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to fetch, or whom to talk to
    #[arg(value_name = "URL|HOST:PORT")]
    target: String,
    /// An address to dial from, one that no device of this host has; with `@DEVICE` its packets
    /// leave by that device. A device alone: under the address of it, by rules of nftables. Repeat
    /// for further subflows
    #[arg(long, value_name = "ADDR[@DEVICE]|DEVICE", required = true)]
    from: Vec<String>,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    endpoint: EndpointFlags,
}

/// What is asked for.
struct Target {
    authority: String,
    /// Of a URL.
    resource: Option<String>,
}

impl Target {
    fn parse(text: &str) -> Result<Target, Failure> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Target { authority: text.to_owned(), resource: None });
        };
        if scheme != "http" {
            let problem =
                format!("`{text}`: no `{scheme}` here\n  allowed: http://HOST[:PORT]/PATH");
            return Err(Failure::Usage(problem));
        }
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if path.contains(|c: char| c.is_ascii_control() || c == ' ') {
            let problem = format!("`{}`: spaces and control characters", text.escape_debug());
            return Err(Failure::Usage(format!("{problem}\n  write them as %20 and the like")));
        }
        let has_port = authority.rsplit(']').next().is_some_and(|tail| tail.contains(':'));
        let port = if has_port { "" } else { ":80" };
        let path = if path.is_empty() { "/" } else { path };
        Ok(Target { authority: format!("{authority}{port}"), resource: Some(path.to_owned()) })
    }
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let internal = |error: io::Error| Failure::Internal(error.to_string());
    let target = Target::parse(&args.target)?;
    let from = origins("--from", &args.from)?;
    let of_v4 = from.all.iter().filter(|origin| origin.address.is_ipv4()).count();
    if of_v4 != 0 && of_v4 != from.all.len() {
        return Err(Failure::Usage("--from: addresses of two families".to_owned()));
    }
    let v4 = from.all.iter().all(|origin| origin.address.is_ipv4());
    let to = resolve("the target", &target.authority, |to| to.is_ipv4() == v4)?;
    if args.endpoint.dry_run {
        return deliver(&args.endpoint.plan_for(&from), None);
    }
    let (device, spec) = (args.endpoint.device.clone(), args.endpoint.spec()?);
    let files = args.endpoint.files_for(Host::Client, &from.all)?;
    let hiding = from.hide("--from")?;
    let opened = Client::open(DialSettings { from: from.all, device, spec });
    let mut client = opened.map_err(|error| args.endpoint.refused("--from", &error))?;
    plait_live::drop_capabilities().map_err(internal)?;
    let (ours, theirs) = UnixStream::pair().map_err(internal)?;
    client.connect(to, theirs.into(), None).map_err(internal)?;
    let interrupted = stop_on_signal(client.stopper().map_err(internal)?).map_err(internal)?;
    if let Some(files) = &files {
        client.observe(Box::new(files.clone()));
    }
    let running = thread::spawn(move || {
        let mut last = None;
        client.run(|happening| last = Some(happening.clone())).map(|()| last)
    });
    let outcome = args.exchange(&target, ours);
    let ended = running.join().map_err(|_| Failure::Internal("a panic".to_owned()))?;
    let ended = ended.map_err(internal)?;
    drop(hiding);
    files.map_or(Ok(()), |files| files.finish())?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    if let Some(Happening::Ended { problem: Some(problem), .. }) = &ended {
        return Err(Failure::Peer(format!("{}: {problem}", target.authority)));
    }
    if console.chatter > 1
        && let Some(ended) = ended
    {
        eprintln!("{ended}");
    }
    outcome
}

impl Args {
    /// Talks to the other end by way of `stream`.
    fn exchange(&self, target: &Target, stream: UnixStream) -> Result<(), Failure> {
        let lost = |error: io::Error| Failure::Peer(format!("{}: {error}", target.authority));
        let mut writer = stream.try_clone().map_err(lost)?;
        match &target.resource {
            Some(resource) => {
                let host = &target.authority;
                let request = format!(
                    "GET {resource} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: plait/{}\r\n\r\n",
                    env!("CARGO_PKG_VERSION")
                );
                writer.write_all(request.as_bytes()).map_err(lost)?;
                let body = self.read_http(target, &mut BufReader::new(stream));
                let _ = writer.shutdown(Shutdown::Write);
                body
            }
            None => {
                // Where the other end has gone, the rest of standard input is not asked for.
                thread::spawn(move || {
                    let _ = io::copy(&mut io::stdin().lock(), &mut writer);
                    let _ = writer.shutdown(Shutdown::Write);
                });
                let whole = self.copy(target, &mut BufReader::new(&stream));
                let _ = stream.shutdown(Shutdown::Both);
                whole.map(|_| ())
            }
        }
    }

    /// The body of an answer; a status that tells of no success is a failure.
    fn read_http(&self, target: &Target, stream: &mut impl BufRead) -> Result<(), Failure> {
        let failed = |what: &str| Failure::Peer(format!("{}: {what}", target.authority));
        let mut line = || {
            let mut line = Vec::new();
            // A header that goes on for ever is none.
            let read = stream.by_ref().take(0x1_0000).read_until(b'\n', &mut line);
            match read {
                Ok(_) if line.ends_with(b"\n") => Ok(String::from_utf8_lossy(&line).into_owned()),
                _ => Err(failed("the answer is no HTTP")),
            }
        };
        let status = line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok());
        let code = code.filter(|_| status.starts_with("HTTP/1."));
        let code = code.ok_or_else(|| failed("the answer is no HTTP"))?;
        let mut length = None;
        loop {
            let header = line()?;
            let Some((name, value)) = header.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse::<u64>().ok();
            }
        }
        if !(200..300).contains(&code) {
            return Err(failed(status.trim_end()));
        }
        let copied = self.copy(target, stream)?;
        match length {
            Some(length) if length != copied => {
                Err(failed(&format!("{copied} of {length} bytes came")))
            }
            _ => Ok(()),
        }
    }

    /// Hands on what comes, to its end.
    fn copy(&self, target: &Target, stream: &mut impl BufRead) -> Result<u64, Failure> {
        let mut out: Box<dyn Write> = match &self.output {
            Some(file) => Box::new(
                File::create(file)
                    .map_err(|error| Failure::unwritable("--output", file, &error))?,
            ),
            None => Box::new(io::stdout().lock()),
        };
        let mut copied = 0;
        loop {
            let bytes = stream
                .fill_buf()
                .map_err(|error| Failure::Peer(format!("{}: {error}", target.authority)))?;
            if bytes.is_empty() {
                break;
            }
            out.write_all(bytes).map_err(|error| Failure::stdout(&error))?;
            let count = bytes.len();
            copied += count as u64;
            stream.consume(count);
        }
        out.flush().map_err(|error| Failure::stdout(&error))?;
        Ok(copied)
    }
}
