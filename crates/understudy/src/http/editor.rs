//! The browser's side: the script that pages load, and the editor it opens in a frame.
//!
//! Guarantees: all files are part of the program; nothing is loaded from elsewhere. The editor's page forbids
//! itself anything but its own files, its own socket and pictures of people; it may be framed by any page.
//!
//! Does not build or bundle: the files under `web/` are served as they are.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws: wss:; \
     img-src 'self' data: https: http:; base-uri 'none'; form-action 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

pub(super) async fn api_js() -> Response {
    serve(SCRIPT, include_str!("../../web/api.js"))
}

pub(super) async fn versioned_asset(Path((_version, name)): Path<(String, String)>) -> Response {
    asset(Path(name)).await
}

pub(super) async fn asset(Path(name): Path<String>) -> Response {
    match name.as_str() {
        "editor.html" => {
            let page = serve("text/html; charset=utf-8", include_str!("../../web/editor.html"));
            ([(CONTENT_SECURITY_POLICY, POLICY)], page).into_response()
        }
        "editor.css" => serve("text/css; charset=utf-8", include_str!("../../web/editor.css")),
        "editor.js" => serve(SCRIPT, include_str!("../../web/editor.js")),
        "comments.js" => serve(SCRIPT, include_str!("../../web/comments.js")),
        "grid.js" => serve(SCRIPT, include_str!("../../web/grid.js")),
        "outbox.js" => serve(SCRIPT, include_str!("../../web/outbox.js")),
        "page.js" => serve(SCRIPT, include_str!("../../web/page.js")),
        "paper.js" => serve(SCRIPT, include_str!("../../web/paper.js")),
        "people.js" => serve(SCRIPT, include_str!("../../web/people.js")),
        "shape.js" => serve(SCRIPT, include_str!("../../web/shape.js")),
        "versions.js" => serve(SCRIPT, include_str!("../../web/versions.js")),
        "wire.js" => serve(SCRIPT, include_str!("../../web/wire.js")),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn serve(kind: &'static str, text: &'static str) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache"), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
    (headers, text).into_response()
}
