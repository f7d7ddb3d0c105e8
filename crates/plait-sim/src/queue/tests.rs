use super::heap::Heap;
use super::*;
use plait_base::{RandomStream, Span};
use proptest::prelude::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

#[test]
fn ties_go_by_cause_and_a_source_has_one_entry() {
    for sources in [3, Few::MAX_SOURCES + 1] {
        let mut queue = EventQueue::new(sources);
        queue.set(0, Stamp { at: at(5), order: 7 });
        queue.set(1, Stamp { at: at(5), order: 3 });
        queue.set(2, Stamp { at: at(9), order: 1 });
        queue.set(2, Stamp { at: at(1), order: 9 });
        queue.set(2, Stamp { at: Time::NEVER, order: 10 });
        assert_eq!(queue.at(2), at(1));
        assert_eq!(queue.pop(), Some((at(1), 2)));
        assert_eq!(queue.at(2), Time::NEVER);
        assert_eq!(queue.pop(), Some((at(5), 1)));
        assert_eq!(queue.pop(), Some((at(5), 0)));
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.pop(), None);
    }
}

#[test]
fn few_sources_are_in_a_list_and_many_in_a_calendar() {
    assert!(matches!(EventQueue::new(Few::MAX_SOURCES).entries, Entries::Few(_)));
    assert!(matches!(EventQueue::new(Few::MAX_SOURCES + 1).entries, Entries::Many(_)));
}

/// The three queues side by side; they must always agree. `few` is used if it has room for the
/// sources.
struct Trio {
    few: Option<Few>,
    calendar: Calendar,
    heap: Heap,
    /// Expected entry of each source.
    live: Vec<Stamp>,
    now: u64,
    order: u64,
}

impl Trio {
    fn new(sources: usize) -> Trio {
        Trio {
            few: (sources <= Few::MAX_SOURCES).then(|| Few::new(sources)),
            calendar: Calendar::new(sources),
            heap: Heap::new(sources),
            live: vec![Stamp::NEVER; sources],
            now: 0,
            order: 0,
        }
    }

    fn set(&mut self, source: usize, nanos: u64) {
        // A packet's cause may be older than the cause of an entry set earlier.
        self.order += 1;
        let order = if self.order.is_multiple_of(5) { self.order / 2 } else { self.order };
        let at = Time::from_nanos(nanos.min(u64::MAX - 1));
        let stamp = Stamp { at, order: order << 16 | source as u64 };
        self.live[source] = stamp;
        self.few.iter_mut().for_each(|few| few.set(source, stamp));
        self.calendar.set(source, stamp);
        self.heap.set(source, stamp);
    }

    fn pop(&mut self) -> Option<usize> {
        let expected = self.heap.pop();
        self.few.iter_mut().for_each(|few| assert_eq!(few.pop(), expected));
        assert_eq!(self.calendar.pop(), expected);
        let (stamp, source) = expected?;
        self.now = stamp.at.as_nanos();
        self.live[source] = Stamp::NEVER;
        Some(source)
    }

    fn agree(&self) {
        for (source, stamp) in self.live.iter().enumerate() {
            self.few.iter().for_each(|few| assert_eq!(few.at(source), stamp.at));
            assert_eq!(self.calendar.stamp(source), *stamp);
        }
    }

    fn empty(&mut self) {
        while self.pop().is_some() {}
    }
}

/// An operation on the queues.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Sets a source to a time after the last event.
    Set {
        source: usize,
        after: u64,
    },
    /// Sets a source to the time of another entry, if that exists.
    Tie {
        source: usize,
        with: usize,
    },
    /// Sets a source to a time before the last event.
    Late {
        source: usize,
        by: u64,
    },
    Pop,
}

fn spans() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0u64),
        4 => 1..100u64,
        4 => 1..100_000u64,
        4 => 1..100_000_000u64,
        2 => 1..100_000_000_000u64,
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
}

fn steps(sources: usize) -> impl Strategy<Value = Vec<Step>> {
    let source = 0..sources;
    let step = prop_oneof![
        6 => (source.clone(), spans()).prop_map(|(source, after)| Step::Set { source, after }),
        2 => (source.clone(), source.clone()).prop_map(|(source, with)| Step::Tie { source, with }),
        1 => (source, spans()).prop_map(|(source, by)| Step::Late { source, by }),
        6 => Just(Step::Pop),
    ];
    prop::collection::vec(step, 1..600)
}

proptest! {
    #[test]
    fn whatever_is_set_comes_in_the_order_of_the_heap(
        (sources, steps) in prop_oneof![1..=Few::MAX_SOURCES, 1..80usize]
            .prop_flat_map(|n| (Just(n), steps(n)))
    ) {
        let mut trio = Trio::new(sources);
        for step in steps {
            match step {
                Step::Set { source, after } => trio.set(source, trio.now.saturating_add(after)),
                Step::Tie { source, with } => {
                    let tie = trio.live[with].at.as_nanos();
                    trio.set(source, if tie == u64::MAX { trio.now } else { tie });
                }
                Step::Late { source, by } => trio.set(source, trio.now.saturating_sub(by)),
                Step::Pop => {
                    trio.pop();
                }
            }
            trio.agree();
        }
        trio.empty();
    }

    /// Long runs with recurring sources, as in a simulation, so that the width adapts up and down.
    #[test]
    fn sources_that_come_round_come_in_the_order_of_the_heap(
        seed in any::<u64>(),
        sources in prop_oneof![1..=Few::MAX_SOURCES, 1..200usize],
        phases in prop::collection::vec((0..34u32, any::<bool>()), 1..5),
    ) {
        let mut stream = RandomStream::new(seed, &["queue"]);
        let mut trio = Trio::new(sources);
        for source in 0..sources {
            trio.set(source, 0);
        }
        for (magnitude, in_step) in phases {
            for _ in 0..20 * sources {
                let Some(source) = trio.pop() else { break };
                let step = 1u64 << magnitude;
                let after = if in_step { step } else { stream.below(2 * step) };
                trio.set(source, trio.now + after);
                // A timer that is set again before it expires, or postponed far.
                let other = stream.below(sources as u64) as usize;
                match stream.below(8) {
                    0 => trio.set(other, trio.now + stream.below(step)),
                    1 => trio.set(other, trio.now + 1_000 * step),
                    _ => {}
                }
            }
            trio.agree();
        }
        trio.empty();
    }
}
