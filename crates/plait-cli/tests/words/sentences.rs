//! No sentence is so long that it must be read twice.

use crate::prose::{CODE, Paragraph, Word};

/// Most words of a sentence. The aim is 25.
const MOST_WORDS: usize = 40;

/// Words with a period that ends no sentence.
const ABBREVIATIONS: [&str; 11] =
    ["al", "approx", "cf", "e.g", "eq", "etc", "fig", "i.e", "resp", "sec", "vs"];

/// Returns the sentences of a paragraph. A period ends a sentence if a blank follows, unless it belongs to an
/// abbreviation or an initial.
pub(crate) fn sentences(words: &[Word]) -> Vec<&[Word]> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        if next.is_none_or(|next| ends(word, next)) {
            found.push(&words[begin..=at]);
            begin = at + 1;
        }
    }
    found
}

/// Returns whether a sentence ends between two words.
fn ends(word: &Word, next: &Word) -> bool {
    let text = word.text.trim_end_matches(['"', '\'', ')', '*', '_', '\u{201d}']);
    let Some(body) = text.strip_suffix(['.', '!', '?']) else { return false };
    if body.ends_with('.') && !body.ends_with(|it: char| it.is_alphanumeric()) {
        return false;
    }
    let bare = body.trim_start_matches(|it: char| !it.is_alphanumeric());
    let capital = |text: &str| text.starts_with(|it: char| it.is_uppercase());
    let initial = bare.len() == 1 && capital(bare) && capital(&next.text);
    let abbreviation = ABBREVIATIONS.contains(&bare.to_lowercase().as_str());
    !initial && !abbreviation
}

/// Returns the number of words. Names in a list ("`a`, `b`, `c`") are one word, because a reader looks one up.
fn length(sentence: &[Word]) -> usize {
    let is_name = |word: &Word| word.text.trim_end_matches(',') == CODE;
    let repeats = sentence.windows(2).filter(|pair| is_name(&pair[0]) && is_name(&pair[1]));
    sentence.iter().filter(|word| word.counts()).count() - repeats.count()
}

/// Returns a complaint for each sentence that is too long.
pub(crate) fn judge(paragraphs: &[Paragraph]) -> Vec<String> {
    let mut complaints = Vec::new();
    for Paragraph { file, words, .. } in paragraphs {
        for sentence in sentences(words) {
            let count = length(sentence);
            if count > MOST_WORDS {
                let line = sentence[0].line;
                let begin: Vec<&str> = sentence.iter().take(8).map(|it| it.text.as_str()).collect();
                let begin = begin.join(" ").replace(CODE, "`...`");
                complaints.push(format!(
                    "{file}:{line}: a sentence of {count} words, and at most {MOST_WORDS} are allowed: \
                     \"{begin} ...\": write one idea a sentence"
                ));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose;
    use crate::tree::File;

    fn page(text: &str) -> Vec<Paragraph> {
        prose::of_page(&File { path: "a.md".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn a_sentence_ends_where_a_reader_sees_its_end() {
        let text = "It has 4.0 % (i.e. little). A list ... of `a.b.c`. See Huang et al., who \"know.\" J. Doe agrees with M. a is 1.";
        let found = page(text);
        let lengths: Vec<usize> =
            sentences(&found[0].words).into_iter().map(<[Word]>::len).collect();
        assert_eq!(lengths, [6, 5, 6, 5, 3]);
    }

    #[test]
    fn a_long_sentence_is_found_with_its_line() {
        let short = "word ".repeat(39);
        let good = format!("{short}end. Another one.\n\n* {short}`a`, `b`, `c`\n");
        assert_eq!(judge(&page(&good)), Vec::<String>::new());
        let bad = format!("Good.\nThis is {short}end.\n");
        let expected = "a.md:2: a sentence of 42 words, and at most 40 are allowed: \"This is word word word \
                        word word word ...\": write one idea a sentence";
        assert_eq!(judge(&page(&bad)), [expected]);
    }
}
