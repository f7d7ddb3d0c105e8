//! `plait get`: a Multipath TCP client that dials from several addresses.

mod stream;
mod summary;
mod target;

use crate::commands::live::endpoint::{self, EndpointFlags, origins, resolve, stop_on_signal};
use crate::commands::live::limits::DialFlags;
use crate::commands::live::prices::DialPrices;
use crate::console::{Console, check_writable, deliver, json};
use crate::failure::Failure;
use plait_app::Role;
use plait_core::PathEntry;
use plait_live::HostState;
use plait_live::argument::not_dialled;
use plait_live::http::{self, Broken, Whole};
use plait_live::{Client, DialSettings, LogEvent};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use stream::Conversation;
use summary::Ended;
pub(crate) use summary::GetDocument;
use target::Target;

/// Time that the peer has to close a connection after the answer is complete.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "Examples:
  plait get http://10.99.0.1/file --from 10.98.1.77 --from 10.98.2.77 --dry-run
  plait get 10.99.0.1:7 --from 10.98.1.77 --from 10.98.2.77 --dry-run";

/// Fetch a URL over Multipath TCP from several addresses
///
/// Fetches a URL (http, without TLS). With HOST:PORT it sends standard input, prints the answer, and
/// ends when both directions have ended. At the end it writes one line per path to stderr, also after a
/// failure or a signal: bytes, share of all bytes, rate, RTT, and the rest of its quota. A subflow starts
/// from each --from, which is an address behind a TUN device, or a device. Packets for these addresses must
/// reach this host, and this host must forward them. Needs CAP_NET_ADMIN, and CAP_NET_RAW for `@DEVICE`;
/// drops both before it sends any packet.
///
/// Exit codes: 0 if the answer is complete and the server has acknowledged all input; 2 for wrong
/// arguments and files; 3 for a missing privilege; 4 if the server refuses, fails, or
/// answers with an error; 130 after Ctrl-C.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// The URL to fetch, or the server to connect to
    #[arg(value_name = "URL|HOST:PORT")]
    target: String,
    /// Address or device to dial from; may be repeated
    ///
    /// A subflow starts from each. No device of this host may have the address. With `@DEVICE`, its
    /// packets leave by that device. With a device alone, they leave with the address of the device, by
    /// rules of nftables.
    #[arg(long, value_name = "ADDR[@DEVICE]|DEVICE", required = true)]
    from: Vec<String>,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the traffic of each path as JSON
    ///
    /// The document goes to stdout (`plait schema get`), and the answer to --output.
    #[arg(long, requires = "output")]
    json: bool,
    #[command(flatten, next_help_heading = "Prices")]
    prices: DialPrices,
    #[command(flatten, next_help_heading = "Limits")]
    dial: DialFlags,
    #[command(flatten, next_help_heading = "Connections and device")]
    endpoint: EndpointFlags,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let internal = |error: io::Error| Failure::Internal(error.to_string());
    let target = Target::parse(&args.target)?;
    let mut from = origins("--from", &args.from)?;
    let goal = args.prices.set("--from", &mut from.all, &args.endpoint.scheduler)?;
    let of_v4 = from.all.iter().filter(|origin| origin.address.is_ipv4()).count();
    if of_v4 != 0 && of_v4 != from.all.len() {
        return Err(Failure::Usage(
            "--from: addresses of two families\n  give only IPv4 or only IPv6 addresses".to_owned(),
        ));
    }
    let v4 = from.all.iter().all(|origin| origin.address.is_ipv4());
    let to = resolve("the target", &target.authority, Some(("--from", v4)))?;
    if let Some(problem) = not_dialled(to.ip()) {
        return Err(Failure::Usage(format!("the target: `{}`: {problem}", target.authority)));
    }
    let spec = args.endpoint.spec(goal)?;
    check_writable("--output", args.output.as_deref())?;
    from.check_devices("--from")?;
    if let Some(problem) = endpoint::astray("--from", to.ip(), &from.all) {
        let remedy = "connect without plait, or from the device that has it; see them: ip addr";
        let authority = &target.authority;
        return Err(Failure::Usage(format!("the target: `{authority}`: {problem}\n  {remedy}")));
    }
    if args.endpoint.dry_run {
        return deliver(&args.endpoint.plan_for(&from, Vec::new()), None);
    }
    let device = args.endpoint.device.clone();
    let memory = args.endpoint.memory.open("get", from.aliases(), console)?;
    let files = args.endpoint.files_for(Role::Client, &from.all, console)?;
    let hiding = from.hide("--from", Vec::new())?;
    let origins = from.all.clone();
    let opened = Client::open(DialSettings { from: from.all, device, spec });
    let mut client = opened.map_err(|error| args.endpoint.refused("--from", &error))?;
    let own = origins.iter().map(|it| it.address);
    let host = HostState::look(client.device(), client.short_queue(), own);
    host.problems().iter().for_each(|problem| console.remark(1, problem));
    args.endpoint.drop_privileges()?;
    args.dial.apply(&mut client);
    memory.iter().for_each(|it| client.remember_paths(&it.settings, &it.entries));
    let (ours, theirs) = UnixStream::pair().map_err(internal)?;
    client.connect(to, theirs.into(), None).map_err(internal)?;
    let interrupted = stop_on_signal(client.stopper().map_err(internal)?).map_err(internal)?;
    let stopper = client.stopper().map_err(internal)?;
    if let Some(files) = &files {
        client.observe(Box::new(files.clone()));
    }
    let running = Running::start(client, console);
    let outcome = args.talk(&target, &ours, stopper, console);
    let Outcomes { ran, ended, remembered } = running.join()?;
    drop(hiding);
    memory.into_iter().for_each(|it| it.close(&remembered, console));
    // The lines say what each path has carried, and what is left of its quota, also after a failure.
    let ended = ended.unwrap_or_default();
    ended.lines(&origins).iter().for_each(|line| console.remark(1, line));
    ran.map_err(|error| endpoint::ended(&error))?;
    files.map_or(Ok(()), |files| files.finish())?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    outcome.judge(args, &target, &ended)?;
    match args.json {
        true => deliver(&json(&ended.document(&args.target, &origins))?, None),
        false => Ok(()),
    }
}

