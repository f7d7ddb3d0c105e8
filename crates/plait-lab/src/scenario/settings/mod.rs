//! The settings of a scenario. Flags and their help, scenario files, sweeps, experiments, their
//! schema and the names in errors all read [`SETTINGS`]. To add a setting, add an entry to a table
//! below this folder and use the value. Most fields of the core's configuration need no other
//! change.

mod comparison;
mod connection;
mod execution;
mod setting;

use super::tables::{count, joined};
pub(super) use connection::KERNELS;
pub(crate) use connection::{IDLE_RESTARTS, RTOS};
pub use setting::Setting;

const TABLES: [&[Setting]; 3] = [comparison::SETTINGS, connection::SETTINGS, execution::SETTINGS];
const ALL: [Setting; count(&TABLES)] = joined(setting::BLANK, &TABLES);

/// Every setting except the paths, in the order of the command line. They are read in this order,
/// with two exceptions: links come before the paths, and sweeps come last.
pub const SETTINGS: &[Setting] = &ALL;

impl Setting {
    /// Returns the setting of this name, spelled with `-` or `_`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Setting> {
        let spelled = name.replace('_', "-");
        SETTINGS.iter().find(|setting| setting.name == spelled)
    }
}
