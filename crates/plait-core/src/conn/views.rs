//! What a scheduler sees of the subflows, kept up to date with as little work as may be.
