//! Imports among the files of a crate. A file imports another if it names an item that the other defines, in a
//! `use` or by a path. A re-exported name is followed to the file that defines it. A `pub use` alone imports
//! nothing, and neither does a `mod`.
//!
//! Not detected: method calls, and the expansions of the crate's macros.

use crate::source::SourceFile;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Maps each file to the files that it imports.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

type Names = Vec<String>;

/// Returns the cycles of `graph`: sets of two or more files in which each file leads to every other. The
/// largest comes first.
pub(crate) fn circles(graph: &Graph) -> Vec<BTreeSet<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reachable(graph, file))).collect();
    let mut circles: BTreeSet<BTreeSet<&str>> = reach
        .iter()
        .map(|(file, reached)| {
            let back = |other: &&&str| reach.get(**other).is_some_and(|it| it.contains(file));
            reached.iter().filter(back).copied().collect()
        })
        .collect();
    circles.retain(|circle| circle.len() > 1);
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Returns every file that is reachable by imports from `file`.
fn reachable<'a>(graph: &'a Graph, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        for next in graph.get(file).into_iter().flatten() {
            if found.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    found
}

/// Returns the imports among `files`, all of one crate.
pub(crate) fn imports(files: &[SourceFile]) -> Graph {
    let mut reader = Reader::default();
    for (at, file) in files.iter().enumerate() {
        reader.file = at;
        reader.module.clone_from(&file.module);
        reader.declare_module();
        reader.visit_file(&file.syntax);
    }
    let mut graph = Graph::new();
    for (from, module, path) in &reader.named {
        let imported = graph.entry(files[*from].path.clone()).or_default();
        for found in reader.resolve(module, path, &mut BTreeSet::new()) {
            if let Found::Item(file) = found
                && file != *from
            {
                imported.insert(files[file].path.clone());
            }
        }
    }
    graph
}

/// The target of a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    /// An item that this file defines, or a part of such an item.
    Item(usize),
    Module(Names),
}

/// The names of a module.
#[derive(Default)]
struct Module {
    found: BTreeMap<String, Vec<Found>>,
    aliases: BTreeMap<String, Vec<Names>>,
    globs: Vec<Names>,
}

#[derive(Default)]
struct Reader {
    modules: BTreeMap<Names, Module>,
    /// Paths as written: the file, the module, the path.
    named: BTreeSet<(usize, Names, Names)>,
    file: usize,
    module: Names,
}

impl Reader {
    fn declare_module(&mut self) {
        self.modules.entry(self.module.clone()).or_default();
        if let Some((name, parent)) = self.module.split_last() {
            let of_parent = self.modules.entry(parent.to_vec()).or_default();
            let module = Found::Module(self.module.clone());
            of_parent.found.entry(name.clone()).or_default().push(module);
        }
    }

    fn own(&mut self) -> &mut Module {
        self.modules.entry(self.module.clone()).or_default()
    }

    fn define(&mut self, name: &syn::Ident) {
        let item = Found::Item(self.file);
        self.own().found.entry(name.to_string()).or_default().push(item);
    }

    fn name(&mut self, path: Names) {
        self.named.insert((self.file, self.module.clone(), path));
    }

    /// Adds a tree of `use`. Its names count as imports unless they are re-exported.
    fn take_use(&mut self, tree: &syn::UseTree, before: &[String], passed_on: bool) {
        let below = |name: &syn::Ident| {
            let mut path = before.to_vec();
            if name != "self" || before.is_empty() {
                path.push(name.to_string());
            }
            path
        };
        let (path, name) = match tree {
            syn::UseTree::Path(it) => return self.take_use(&it.tree, &below(&it.ident), passed_on),
            syn::UseTree::Group(it) => {
                it.items.iter().for_each(|tree| self.take_use(tree, before, passed_on));
                return;
            }
            syn::UseTree::Glob(_) => {
                self.own().globs.push(before.to_vec());
                (before.to_vec(), None)
            }
            syn::UseTree::Name(it) => (below(&it.ident), below(&it.ident).pop()),
            syn::UseTree::Rename(it) => (below(&it.ident), Some(it.rename.to_string())),
        };
        if let Some(name) = name {
            self.own().aliases.entry(name).or_default().push(path.clone());
        }
        if !passed_on {
            self.name(path);
        }
    }

    /// Resolves `path` in `module`; empty if it leads to another crate.
    fn resolve(
        &self,
        module: &[String],
        path: &[String],
        seen: &mut BTreeSet<(Names, String)>,
    ) -> Vec<Found> {
        let mut rest = path;
        let mut here = match rest {
            [] => return Vec::new(),
            [first, ..] if first == "crate" => vec![Found::Module(Vec::new())],
            [first, ..] if first == "self" => vec![Found::Module(module.to_vec())],
            [first, ..] if first == "super" => {
                let up = rest.iter().take_while(|name| *name == "super").count();
                let kept = module.len().saturating_sub(up);
                rest = &rest[up - 1..];
                vec![Found::Module(module[..kept].to_vec())]
            }
            [first, ..] => self.look_up(module, first, seen),
        };
        for name in &rest[1..] {
            let below = here.iter().flat_map(|found| match found {
                Found::Item(_) => vec![found.clone()],
                Found::Module(module) => self.look_up(module, name, seen),
            });
            here = below.collect();
        }
        here
    }

