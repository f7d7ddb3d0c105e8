//! Reads claims.

use super::super::names::Names;
use super::super::statement::Statement;
use super::super::{Claim, ClaimKind};
use super::{CLAIM_KEYS, Entry, Reader, Result};
use crate::error::{Fault, ScenarioError};
use crate::scenario::PlacedText;
use toml::Spanned;
use toml::de::DeValue;

impl Reader<'_> {
    pub(super) fn claim(
        &mut self,
        whole: &Spanned<DeValue<'_>>,
        entries: &[Entry<'_, '_>],
        field: &str,
    ) -> Result<()> {
        let (mut id, mut kind, mut core, mut says, mut holds) =
            (String::new(), None, false, String::new(), None);
        for (key, value) in entries {
            let field = format!("{field}.{}", key.get_ref());
            let text = match key.get_ref().as_ref() {
                "id" | "says" | "holds" => self.prose(value, &field)?,
                _ => self.text(value, &field)?,
            };
            let given = PlacedText { place: self.source.place(&value.span(), &field), text };
            match key.get_ref().as_ref() {
                "id" => id = given.text,
                "core" => core = given.switch()?,
                "says" => says = given.text,
                "kind" => {
                    let kinds = [ClaimKind::Exact, ClaimKind::Hard, ClaimKind::Soft];
                    let found = kinds.into_iter().find(|kind| kind.name() == given.text);
                    let names = || kinds.iter().map(|kind| kind.name());
                    kind = Some(found.ok_or_else(|| given.unknown("kind", names()))?);
                }
                "holds" => {
                    let rows = self.experiment.row_names();
                    let names = Names {
                        rows: &rows,
                        axes: &self.experiment.axes,
                        paths: &self.experiment.paths,
                    };
                    let locate = |at| self.source.place_within(value, at, &field);
                    let text = self.source.text(value, &field)?;
                    holds = Some(Statement::parse(&text, &locate, &names)?);
                }
                _ => return Err(self.unknown(key, "key of a claim", CLAIM_KEYS.iter().copied())),
            }
        }
        let place = self.source.place(&whole.span(), field);
        let missing = |what: &str| {
            ScenarioError::new(&place, Fault::Missing, "", &format!("the claim has no `{what}`"))
        };
        if id.is_empty() || says.is_empty() {
            return Err(missing(if id.is_empty() { "id" } else { "says" }));
        }
        let claim = Claim {
            id,
            kind: kind.ok_or_else(|| missing("kind"))?,
            core,
            says,
            holds: holds.ok_or_else(|| missing("holds"))?,
            place: place.clone(),
        };
        self.experiment.claims.push(claim);
        Ok(())
    }
}
