//! `plait list`: lists the entries of the registries.

use crate::console::{Console, deliver, json};
use crate::failure::Failure;
use crate::output::{Output, TableFormat};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plait_report::list::{ListDocument, ListKind};
use plait_report::render::wrap;

const EXAMPLES: &str = "Examples:
  plait list
  plait list schedulers blest
  plait list measures --json";

/// List schedulers, controllers, workloads, paths and measures
///
/// With a name, it prints the page of that entry: the idea, the formula, the source, strengths and
/// weaknesses, parameters, and for a scheduler its measurements. `--format markdown` prints the page
/// in Markdown.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Kind of entries [default: list the kinds]
    #[arg(value_parser = kind())]
    kind: Option<ListKind>,
    /// Print the page of this entry
    name: Option<String>,
    #[command(flatten)]
    output: Output,
}

fn kind() -> impl TypedValueParser<Value = ListKind> {
    let named = ListKind::ALL.map(|kind| PossibleValue::new(kind.plural()).help(kind.summary()));
    // The parser has already refused every other name.
    let kind = |text: String| ListKind::ALL.into_iter().find(|it| it.plural() == text);
    PossibleValuesParser::new(named).map(move |text| kind(text).unwrap_or(ListKind::Schedulers))
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let document = match args.kind {
        Some(kind) => ListDocument::of(kind, args.name.as_deref()).map_err(Failure::Usage)?,
        None => ListDocument::of_kinds(),
    };
    let reader = args.output.reader(console);
    let text = match (args.output.json, args.output.format, &args.name) {
        (true, ..) => json(&document)?,
        (_, Some(TableFormat::Csv), _) => document.csv(),
        (_, Some(TableFormat::Markdown), None) => document.markdown(),
        (_, Some(TableFormat::Markdown), Some(_)) => document.markdown_pages(),
        (_, None, Some(_)) => document.pages(reader.width),
        (_, None, None) => document.text(reader.width, reader.colour),
    };
    args.output.deliver(&text)?;
    if args.kind.is_none() && args.output.is_plain() {
        let next = "`plait list schedulers` lists the schedulers, `plait list schedulers ecf` prints a page.";
        deliver(&format!("\n{}\n", wrap(next, console.width).join("\n")), None)?;
    }
    Ok(())
}