    fn look_up(
        &self,
        module: &[String],
        name: &str,
        seen: &mut BTreeSet<(Names, String)>,
    ) -> Vec<Found> {
        let Some(names) = self.modules.get(module) else { return Vec::new() };
        if !seen.insert((module.to_vec(), name.to_owned())) {
            return Vec::new();
        }
        let mut found = names.found.get(name).cloned().unwrap_or_default();
        for path in names.aliases.get(name).into_iter().flatten() {
            found.extend(self.resolve(module, path, seen));
        }
        if found.is_empty() {
            for glob in &names.globs {
                // Each glob is tried separately: the first must not hide the names of the second.
                for target in self.resolve(module, glob, &mut seen.clone()) {
                    if let Found::Module(target) = target {
                        found.extend(self.look_up(&target, name, seen));
                    }
                }
            }
        }
        found
    }

    /// Records the paths among the arguments of a macro.
    fn name_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons, mut after_dot) = (Names::new(), 0, false);
        for token in tokens {
            match &token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.name(std::mem::take(&mut path));
                    colons = 0;
                    match other {
                        // A field or a method has no path.
                        TokenTree::Ident(name) if !after_dot => path.push(name.to_string()),
                        TokenTree::Group(group) => self.name_tokens(group.stream()),
                        _ => {}
                    }
                }
            }
            after_dot = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '.');
        }
        self.name(path);
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            syn::Item::Const(it) => self.define(&it.ident),
            syn::Item::Enum(it) => self.define(&it.ident),
            syn::Item::Fn(it) => self.define(&it.sig.ident),
            syn::Item::Static(it) => self.define(&it.ident),
            syn::Item::Struct(it) => self.define(&it.ident),
            syn::Item::Trait(it) => self.define(&it.ident),
            syn::Item::Type(it) => self.define(&it.ident),
            syn::Item::Union(it) => self.define(&it.ident),
            syn::Item::Macro(it) => {
                it.ident.iter().for_each(|name| self.define(name));
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if item.content.is_some() {
            self.module.push(item.ident.to_string());
            self.declare_module();
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let passed_on = !matches!(item.vis, syn::Visibility::Inherited);
        if item.leading_colon.is_none() {
            self.take_use(&item.tree, &[], passed_on);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            self.name(path.segments.iter().map(|it| it.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        visit::visit_macro(self, item);
        self.name_tokens(item.tokens.clone());
    }

    // These contain paths too, but the paths name no used item.
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}
}

fn graph_of(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<SourceFile> = files
        .iter()
        .map(|(path, text)| SourceFile::parse(&format!("crates/x/src/{path}"), text))
        .collect();
    let short = |path: &str| path.strip_prefix("crates/x/src/").unwrap().to_owned();
    imports(&files)
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| format!("{} -> {}", short(from), short(to))))
        .collect()
}

#[test]
fn a_name_is_followed_to_the_file_that_defines_it() {
    let found = graph_of(&[
        ("lib.rs", "mod data; mod tcp; pub use data::Queue; pub(crate) use tcp::send as sending;"),
        ("data/mod.rs", "mod queue; pub use self::queue::{Queue, LIMIT}; pub const NONE: u8 = 0;"),
        ("data/queue.rs", "pub struct Queue; pub const LIMIT: u8 = super::NONE;"),
        ("tcp/mod.rs", "pub mod send; pub enum Kind { Syn } use crate::Queue; use std::fmt;"),
        ("tcp/send.rs", "use super::Kind; fn send() { crate::sending::other(Kind::Syn) }"),
        ("tcp/rtt.rs", "use crate::data::*; fn rtt() { assert_eq!(LIMIT, crate::tcp::Kind::Syn) }"),
        ("tcp/idle.rs", "use crate::data::*; use crate::tcp::send; use plait_base::Queue;"),
    ]);
    let expected = [
        "data/queue.rs -> data/mod.rs",
        "tcp/mod.rs -> data/queue.rs",
        "tcp/rtt.rs -> data/queue.rs",
        "tcp/rtt.rs -> tcp/mod.rs",
        "tcp/send.rs -> tcp/mod.rs",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_circle_has_every_file_that_leads_back() {
    let pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "f"), ("f", "e")];
    let mut graph = Graph::new();
    for (from, to) in pairs {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    assert_eq!(circles(&graph), [BTreeSet::from(["a", "b", "c"]), BTreeSet::from(["e", "f"])]);
}
