//! A page as a graph of fetches, computations and their dependencies.

use plait_base::{Span, Time};

/// Maximum number of activities of a page; a larger page is an error.
pub(super) const MOST_ACTIVITIES: usize = 200_000;
/// Maximum size of a page in bytes; a larger page is an error.
const MOST_BYTES: u64 = 1 << 40;
/// Maximum number of activities that an error about a cycle names.
const NAMED: usize = 6;

/// The work of an activity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Does {
    /// Fetches the object with this number.
    Fetch(u32),
    /// Computes for this time.
    Compute(Span),
}

/// The condition under which a dependent activity may start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum After {
    /// This long after the start of the activity.
    Start(Span),
    /// When the first bytes of the object arrive; for a computation, when it ends.
    FirstBytes,
    /// This long after the end of the activity.
    End(Span),
}

/// An activity, and its dependents.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Activity {
    pub(super) does: Does,
    /// Number of dependencies.
    pub(super) needs: u32,
    pub(super) then: Vec<(u32, After)>,
}

/// A page: objects with sizes, and the activities that fetch and evaluate them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Page {
    /// Size of each object's body in bytes.
    objects: Vec<u64>,
    pub(super) activities: Vec<Activity>,
    floor: Span,
}

impl Page {
    /// Returns the number of objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Returns the size of an object's body in bytes, or `None` if the object does not exist.
    #[must_use]
    pub fn size(&self, object: u32) -> Option<u64> {
        self.objects.get(object as usize).copied()
    }

    /// Returns the total size of all bodies in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.objects.iter().sum()
    }

    /// Returns the load time of the page if fetching takes no time.
    #[must_use]
    pub const fn floor(&self) -> Span {
        self.floor
    }
}

/// Builds a [`Page`].
#[derive(Debug, Default)]
pub struct Builder {
    objects: Vec<u64>,
    activities: Vec<Activity>,
    names: Vec<String>,
}

impl Builder {
    /// Adds a fetch of an object of `bytes`. Returns the activity.
    pub fn fetch(&mut self, name: &str, bytes: u64) -> u32 {
        let object = self.objects.len() as u32;
        self.objects.push(bytes);
        self.add(name, Does::Fetch(object))
    }

    /// Adds a computation of `time`. Returns the activity.
    pub fn compute(&mut self, name: &str, time: Span) -> u32 {
        self.add(name, Does::Compute(time))
    }

    fn add(&mut self, name: &str, does: Does) -> u32 {
        self.activities.push(Activity { does, needs: 0, then: Vec::new() });
        self.names.push(name.to_owned());
        self.activities.len() as u32 - 1
    }

    /// Makes `second` depend on `first`. Both must be activities of this page.
    pub fn wait(&mut self, first: u32, after: After, second: u32) {
        self.activities[first as usize].then.push((second, after));
        self.activities[second as usize].needs += 1;
    }

    /// Multiplies every time by `by / of`, rounded down.
    pub(super) fn scale(&mut self, by: Span, of: Span) {
        let scaled = |span: Span| {
            let nanos = u128::from(span.as_nanos()) * u128::from(by.as_nanos());
            Span::from_nanos((nanos / u128::from(of.as_nanos().max(1))) as u64)
        };
        for activity in &mut self.activities {
            if let Does::Compute(time) = &mut activity.does {
                *time = scaled(*time);
            }
            for (_, after) in &mut activity.then {
                *after = match *after {
                    After::Start(delay) => After::Start(scaled(delay)),
                    After::End(delay) => After::End(scaled(delay)),
                    After::FirstBytes => After::FirstBytes,
                };
            }
        }
    }

    /// Adds time to a computation.
    pub(super) fn lengthen(&mut self, activity: u32, by: Span) {
        if let Does::Compute(time) = &mut self.activities[activity as usize].does {
            *time += by;
        }
    }

