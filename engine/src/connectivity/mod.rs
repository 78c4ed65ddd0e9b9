//! Answers whether tips are complete, given a frontier of tips that were complete before.