/// What is known after the end of a connection.
struct Outcomes {
    /// The error that ended the engine, if any.
    ran: io::Result<()>,
    /// How the connection ended; `None` if the engine ended before it.
    ended: Option<Ended>,
    /// The paths that are remembered.
    remembered: Vec<PathEntry>,
}

/// A connection that runs on its own thread.
struct Running(JoinHandle<Outcomes>);

impl Running {
    fn start(mut client: Client, console: Console) -> Running {
        Running(thread::spawn(move || {
            let mut last = None;
            let hear = |happening: &LogEvent| match happening {
                LogEvent::Device { .. } => console.remark(1, &happening.to_string()),
                LogEvent::Ended { .. } => {
                    console.remark(2, &happening.to_string());
                    last = Ended::of(happening);
                }
                _ => {}
            };
            let ran = client.run(hear);
            Outcomes { ran, ended: last, remembered: client.remembered_paths() }
        }))
    }

    /// Waits until the connection has ended.
    fn join(self) -> Result<Outcomes, Failure> {
        self.0.join().map_err(|_| Failure::Internal("a panic".to_owned()))
    }
}

/// Outcome of a transfer, before the end of the connection is known.
enum Outcome {
    /// Answer to a request. The flag is true if writing had begun.
    Answer(Result<Whole, Broken>, bool),
    /// Standard input and an answer of any kind.
    Conversation(Conversation),
    /// The conversation did not begin: the process has no file descriptor left.
    Failed(io::Error),
}

impl Outcome {
    fn judge(self, args: &Args, target: &Target, ended: &Ended) -> Result<(), Failure> {
        match self {
            Outcome::Answer(answer, begun) => args.judge(target, answer, ended, begun),
            Outcome::Conversation(conversation) => {
                conversation.judge(&target.authority, ended, args.output.as_deref())
            }
            Outcome::Failed(error) => Err(Failure::Internal(error.to_string())),
        }
    }
}

