//! What PROTOCOL 2, 13 and 14 say, line by line.
