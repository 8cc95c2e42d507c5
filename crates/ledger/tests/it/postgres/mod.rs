//! What is PostgreSQL's own: its schema, many writers at once, broken connections, restarts.

mod at_once;
mod schema;
