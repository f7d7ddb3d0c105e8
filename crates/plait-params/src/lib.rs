//! Declared parameters, registries whose entries have parameters, and the text
//! `name:key=value[,key=value...]` that chooses an entry (floor 0 of plait).
//!
//! Help, JSON, validation and documentation use the same declarations. Schedulers, decorators and
//! congestion controllers have one list each, of a type that implements [`Listed`].
//!
//! ```
//! use plait_params::{About, Chosen, ParamKind, Listed, Param};
//!
//! const SIZE: Param = Param {
//!     name: "size",
//!     kind: ParamKind::Whole { min: 1, max: 9, default: 2 },
//!     unit: "segments",
//!     help: "segments of a turn",
//!     clause: "",
//! };
//! struct Turns;
//! impl Listed for Turns {
//!     const WHAT: &'static str = "scheduler";
//!     fn list() -> &'static [Turns] {
//!         &[Turns]
//!     }
//!     fn about(&self) -> About {
//!         let aliases = &["rr"];
//!         About { name: "turns", aliases, idea: "", page: "", params: &[SIZE], state: &[] }
//!     }
//! }
//!
//! let chosen = Chosen::<Turns>::parse("rr:size=3seg")?;
//! assert_eq!(chosen.params().whole(&SIZE), 3);
//! assert_eq!(chosen.to_string(), "turns:size=3");
//! # Ok::<(), plait_params::SpecError>(())
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod chosen;
mod kind;
mod params;
mod registry;
mod window;

pub use chosen::{Chosen, SpecError, is_parameter, split_list};
pub use kind::{ParamKind, Value};
pub use params::{Param, ParamError, ParamFault, Params};
pub use registry::{About, Listed};
pub use window::FixedWindow;
