//! Measures a file: its functions, its structs, and its use of the connection.

use crate::source::SourceFile;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The type whose methods and calls are listed.
const CONNECTION: &str = "Connection";

/// Measurements of a file.
#[derive(Default)]
pub(crate) struct Sizes {
    /// Lines of each function from its signature to its last brace, by `Type::name`.
    pub(crate) functions: BTreeMap<String, usize>,
    /// Fields of each struct, and of each variant of an enum that names its fields.
    pub(crate) fields: BTreeMap<String, usize>,
    /// Lines of the `impl` blocks of each type, from the first word to the last brace. The `impl` of a trait
    /// does not count.
    pub(crate) impl_lines: BTreeMap<String, usize>,
    /// Methods that its `impl Connection` blocks define.
    pub(crate) methods: BTreeSet<String>,
    /// Methods that these blocks call on the connection itself.
    pub(crate) calls: BTreeSet<String>,
}

impl Sizes {
    pub(crate) fn of(file: &SourceFile) -> Sizes {
        let mut reader = Reader::default();
        reader.visit_file(&file.syntax);
        reader.sizes
    }

    /// Returns true if the file defines the struct or enum `name`.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.fields.keys().any(|it| it.split("::").next() == Some(name))
    }

    /// Returns true if the file has an `impl Connection`.
    pub(crate) fn has_connection(&self) -> bool {
        self.impl_lines.contains_key(CONNECTION)
    }
}

#[derive(Default)]
struct Reader {
    /// Enclosing type of the `impl` or trait, and enclosing functions.
    around: Vec<String>,
    in_connection: bool,
    sizes: Sizes,
}

impl Reader {
    fn function(&mut self, signature: &syn::Signature, from: usize, to: usize) {
        self.around.push(signature.ident.to_string());
        let size = self.sizes.functions.entry(self.around.join("::")).or_default();
        *size = (to + 1 - from).max(*size);
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.around.push(name);
        visit(self);
        self.around.pop();
    }
}

/// Returns the first line of a signature, which begins with its visibility.
fn begin(visibility: &syn::Visibility, signature: &syn::Signature) -> usize {
    match visibility {
        syn::Visibility::Inherited => signature.span().start().line,
        seen => seen.span().start().line,
    }
}

/// Returns the last segment of the path of a type, such as `Connection` of `super::Connection`.
fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => path.path.segments.last().unwrap().ident.to_string(),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => "_".to_owned(),
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.function(&item.sig, begin(&item.vis, &item.sig), item.block.span().end().line);
        visit::visit_item_fn(self, item);
        self.around.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.function(&item.sig, begin(&item.vis, &item.sig), item.block.span().end().line);
        if self.in_connection && self.around.len() == 2 {
            self.sizes.methods.insert(item.sig.ident.to_string());
        }
        visit::visit_impl_item_fn(self, item);
        self.around.pop();
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        let from = item.sig.span().start().line;
        let to = item.default.as_ref().map_or(from, |block| block.span().end().line);
        self.function(&item.sig, from, to);
        visit::visit_trait_item_fn(self, item);
        self.around.pop();
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let name = type_name(&item.self_ty);
        let outer = self.in_connection;
        self.in_connection = item.trait_.is_none() && name == CONNECTION;
        if item.trait_.is_none() {
            let (from, to) =
                (item.impl_token.span.start().line, item.brace_token.span.close().end().line);
            *self.sizes.impl_lines.entry(name.clone()).or_default() += to - from + 1;
        }
        self.within(name, |it| visit::visit_item_impl(it, item));
        self.in_connection = outer;
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.within(item.ident.to_string(), |it| visit::visit_item_trait(it, item));
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.sizes.fields.insert(item.ident.to_string(), item.fields.len());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        for variant in &item.variants {
            let name = format!("{}::{}", item.ident, variant.ident);
            self.sizes.fields.insert(name, variant.fields.len());
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let on_self = matches!(&*call.receiver, syn::Expr::Path(it) if it.path.is_ident("self"));
        if self.in_connection && on_self {
            self.sizes.calls.insert(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if let (true, 2, Some(first), Some(last)) =
            (self.in_connection, path.segments.len(), path.segments.first(), path.segments.last())
            && (first.ident == "Self" || first.ident == CONNECTION)
        {
            self.sizes.calls.insert(last.ident.to_string());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        if self.in_connection {
            calls_in_tokens(item.tokens.clone(), &mut self.sizes.calls);
        }
    }
}

/// Adds each `name` of `self.name(...)` in the arguments of a macro.
fn calls_in_tokens(tokens: TokenStream, into: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            calls_in_tokens(group.stream(), into);
            if let [TokenTree::Ident(own), TokenTree::Punct(_), TokenTree::Ident(name)] =
                &tokens[at.saturating_sub(3)..at]
                && own == "self"
                && group.delimiter() == Delimiter::Parenthesis
            {
                into.insert(name.to_string());
            }
        }
    }
}

