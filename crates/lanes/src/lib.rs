//! Tasks of one key run in order, tasks of different keys run in parallel.
