//! What is PostgreSQL's own: its schema, many writers at once, broken connections, restarts.

mod schema;
