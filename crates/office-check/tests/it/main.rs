//! The check from outside, over the files in `corpus/` and over attacks made here.

mod corpus;
mod verdicts;
