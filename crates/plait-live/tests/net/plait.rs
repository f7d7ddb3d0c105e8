//! plait in the server's place.

use super::Bed;
use plait_core::{Config, ConnectionSpec};
use plait_live::{Happening, ServeSettings, Server, StackCounters};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// What a connection is made from, with this scheduler.
pub fn spec(scheduler: &str) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse(scheduler).unwrap();
    let controller = plait_cc::Spec::parse("cubic").unwrap();
    ConnectionSpec {
        config: Config::default(),
        paths: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
        addresses: Vec::new(),
    }
}

/// A server that runs on a thread of its own.
pub struct Serving {
    stopper: UnixStream,
    thread: JoinHandle<io::Result<(Vec<Happening>, StackCounters)>>,
}

impl Serving {
    /// In front of `to`, at the service's address of the bed.
    pub fn start(bed: &Bed, to: SocketAddr, spec: ConnectionSpec) -> io::Result<Serving> {
        let listen = SocketAddr::new(bed.family.service(), 80);
        let device = "plait0".to_owned();
        let settings = ServeSettings { listen, advertise: Vec::new(), to, device, spec };
        let mut server = bed.server.within(|| Server::open(settings))??;
        let stopper = server.stopper()?;
        let space = bed.server.try_clone()?;
        let thread = thread::spawn(move || {
            space.enter()?;
            let mut happenings = Vec::new();
            server.run(|happening| happenings.push(happening.clone()))?;
            Ok((happenings, server.counters()))
        });
        Ok(Serving { stopper, thread })
    }

    /// Ends it, and tells what happened.
    pub fn stop(mut self) -> io::Result<(Vec<Happening>, StackCounters)> {
        self.stopper.write_all(&[0])?;
        self.thread.join().unwrap()
    }
}