/// Waits briefly for the peer to close the connection after the answer. Returns false if the peer does not, or
/// if the answer can no longer be written. The connection is then reset.
fn took_leave(outcome: &Result<Whole, Broken>, mut stream: &UnixStream) -> bool {
    match outcome {
        Err(Broken::Sink(_)) => false,
        Err(Broken::Cut(_)) | Ok(Whole::ToTheEnd) => true,
        Ok(Whole::Declared) | Err(Broken::Refused(_)) => {
            let mut rest = vec![0; 64 * 1024];
            let told = stream.shutdown(Shutdown::Write);
            let bounded = told.and_then(|()| stream.set_read_timeout(Some(READ_TIMEOUT)));
            // A few extra bytes are no reason for a reset.
            let mut read = || bounded.as_ref().ok().and_then(|()| stream.read(&mut rest).ok());
            let ends = (0..4).map_while(|_| read()).find(|count| *count == 0);
            ends.is_some()
        }
    }
}

impl Args {
    /// Talks to the peer through `stream`. Ends the connection through `stopper` if it must not end by itself.
    fn talk(
        &self,
        target: &Target,
        stream: &UnixStream,
        mut stopper: UnixStream,
        console: Console,
    ) -> Outcome {
        let Some(resource) = &target.resource else {
            let ends = stopper.try_clone();
            let open = (|| self.open(), self.output.is_none());
            return match ends.and_then(|ends| stream::converse(stream, ends, open, console)) {
                Ok(conversation) => {
                    if !conversation.goes_on() {
                        // The connection may have ended already.
                        let _ = stopper.write_all(&[0]);
                    }
                    Outcome::Conversation(conversation)
                }
                Err(error) => {
                    let _ = stopper.write_all(&[0]);
                    Outcome::Failed(error)
                }
            };
        };
        let begun = Cell::new(false);
        let answer = self.fetch(&target.authority, resource, stream, &begun);
        if !took_leave(&answer, stream) {
            // The connection may have ended already.
            let _ = stopper.write_all(&[0]);
        }
        // No more data is sent, and the connection ends.
        let _ = stream.shutdown(Shutdown::Both);
        Outcome::Answer(answer, begun.get())
    }

    /// Fetches a resource of a server. `begun` is set if there was data to write.
    fn fetch(
        &self,
        host: &str,
        resource: &str,
        stream: &UnixStream,
        begun: &Cell<bool>,
    ) -> Result<Whole, Broken> {
        let open = || {
            begun.set(true);
            self.open()
        };
        let request = format!(
            "GET {resource} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: plait/{}\r\n\r\n",
            env!("CARGO_PKG_VERSION")
        );
        let mut writer = stream;
        writer.write_all(request.as_bytes()).map_err(|_| Broken::Cut(None))?;
        http::answer(&mut BufReader::new(stream), open)
    }

    /// Opens the destination of the answer.
    fn open(&self) -> io::Result<Box<dyn Write>> {
        Ok(match &self.output {
            Some(path) => Box::new(File::create(path)?),
            None => Box::new(io::stdout().lock()),
        })
    }

    /// Returns the result of a fetch. The end of the connection explains a truncated answer. If `begun` is set,
    /// the file of --output has been overwritten.
    fn judge(
        &self,
        target: &Target,
        outcome: Result<Whole, Broken>,
        ended: &Ended,
        begun: bool,
    ) -> Result<(), Failure> {
        let problem = ended.problem.as_deref();
        let failed = |words: &[Option<&str>]| {
            let words: Vec<&str> = words.iter().flatten().copied().collect();
            Err(Failure::Peer(format!("{}: {}", target.authority, words.join(": "))))
        };
        let left = self.output.as_deref().filter(|file| begun && file.is_file());
        let left = left.map(|file| format!("`{}` is incomplete", file.display()));
        match outcome {
            Ok(Whole::Declared) => Ok(()),
            Ok(Whole::ToTheEnd) => match problem {
                Some(_) => failed(&[problem, left.as_deref()]),
                None => Ok(()),
            },
            Err(Broken::Refused(what)) => failed(&[Some(&what), left.as_deref()]),
            Err(Broken::Cut(None)) => failed(&[problem.or(Some("it sent no answer"))]),
            Err(Broken::Cut(what)) => failed(&[what.as_deref(), problem, left.as_deref()]),
            // A closed pipe (`| head`) is no error.
            Err(Broken::Sink(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(Broken::Sink(error)) => Err(match &self.output {
                Some(file) => Failure::unwritable("--output", file, &error),
                None => Failure::stdout(&error),
            }),
        }
    }
}
