//! Words and rules of Saveguard: no I/O, no async, no clock.
