//! The pages of the papers, as generated graphs.

use super::page::{After, Builder, Page};
use super::sizes::log_normal;
use plait_base::{RandomStream, Span};

/// Data about a page: its name, number of objects, bytes, and load time if the network takes no
/// time.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPage {
    pub(super) name: &'static str,
    /// Part of the names of its recordings.
    pub(super) host: &'static str,
    pub(super) objects: usize,
    pub(super) bytes: u64,
    pub(super) floor_ms: u64,
}

/// Pages that others measured with pReplay on recordings.
pub(super) const KNOWN: [KnownPage; 6] = [
    known("google", "google.com", 6, 906_147, 1_028),
    known("wikipedia", "wikipedia.org", 19, 131_954, 1_027),
    known("instagram", "instagram.com", 30, 1_671_349, 478),
    known("amazon", "amazon.com", 59, 1_200_666, 2_032),
    known("guardian", "theguardian.com", 228, 3_147_398, 7_978),
    known("huffpost", "huffingtonpost.com", 141, 3_132_974, 12_420),
];

/// The page of the ECF paper. Only its number of objects is known; bytes and floor are assumptions.
pub(super) const PROPOSED: KnownPage = known("cnn", "cnn.com", 107, 2_500_000, 2_000);

/// Returns all pages that have a name.
pub(super) fn all() -> impl Iterator<Item = &'static KnownPage> + Clone {
    KNOWN.iter().chain([&PROPOSED])
}

const fn known(
    name: &'static str,
    host: &'static str,
    objects: usize,
    bytes: u64,
    floor_ms: u64,
) -> KnownPage {
    KnownPage { name, host, objects, bytes, floor_ms }
}

/// Number of parts in which the HTML is parsed. A blocking script may stand between two parts.
const PARTS: usize = 4;

/// Draws times as shares of the whole; the graph is scaled afterwards.
struct Draw(RandomStream);

impl Draw {
    /// Returns a random time from `low` to `high`, in milliseconds.
    fn time(&mut self, low: u64, high: u64) -> Span {
        Span::from_micros(self.0.within(low * 1_000, high * 1_000))
    }

    fn index(&mut self, count: usize) -> usize {
        self.0.below(count as u64) as usize
    }
}

impl KnownPage {
    /// Returns the graph, in four levels. The HTML is the first level; it is parsed in parts as it
    /// arrives. Parsing requests style sheets and scripts (the second level). Each takes time to
    /// evaluate, and every third one blocks the next part. The HTML, or an evaluated style sheet or
    /// script, requests images and fonts (the third level). Late scripts (the fourth level) are
    /// requested after the HTML is parsed. The last activity, which depends on all others, runs on
    /// load.
    ///
    /// Times are scaled so that the page takes [`KnownPage::floor_ms`] if the network takes no time.
    pub(super) fn page(&self) -> Result<Page, String> {
        let mut draw = Draw(RandomStream::new(0, &["web", "graph", self.name]));
        let sizes = log_normal(self.name, self.objects, self.bytes);
        let mut sizes = sizes.into_iter();
        let mut page = Builder::default();
        let mut fetch =
            |page: &mut Builder, name: String| page.fetch(&name, sizes.next().unwrap_or_default());
        let late = self.objects.div_ceil(12);
        let early = self.objects.div_ceil(4);
        let seen = self.objects.saturating_sub(1 + late + early);
        let html = fetch(&mut page, "html".to_owned());
        let parts: Vec<u32> = (0..PARTS)
            .map(|part| {
                let time = draw.time(120, 240);
                page.compute(&format!("parse {part}"), time)
            })
            .collect();
        page.wait(html, After::FirstBytes, parts[0]);
        page.wait(html, After::End(Span::ZERO), parts[1]);
        for (part, next) in parts.iter().zip(&parts[1..]) {
            page.wait(*part, After::End(Span::ZERO), *next);
        }
        let mut evaluated = Vec::new();
        for number in 0..early {
            let object = fetch(&mut page, format!("early {number}"));
            let part = draw.index(PARTS - 1);
            page.wait(parts[part], After::Start(draw.time(1, 100)), object);
            let time = draw.time(1, 30);
            let run = page.compute(&format!("evaluate early {number}"), time);
            page.wait(object, After::End(Span::ZERO), run);
            // Every third one blocks the next part of the parsing.
            if number % 3 == 0 {
                page.wait(run, After::End(Span::ZERO), parts[part + 1]);
            }
            evaluated.push(run);
        }
        let on_load = page.compute("on load", Span::from_millis(20));
        for number in 0..seen {
            let object = fetch(&mut page, format!("image {number}"));
            if number % 4 == 3 {
                let by = evaluated[draw.index(evaluated.len())];
                page.wait(by, After::End(Span::ZERO), object);
            } else {
                let part = parts[draw.index(PARTS)];
                page.wait(part, After::Start(draw.time(1, 110)), object);
            }
            page.wait(object, After::End(Span::ZERO), on_load);
        }
        for number in 0..late {
            let object = fetch(&mut page, format!("late {number}"));
            page.wait(parts[PARTS - 1], After::End(draw.time(0, 30)), object);
            let time = draw.time(1, 40);
            let run = page.compute(&format!("evaluate late {number}"), time);
            page.wait(object, After::End(Span::ZERO), run);
            page.wait(run, After::End(Span::ZERO), on_load);
        }
        for run in evaluated {
            page.wait(run, After::End(Span::ZERO), on_load);
        }
        let floor = Span::from_millis(self.floor_ms);
        let whole = page.floor()?;
        page.scale(floor, whole);
        // Scaling rounds down. Add the missing time to the last activity.
        let short = floor.minus(page.floor()?);
        page.lengthen(on_load, short);
        page.build()
    }
}

/// Returns the page called `name`.
pub(super) fn by_name(name: &str) -> Option<&'static KnownPage> {
    all().find(|known| known.name == name)
}

/// Returns the page of a recording called `name`.
pub(super) fn recorded_as(name: &str) -> Option<&'static KnownPage> {
    KNOWN.iter().find(|known| name.contains(known.host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_have_the_objects_bytes_and_times_that_were_measured() {
        for known in all() {
            let page = known.page().unwrap();
            let has = (page.objects(), page.bytes(), page.floor());
            let floor = Span::from_millis(known.floor_ms);
            assert_eq!(has, (known.objects, known.bytes, floor), "{}", known.name);
        }
    }
}
