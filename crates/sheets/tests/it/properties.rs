//! What holds for all workbooks.
