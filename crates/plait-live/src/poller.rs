use plait_base::{Span, Time};
use plait_engine::Interest;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;

use crate::Clock;

/// Most events of one wait. The next wait returns the remaining ones.
const EVENTS: usize = 64;

/// Readiness of a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ready {
    /// Token of its registration.
    pub(crate) token: u64,
    /// It is readable, at its end, or has failed.
    pub(crate) read: bool,
    /// It is writable, hung up, or has failed.
    pub(crate) write: bool,
}

/// Waits for file descriptors, level-triggered.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn open() -> io::Result<Poller> {
        Ok(Poller { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    pub(crate) fn add(&self, fd: impl AsFd, token: u64, read: bool, write: bool) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), wanted(read, write))?)
    }

    /// Changes the readiness to wait for. `None` means that it is not registered.
    pub(crate) fn change(
        &self,
        fd: impl AsFd,
        token: u64,
        from: Option<Interest>,
        to: Option<Interest>,
    ) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        match (from, to) {
            (None, None) => {}
            (Some(_), None) => epoll::delete(&self.epoll, fd)?,
            (None, Some(Interest { read, write })) => {
                epoll::add(&self.epoll, fd, data, wanted(read, write))?;
            }
            (Some(_), Some(Interest { read, write })) => {
                epoll::modify(&self.epoll, fd, data, wanted(read, write))?;
            }
        }
        Ok(())
    }

    /// Waits until a file descriptor is ready, until the time `until`, or at most `longest`. Replaces the
    /// contents of `ready` by the events.
    pub(crate) fn wait(
        &self,
        clock: &Clock,
        until: Time,
        longest: Span,
        ready: &mut Vec<Ready>,
    ) -> io::Result<()> {
        let wait = clock.until(until, longest);
        let wait =
            Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        ready.clear();
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        let (events, _) = match epoll::wait(&self.epoll, &mut events[..], Some(&wait)) {
            Ok(found) => found,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let (flags, data) = (event.flags, event.data);
            let over = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            ready.push(Ready {
                token: data.u64(),
                read: flags.intersects(over | epoll::EventFlags::IN | epoll::EventFlags::RDHUP),
                write: flags.intersects(over | epoll::EventFlags::OUT),
            });
        }
        Ok(())
    }
}

fn wanted(read: bool, write: bool) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, read);
    flags.set(epoll::EventFlags::OUT, write);
    flags
}
