//! Loading of a page: the objects to fetch now, and the time of the next event.

use super::page::{After, Does, Page};
use plait_base::{Span, Time};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// An event that happens at a known time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// A computation ends.
    End(u32),
    /// An activity starts.
    Start(u32),
}

/// State of an activity.
#[derive(Clone, Copy, Debug)]
struct ActivityState {
    /// Number of dependencies that are not met.
    missing: u32,
    /// Start of the activity, valid when no dependency is missing.
    at: Time,
    /// Its first bytes have arrived.
    begun: bool,
}

/// A page during loading.
#[derive(Debug)]
pub(super) struct Walk {
    page: Arc<Page>,
    /// If false, computing and waiting take no time.
    think: bool,
    standing: Vec<ActivityState>,
    due: BTreeSet<(Time, Due)>,
    /// Objects to request, in the order in which they became ready.
    wanted: VecDeque<u32>,
    /// The activity that fetches each object.
    fetches: Vec<u32>,
    /// Number of activities that have not ended.
    left: usize,
}

impl Walk {
    pub(super) fn new(page: Arc<Page>, think: bool, now: Time) -> Walk {
        let fresh = |needs| ActivityState { missing: needs, at: now, begun: false };
        let standing: Vec<_> = page.activities.iter().map(|it| fresh(it.needs)).collect();
        let mut fetches = vec![0; page.objects()];
        let mut due = BTreeSet::new();
        for (number, activity) in page.activities.iter().enumerate() {
            if let Does::Fetch(object) = activity.does {
                fetches[object as usize] = number as u32;
            }
            if activity.needs == 0 {
                due.insert((now, Due::Start(number as u32)));
            }
        }
        let left = page.activities.len();
        let mut walk = Walk { page, think, standing, due, wanted: VecDeque::new(), fetches, left };
        walk.advance(now);
        walk
    }

    /// Processes all events that are due by now.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some((at, due)) = self.due.first().copied()
            && at <= now
        {
            self.due.pop_first();
            match due {
                Due::Start(activity) => self.start(at, activity),
                Due::End(activity) => self.end(at, activity),
            }
        }
    }

    /// Returns the time of the next event.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|due| due.0)
    }

    /// Returns whether all activities have ended.
    pub(super) const fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Returns the number of objects to request.
    pub(super) fn wanted(&self) -> usize {
        self.wanted.len()
    }

    /// Returns the next object to request.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.wanted.pop_front()
    }

    /// Notes the first bytes of an object.
    pub(super) fn on_first_bytes(&mut self, now: Time, object: u32) {
        let activity = self.fetches[object as usize];
        if !self.standing[activity as usize].begun {
            self.standing[activity as usize].begun = true;
            self.tell(now, activity, |after| matches!(after, After::FirstBytes));
            self.advance(now);
        }
    }

    /// Notes the last byte of an object.
    pub(super) fn on_fetched(&mut self, now: Time, object: u32) {
        self.on_first_bytes(now, object);
        self.end(now, self.fetches[object as usize]);
        self.advance(now);
    }

    fn start(&mut self, at: Time, activity: u32) {
        match self.page.activities[activity as usize].does {
            Does::Fetch(object) => self.wanted.push_back(object),
            Does::Compute(time) => {
                self.due.insert((at + self.thought(time), Due::End(activity)));
            }
        }
        self.tell(at, activity, |after| matches!(after, After::Start(_)));
    }

    fn end(&mut self, at: Time, activity: u32) {
        self.left -= 1;
        let computes = matches!(self.page.activities[activity as usize].does, Does::Compute(_));
        self.tell(at, activity, |after| match after {
            After::End(_) => true,
            After::FirstBytes => computes,
            After::Start(_) => false,
        });
    }

    fn thought(&self, span: Span) -> Span {
        if self.think { span } else { Span::ZERO }
    }

    /// Resolves the dependencies on an activity for which `which` is true.
    fn tell(&mut self, at: Time, activity: u32, which: impl Fn(After) -> bool) {
        let page = Arc::clone(&self.page);
        for (next, after) in &page.activities[activity as usize].then {
            if !which(*after) {
                continue;
            }
            let delay = match *after {
                After::Start(delay) | After::End(delay) => self.thought(delay),
                After::FirstBytes => Span::ZERO,
            };
            let standing = &mut self.standing[*next as usize];
            standing.at = standing.at.max(at + delay);
            standing.missing -= 1;
            if standing.missing == 0 {
                self.due.insert((standing.at, Due::Start(*next)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::Builder;
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    /// Returns a page of HTML and a script. Parsing starts with the first bytes of the HTML and
    /// requests the script after 20 ms. The run of the script ends the page.
    fn page() -> Arc<Page> {
        let mut page = Builder::default();
        let html = page.fetch("html", 1000);
        let parse = page.compute("parse", ms(50));
        let script = page.fetch("script", 500);
        let run = page.compute("run", ms(30));
        page.wait(html, After::FirstBytes, parse);
        page.wait(parse, After::Start(ms(20)), script);
        page.wait(script, After::End(Span::ZERO), run);
        page.wait(parse, After::End(Span::ZERO), run);
        Arc::new(page.build().unwrap())
    }

    #[test]
    fn a_page_is_walked_in_the_order_of_its_graph() {
        let mut walk = Walk::new(page(), true, at(0));
        assert_eq!((walk.take(), walk.take(), walk.next()), (Some(0), None, None));
        walk.on_first_bytes(at(10), 0);
        assert_eq!(walk.next(), Some(at(30)));
        walk.advance(at(30));
        assert_eq!((walk.take(), walk.next()), (Some(1), Some(at(60))));
        walk.on_fetched(at(40), 0);
        walk.on_fetched(at(45), 1);
        walk.advance(at(60));
        assert_eq!((walk.next(), walk.is_over()), (Some(at(90)), false));
        walk.advance(at(90));
        assert!(walk.is_over() && walk.next().is_none());
    }

    #[test]
    fn without_thought_only_fetching_takes_time() {
        let mut walk = Walk::new(page(), false, at(0));
        assert_eq!(walk.take(), Some(0));
        walk.on_first_bytes(at(10), 0);
        assert_eq!(walk.take(), Some(1));
        walk.on_fetched(at(20), 1);
        assert!(!walk.is_over());
        walk.on_fetched(at(25), 0);
        assert!(walk.is_over());
    }
}
