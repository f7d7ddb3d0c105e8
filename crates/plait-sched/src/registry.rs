//! The lists of schedulers and decorators, which help, validation, documentation and the contract
//! tests read.

use crate::{Decorator, Entry};
use plait_params::{About, Listed};

pub use crate::decorators::DECORATORS;
pub use crate::schedulers::SCHEDULERS;

/// The default scheduler of the live commands. In `docs/promise.md` only `slot` has a better worst cell
/// against the best path alone, but `slot` is slower than plain TCP in more cells. A test compares them.
pub const LIVE_DEFAULT: &str = "ecf+copy";

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
