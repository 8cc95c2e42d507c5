//! Sockets.
use axum::http::StatusCode;
pub(super) async fn connect() -> StatusCode {
    StatusCode::NOT_FOUND
}
pub(super) async fn connect_versioned() -> StatusCode {
    StatusCode::NOT_FOUND
}
