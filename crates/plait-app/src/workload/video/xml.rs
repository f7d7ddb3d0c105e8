//! Limits on an XML document, checked before it is parsed. The parser compares each attribute and
//! each namespace with all earlier ones, so large numbers of them take quadratic time.

use core::fmt;

/// Maximum number of attributes of an element.
const MOST_ATTRIBUTES: usize = 64;
/// Maximum number of namespace declarations of a document.
const MOST_NAMESPACES: usize = 1_000;
/// Maximum depth of nested elements.
const MOST_DEPTH: usize = 64;

/// A limit that a document exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Excess {
    /// Position of the element that exceeds the limit, in bytes.
    pub(super) at: usize,
    what: &'static str,
    most: usize,
}

/// Prints, for example, `more than 64 attributes of an element`.
impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} {}", self.most, self.what)
    }
}

/// Checks every tag. Text that is not XML passes, because the parser reports a better error.
///
/// # Errors
/// Returns the first limit that an element exceeds.
pub(super) fn check(text: &str) -> Result<(), Excess> {
    let (mut at, mut depth, mut namespaces) = (0, 0_usize, 0);
    while let Some(next) = text.get(at..).and_then(|rest| rest.find('<')) {
        let start = at + next;
        let rest = &text[start..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")];
        if let Some((_, end)) = skipped.into_iter().find(|(begin, _)| rest.starts_with(begin)) {
            let Some(length) = rest.find(end) else { return Ok(()) };
            at = start + length + end.len();
            continue;
        }
        let tag = Tag::read(rest);
        at = start + tag.length;
        if rest.starts_with("</") {
            depth = depth.saturating_sub(1);
            continue;
        }
        namespaces += tag.namespaces;
        let limits = [
            (tag.attributes, MOST_ATTRIBUTES, "attributes of an element"),
            (namespaces, MOST_NAMESPACES, "declarations of namespaces"),
            (depth + 1, MOST_DEPTH, "elements inside each other"),
        ];
        if let Some((_, most, what)) = limits.into_iter().find(|(count, most, _)| count > most) {
            return Err(Excess { at: start, what, most });
        }
        if !tag.empty {
            depth += 1;
        }
    }
    Ok(())
}

/// Properties of a tag.
#[derive(Default)]
struct Tag {
    /// Length in bytes, including `<` and `>`.
    length: usize,
    attributes: usize,
    /// Number of attributes that declare a namespace.
    namespaces: usize,
    /// Whether it ends with `/>`.
    empty: bool,
}

impl Tag {
    fn read(text: &str) -> Tag {
        let mut tag = Tag { length: text.len(), ..Tag::default() };
        let (mut quote, mut before, mut word) = (None, b' ', 0);
        for (at, byte) in text.bytes().enumerate() {
            match (quote, byte) {
                (Some(open), _) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => {
                    tag.attributes += 1;
                    let name = text.get(word..at).unwrap_or_default();
                    tag.namespaces += usize::from(name.trim_start().starts_with("xmlns"));
                }
                (None, b'>') => {
                    (tag.length, tag.empty) = (at + 1, before == b'/');
                    break;
                }
                _ => {}
            }
            // A name follows white space or a value.
            if quote.is_none() && (byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'')) {
                word = at + 1;
            }
            before = byte;
        }
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, at: usize, says: &str) {
        let excess = check(text).unwrap_err();
        assert_eq!((excess.at, excess.to_string().as_str()), (at, says));
    }

    #[test]
    fn attributes_namespaces_and_depth_have_limits() {
        let attributes =
            |count: usize| (0..count).map(|it| format!(" a{it}='>'")).collect::<String>();
        assert_eq!(check(&format!("<a><b{}/></a>", attributes(64))), Ok(()));
        let more = "more than 64 attributes of an element";
        refused(&format!("<a><b{}/></a>", attributes(65)), 3, more);
        refused(&format!("<a{}", attributes(65)), 0, more);
        let declared = |count: usize| "<b xmlns:c=\"d=e\" f='g'></b>".repeat(count);
        assert_eq!(check(&declared(1_000)), Ok(()));
        refused(&declared(1_001), 27 * 1_000, "more than 1000 declarations of namespaces");
        assert_eq!(check(&"<a>".repeat(64)), Ok(()));
        refused(&"<a>".repeat(65), 64 * 3, "more than 64 elements inside each other");
        assert_eq!(check(&"<a><b/></a>".repeat(200)), Ok(()));
    }

    #[test]
    fn comments_data_and_instructions_are_no_elements() {
        let inside = "= ".repeat(200);
        for text in [
            format!("<!-- <{inside}> -->"),
            format!("<![CDATA[ <a {inside}> ]]>"),
            format!("<?xml {inside}?>"),
            format!("<!DOCTYPE {inside}>"),
            format!("<a>{inside}</a>"),
            format!("<!-- {inside}"),
        ] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
    }
}
