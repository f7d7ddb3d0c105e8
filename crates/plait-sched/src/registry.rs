//! The lists of schedulers and decorators, which help, validation, documentation and the contract
//! tests read.

use crate::{Decorator, Entry};
use plait_params::{About, Listed};

pub use crate::decorators::DECORATORS;
pub use crate::schedulers::SCHEDULERS;

/// The default scheduler: the first one of `docs/promise.md`, whose worst cell against
/// the best path alone is the best of all. A test compares the two.
pub const DEFAULT: &str = "slot";

impl Listed for Entry {
    const WHAT: &'static str = "scheduler";

    fn list() -> &'static [Entry] {
        crate::schedulers()
    }

    fn about(&self) -> About {
        self.about
    }
}

impl Listed for Decorator {
    const WHAT: &'static str = "decorator";

    fn list() -> &'static [Decorator] {
        DECORATORS
    }

    fn about(&self) -> About {
        self.about
    }
}
