//! The path memory of an engine's endpoint.

use crate::engine::Engine;
use crate::world::World;
use plait_core::{MemorySettings, PathEntry};

impl<W: World> Engine<W> {
    /// Remembers paths from now on, and begins with the entries of an earlier process.
    pub fn remember_paths(&mut self, settings: &MemorySettings, entries: &[PathEntry]) {
        let now = self.stack.now();
        self.stack.endpoint.remember_paths(settings);
        if let Some(memory) = self.stack.endpoint.path_memory() {
            entries.iter().for_each(|entry| memory.restore(now, entry));
        }
    }

    /// Returns the remembered paths, with the values of open subflows; empty without a memory.
    pub fn remembered_paths(&mut self) -> Vec<PathEntry> {
        let now = self.stack.now();
        self.stack.endpoint.learn_paths(now);
        self.stack.endpoint.path_memory().map_or_else(Vec::new, |memory| memory.entries(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::tests::Counted;
    use crate::world::{Interest, Outgoing};
    use crate::{Buffers, Names, OwnAddress, PathTable, Stack, Stream, Virtio};
    use plait_base::{ConnId, Span, Time};
    use plait_core::{Config, ConnectionSpec, PathKey, PathRecord};
    use std::io::{self, Read, Write};
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;
    use std::time::Duration;

    const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 99));

    /// A program that neither reads nor writes.
    struct Silent;

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    impl Write for Silent {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Stream for Silent {
        fn end(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn failure(&mut self) -> io::Result<Option<io::Error>> {
            Ok(None)
        }

        fn ask_after(&self, _: Duration) {}
    }

    /// A world that keeps the source of each packet.
    #[derive(Default)]
    struct Sources(Vec<IpAddr>);

    impl World for Sources {
        type Stream = Silent;

        fn now(&self) -> Time {
            Time::ZERO + Span::from_secs(1)
        }

        fn epoch_ns(&self) -> u64 {
            0
        }

        fn receive(&mut self, _: &mut [u8]) -> io::Result<Option<(usize, Virtio)>> {
            Ok(None)
        }

        fn offloads(&self) -> bool {
            false
        }

        fn send(&mut self, packet: &Outgoing<'_>) -> io::Result<io::Result<()>> {
            let source: [u8; 4] = packet.headers[12..16].try_into().unwrap();
            self.0.push(IpAddr::from(source));
            Ok(Ok(()))
        }

        fn dial(&mut self, _: SocketAddr, _: Option<Buffers>) -> io::Result<Silent> {
            Ok(Silent)
        }

        fn watch(
            &mut self,
            _: ConnId,
            _: &Silent,
            _: Option<Interest>,
            _: Option<Interest>,
        ) -> io::Result<()> {
            Ok(())
        }
    }

    fn own(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// An entry about the path from `own(last)` to the server.
    fn entry(last: u8, rate: u64) -> PathEntry {
        let min_rtt = Some(Span::from_millis(20));
        let record = PathRecord { received: Some(rate), min_rtt, ..PathRecord::default() };
        PathEntry { key: PathKey::new(own(last), SERVER), record, age: Span::from_secs(60) }
    }

    /// Returns the source of the first packet of a connection from `own(1)` and `own(2)`.
    fn first_source(settings: Option<&MemorySettings>, entries: &[PathEntry]) -> IpAddr {
        let own = |it| OwnAddress { address: own(it), exit: None, cost: 0, quota: None };
        let table = PathTable::new([1, 2].map(own).into());
        let stack =
            Stack::new(Sources::default(), Names::client(table), Box::new(Counted::default()));
        let mut engine = Engine::new(stack, None);
        if let Some(settings) = settings {
            engine.remember_paths(settings, entries);
        }
        let scheduler = plait_sched::Spec::parse("minrtt").unwrap();
        let controller = plait_cc::Spec::parse("cubic").unwrap();
        let spec = ConnectionSpec {
            config: Config::default(),
            paths: Vec::new(),
            scheduler: Arc::new(move || scheduler.build()),
            controller: Arc::new(move |_| controller.build()),
            addresses: Vec::new(),
        };
        engine.connect(spec, SocketAddr::new(SERVER, 80), Silent, None).unwrap();
        engine.turn(&[]).unwrap();
        assert!(engine.remembered_paths().len() <= entries.len());
        engine.stack.world.0[0]
    }

    #[test]
    fn a_connection_begins_from_the_address_that_the_memory_prefers() {
        let entries = [entry(1, 1_000_000), entry(2, 5_000_000)];
        let settings = MemorySettings::default();
        assert_eq!(first_source(None, &entries), own(1));
        assert_eq!(first_source(Some(&settings), &[]), own(1));
        assert_eq!(first_source(Some(&settings), &entries), own(2));
        let other = PathEntry { key: PathKey::new(own(2), own(1)), ..entries[1] };
        assert_eq!(first_source(Some(&settings), &[entries[0], other]), own(1), "another network");
        let short = MemorySettings { lifetime: Span::from_secs(59), ..settings };
        assert_eq!(first_source(Some(&short), &entries), own(1), "too old");
    }
}