    /// Returns the load time of the page if fetching takes no time.
    ///
    /// # Errors
    /// See [`Builder::build`].
    pub(super) fn floor(&self) -> Result<Span, String> {
        let mut missing: Vec<u32> = self.activities.iter().map(|it| it.needs).collect();
        let mut starts = vec![Time::ZERO; self.activities.len()];
        let mut ready: Vec<usize> = (0..missing.len()).filter(|it| missing[*it] == 0).collect();
        let (mut last, mut settled) = (Time::ZERO, 0);
        while let Some(number) = ready.pop() {
            settled += 1;
            let activity = &self.activities[number];
            let end = match activity.does {
                Does::Fetch(_) => starts[number],
                Does::Compute(time) => starts[number] + time,
            };
            last = last.max(end);
            for (next, after) in &activity.then {
                let at = match after {
                    After::Start(delay) => starts[number] + *delay,
                    After::FirstBytes => end,
                    After::End(delay) => end + *delay,
                };
                let next = *next as usize;
                starts[next] = starts[next].max(at);
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(next);
                }
            }
        }
        if settled < self.activities.len() {
            return Err(self.cycle(&missing));
        }
        Ok(last.since(Time::ZERO))
    }

    /// Returns a message about a cycle among the activities that never become ready.
    fn cycle(&self, missing: &[u32]) -> String {
        // Each of these activities depends on another one of them, so going back ends in a cycle.
        let mut before = vec![None; missing.len()];
        for (number, activity) in self.activities.iter().enumerate() {
            if missing[number] > 0 {
                activity.then.iter().for_each(|(next, _)| before[*next as usize] = Some(number));
            }
        }
        let mut seen = vec![false; missing.len()];
        let mut at = missing.iter().position(|missing| *missing > 0);
        while let Some(number) = at.filter(|number| !seen[*number]) {
            seen[number] = true;
            at = before[number];
        }
        let first = at;
        let mut cycle = Vec::new();
        while let Some(number) = at {
            cycle.push(number);
            at = before[number].filter(|next| Some(*next) != first);
        }
        cycle.reverse();
        // Start with the activity that comes first in the file.
        let least = (0..cycle.len()).min_by_key(|place| cycle[*place]).unwrap_or(0);
        cycle.rotate_left(least);
        let name = |number: &usize| format!("`{}`", self.names[*number]);
        let mut names: Vec<String> = cycle.iter().map(name).collect();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!(
            "a cycle: {}{more} wait for each other; remove one of their dependencies",
            names.join(" -> ")
        )
    }

    /// Returns the page.
    ///
    /// # Errors
    /// Returns an error if there is no object, if the dependencies have a cycle, or if a limit on
    /// activities or bytes is exceeded.
    pub fn build(self) -> Result<Page, String> {
        if self.objects.is_empty() {
            return Err("no object to fetch; a page has at least one".to_owned());
        }
        if self.activities.len() > MOST_ACTIVITIES {
            return Err(format!("more than {MOST_ACTIVITIES} activities, the limit of a page"));
        }
        let bytes = self.objects.iter().map(|bytes| u128::from(*bytes)).sum::<u128>();
        if bytes > u128::from(MOST_BYTES) {
            return Err(format!("{bytes} bytes; a page has at most {MOST_BYTES}"));
        }
        let floor = self.floor()?;
        Ok(Page { objects: self.objects, activities: self.activities, floor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn the_floor_is_the_longest_way_through_the_computations() {
        let mut page = Builder::default();
        let html = page.fetch("html", 1000);
        let parse = page.compute("parse", ms(100));
        let script = page.fetch("script", 500);
        let run = page.compute("run", ms(30));
        page.wait(html, After::FirstBytes, parse);
        page.wait(parse, After::Start(ms(80)), script);
        page.wait(script, After::End(ms(5)), run);
        let page = page.build().unwrap();
        assert_eq!((page.floor(), page.objects(), page.bytes()), (ms(115), 2, 1500));
    }

    #[test]
    fn a_cycle_is_named() {
        let mut page = Builder::default();
        let html = page.fetch("html", 1000);
        let [one, two, three] = ["one", "two", "three"].map(|name| page.compute(name, ms(1)));
        page.wait(html, After::End(ms(0)), one);
        page.wait(one, After::End(ms(0)), two);
        page.wait(two, After::End(ms(0)), one);
        page.wait(two, After::End(ms(0)), three);
        let error = page.build().unwrap_err();
        assert!(error.contains("a cycle: `one` -> `two` wait for each other"), "{error}");
        assert_eq!(
            Builder::default().build().unwrap_err(),
            "no object to fetch; a page has at least one"
        );
    }
}
