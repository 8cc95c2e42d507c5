//! Is this Office file whole and safe?.
