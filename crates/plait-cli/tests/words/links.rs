//! A link of a page leads to a file and a heading that exist.

use crate::tree::File;
use std::collections::{BTreeMap, BTreeSet};

/// Returns a complaint for each relative link to a file or heading that does not exist. `files` are the paths of all files
/// and directories of the tree.
pub(crate) fn judge(pages: &[File], files: &BTreeSet<String>) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut complaints = Vec::new();
    for page in pages {
        for (line, target) in targets(&page.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let place = format!("{}:{line}", page.path);
            let Some(path) = resolve(&page.path, path).filter(|it| files.contains(it)) else {
                complaints
                    .push(format!("{place}: no file at `{target}`: correct the path of the link"));
                continue;
            };
            let known = anchors.get(path.as_str());
            if !anchor.is_empty() && known.is_some_and(|known| !known.contains(anchor)) {
                complaints.push(format!(
                    "{place}: {path} has no heading `#{anchor}`: link one that it has, such as `#{}`",
                    nearest(anchor, known)
                ));
            }
        }
    }
    complaints
}

/// Returns the anchor with the longest common begin.
fn nearest<'a>(anchor: &str, known: Option<&'a BTreeSet<String>>) -> &'a str {
    let common = |it: &&String| it.bytes().zip(anchor.bytes()).take_while(|(a, b)| a == b).count();
    known.into_iter().flatten().max_by_key(common).map_or("", String::as_str)
}

/// Returns the path of a link in the page `page` from the root of the repository, or `None` if it leads out of it.
fn resolve(page: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the lines outside of fences, without code spans, each with its number.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_fence = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        in_fence ^= fence;
        if !in_fence && !fence {
            lines.push((at + 1, line.to_owned()));
        }
    }
    lines
}

/// Returns the targets of the links and pictures of a page with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // A code span may look like a link.
        let line: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        for (begin, end) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"'), ("href=\"", '"')] {
            for (at, _) in line.match_indices(begin) {
                let rest = &line[at + begin.len()..];
                let target = rest.split([end, ' ']).next().unwrap_or_default();
                found.push((number, target.to_owned()));
            }
        }
        let definition = line.trim_start().strip_prefix('[').and_then(|it| it.split_once("]: "));
        found.extend(definition.map(|(_, target)| (number, target.trim().to_owned())));
    }
    found
}

/// Returns the anchors of the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        for (at, _) in line.match_indices(" id=\"") {
            anchors.extend(line[at + 5..].split('"').next().map(str::to_owned));
        }
        let Some(title) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        else {
            continue;
        };
        let slug = slug(title);
        let repeated = (1..).map(|count| format!("{slug}-{count}"));
        let mut names = std::iter::once(slug.clone()).chain(repeated);
        anchors.extend(names.find(|it| !anchors.contains(it)));
    }
    anchors
}

/// Returns the anchor of a heading as GitHub and mkdocs.yml make it.
fn slug(title: &str) -> String {
    let mut parts = title.split("](");
    let first = parts.next().unwrap_or_default();
    let title = parts.fold(first.to_owned(), |title, part| {
        title + part.split_once(')').map_or("", |(_, rest)| rest)
    });
    let kept = title.trim().to_lowercase();
    let kept = kept.chars().filter(|it| it.is_alphanumeric() || "-_ ".contains(*it));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

#[test]
fn a_link_to_nothing_is_found() {
    let page = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let pages = [
        page(
            "docs/a.md",
            "# The `a` page, (first)\n## Twice\n## Twice\n[b](cc/b.md#b) [c](#twice-1)\n",
        ),
        page(
            "docs/cc/b.md",
            "# B\n`[no](link)`\n```\n[no](link)\n```\n[a](../a.md#the-a-page-first) [web](https://a.b/c)\n\
             [up](../../..) [gone](../gone.md)\n<img src=\"no.png\">\n[bad](../a.md#the-b)\n[dir](../cc/)\n[ref]: ../x.md\n",
        ),
    ];
    let files = ["docs", "docs/a.md", "docs/cc", "docs/cc/b.md"].map(str::to_owned);
    let expected = [
        "docs/cc/b.md:7: no file at `../../..`: correct the path of the link",
        "docs/cc/b.md:7: no file at `../gone.md`: correct the path of the link",
        "docs/cc/b.md:8: no file at `no.png`: correct the path of the link",
        "docs/cc/b.md:9: docs/a.md has no heading `#the-b`: link one that it has, such as `#the-a-page-first`",
        "docs/cc/b.md:11: no file at `../x.md`: correct the path of the link",
    ];
    assert_eq!(judge(&pages, &BTreeSet::from(files)), expected);
}
