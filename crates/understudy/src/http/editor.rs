//! The browser's side: the script pages load, and the editor it opens.
use axum::http::StatusCode;
pub(super) async fn api_js() -> StatusCode {
    StatusCode::NOT_FOUND
}
pub(super) async fn asset() -> StatusCode {
    StatusCode::NOT_FOUND
}
pub(super) async fn versioned_asset() -> StatusCode {
    StatusCode::NOT_FOUND
}