/// Counts how often `tokens` index the subflows: `subflows[...]`.
pub(crate) fn indexed_subflows(tokens: TokenStream) -> usize {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut count = 0;
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        count += indexed_subflows(group.stream());
        let after_name = matches!(at.checked_sub(1).map(|at| &tokens[at]),
            Some(TokenTree::Ident(name)) if name == "subflows");
        count += usize::from(after_name && group.delimiter() == Delimiter::Bracket);
    }
    count
}

/// Names of constants that say neither what they limit nor their unit.
const VAGUE: [&str; 12] = [
    "MOST", "LEAST", "LONGEST", "SHORTEST", "PATIENCE", "FEW", "FEWEST", "OFTEN", "WHILE", "AMPLE",
    "GUESTS", "ENOUGH",
];

/// Counts the constants with a name of [`VAGUE`] and a number, a time or a size as their type.
pub(crate) fn vague_constants(tokens: TokenStream) -> usize {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let word = |at: usize| match tokens.get(at) {
        Some(TokenTree::Ident(name)) => name.to_string(),
        _ => String::new(),
    };
    let before = |at: usize| match at.checked_sub(1).map(|at| &tokens[at]) {
        // A parameter of a type, as in `<const MOST: usize>`.
        Some(TokenTree::Punct(sign)) => matches!(sign.as_char(), '<' | ','),
        _ => false,
    };
    let is_quantity = |name: &str| {
        ["u8", "u16", "u32", "u64", "u128", "usize", "f64", "Span", "Duration", "Time"]
            .contains(&name)
    };
    let mut count = 0;
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            count += vague_constants(group.stream());
        }
        let vague = word(at) == "const" && VAGUE.contains(&word(at + 1).as_str());
        count += usize::from(vague && is_quantity(&word(at + 3)) && !before(at));
    }
    count
}

/// Returns the number of `rustfmt::skip`.
pub(crate) fn rustfmt_skips(tokens: TokenStream) -> usize {
    let mut before = String::new();
    let mut count = 0;
    for token in tokens {
        match token {
            TokenTree::Group(group) => count += rustfmt_skips(group.stream()),
            TokenTree::Ident(name) => {
                count += usize::from(before == "rustfmt" && name == "skip");
                before = name.to_string();
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    count
}

#[test]
fn sizes_are_those_of_the_text() {
    let text = "
/// Documented.
#[derive(Debug)]
struct Wide { a: u8, b: u8, c: u8 }
enum Event { Sent { at: u8, len: u8 }, Lost(u8) }
impl Wide {
    /// One line of words,
    #[inline]
    pub(crate) fn long(
        &self,
    ) {
        fn inner() {}
    }
}
fn short() {}
";
    let sizes = Sizes::of(&SourceFile::parse("crates/x/src/a.rs", text));
    let functions: Vec<(&str, usize)> =
        sizes.functions.iter().map(|(name, lines)| (name.as_str(), *lines)).collect();
    assert_eq!(functions, [("Wide::long", 5), ("Wide::long::inner", 1), ("short", 1)]);
    let fields: Vec<(&str, usize)> =
        sizes.fields.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(fields, [("Event::Lost", 1), ("Event::Sent", 2), ("Wide", 3)]);
    assert_eq!(sizes.impl_lines, BTreeMap::from([("Wide".to_owned(), 9)]));
    assert!(sizes.defines("Wide") && sizes.defines("Event") && !sizes.defines("Sent"));
}

#[test]
fn the_hold_on_the_connection_is_seen() {
    let text = "
impl super::Connection {
    fn one(&mut self) { self.two(); other.three(); debug_assert!(self.four(self.subflows[0])); }
    fn five(&self) { Self::six(&self.subflows[self.first]); self.subflows.len(); }
}
impl Drop for Connection { fn drop(&mut self) { self.seven(); } }
";
    let file = SourceFile::parse("crates/x/src/a.rs", text);
    let sizes = Sizes::of(&file);
    assert_eq!(sizes.impl_lines, BTreeMap::from([("Connection".to_owned(), 4)]));
    assert_eq!(sizes.methods.into_iter().collect::<Vec<_>>(), ["five", "one"]);
    assert_eq!(sizes.calls.into_iter().collect::<Vec<_>>(), ["four", "six", "two"]);
    assert_eq!(indexed_subflows(file.tokens), 2);
}
