//! Presence, wake-ups and leases: hints only, losing them loses nothing.
