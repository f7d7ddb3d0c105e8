//! Rates of words that show how plain a text is.

use crate::prose::Paragraph;

/// A rate that a text must keep, per 1,000 words.
pub(crate) struct Rate {
    pub(crate) words: &'static [&'static str],
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) remedy: &'static str,
}

pub(crate) const RATES: [Rate; 3] = [
    Rate {
        words: &["if", "when"],
        least: 4.0,
        most: f64::INFINITY,
        remedy: "begin conditions with `if` or `when`, and keep `where` for places",
    },
    Rate {
        words: &["what"],
        least: 0.0,
        most: 3.0,
        remedy: "name the thing: \"pending ACKs\", not \"what is owed\"",
    },
    Rate {
        words: &["tell", "tells", "telling", "told"],
        least: 0.0,
        most: 1.0,
        remedy: "use the field's verb: a peer advertises, a log reports, a value says",
    },
];

/// Texts with fewer words have no rate.
const LEAST_WORDS: usize = 2_000;
/// Most places that a complaint lists.
const MOST_PLACES: usize = 40;

impl Rate {
    /// Returns a complaint if the text `name` breaks this rate.
    fn judge(&self, name: &str, paragraphs: &[&Paragraph], count: usize) -> Option<String> {
        let mut places = Vec::new();
        for paragraph in paragraphs {
            let hits = paragraph.words.iter().filter(|it| self.words.contains(&it.bare().as_str()));
            places.extend(hits.map(|word| format!("{}:{}", paragraph.file, word.line)));
        }
        let rate = places.len() as f64 * 1_000.0 / count as f64;
        if (self.least..=self.most).contains(&rate) {
            return None;
        }
        let words = self.words.join("/");
        let (limit, places) = match rate < self.least {
            true => (format!("at least {}", self.least), String::new()),
            false => {
                let more = if places.len() > MOST_PLACES { " ..." } else { "" };
                places.truncate(MOST_PLACES);
                (format!("at most {}", self.most), format!(" ({}{more})", places.join(" ")))
            }
        };
        Some(format!(
            "{name}: \"{words}\" {rate:.2} times per 1,000 words, and the rule is {limit}: {}{places}",
            self.remedy
        ))
    }
}

/// Returns the number of words without code.
pub(crate) fn count(paragraphs: &[&Paragraph]) -> usize {
    let words = paragraphs.iter().flat_map(|it| &it.words);
    words.filter(|it| !it.bare().is_empty()).count()
}

/// Returns a complaint for each rate that the text `name` breaks.
pub(crate) fn judge(name: &str, paragraphs: &[&Paragraph]) -> Vec<String> {
    let count = count(paragraphs);
    if count < LEAST_WORDS {
        return Vec::new();
    }
    RATES.iter().filter_map(|rate| rate.judge(name, paragraphs, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose;
    use crate::tree::File;

    fn complaints(text: &str) -> Vec<String> {
        let page = prose::of_page(&File { path: "a.md".to_owned(), text: text.to_owned() });
        judge("docs", &page.iter().collect::<Vec<_>>())
    }

    #[test]
    fn words_beyond_their_rates_are_found() {
        let others = "word ".repeat(1_990);
        let good = format!(
            "If it rains, `if` so. What is told when? If when if when if, if when. {others}"
        );
        assert_eq!(complaints(&good), Vec::<String>::new());
        assert_eq!(
            complaints(&format!(
                "{others}\nWhat tells what it told what? What, what, what, told what!"
            ))
            .len(),
            3
        );
        let vague = format!(
            "If when if when if when if when, if when.\n{others}\n\nWhat what what what what what what."
        );
        let expected = "docs: \"what\" 3.49 times per 1,000 words, and the rule is at most 3: name the thing: \
                        \"pending ACKs\", not \"what is owed\" (a.md:4 a.md:4 a.md:4 a.md:4 a.md:4 a.md:4 a.md:4)";
        assert_eq!(complaints(&vague), [expected]);
        // A short text has no rate.
        assert_eq!(complaints("What is told?"), Vec::<String>::new());
    }

    #[test]
    fn a_text_without_conditions_is_found() {
        let expected = "docs: \"if/when\" 0.00 times per 1,000 words, and the rule is at least 4: begin conditions \
                        with `if` or `when`, and keep `where` for places";
        assert_eq!(complaints(&"word ".repeat(2_000)), [expected]);
    }
}
