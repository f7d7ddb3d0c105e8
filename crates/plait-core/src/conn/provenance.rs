//! What is told of a decision where somebody wants to know everything.
