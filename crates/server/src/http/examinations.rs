//! Examinations: what `saveguard doctor` looks at, for operators who have a page and no shell.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use model::access::{Caller, Companies, Organisations, Role};

use super::answer::{Problem, ProblemDocument};
use super::caller::{Session, sign_api_token};
use super::documents::api_url_of;
use crate::app::App;
use crate::examining::{self, ExaminationView, Patient};
use crate::instances;

/// Longer than all its hops together.
const TOKEN_LIFE: Duration = Duration::from_secs(300);

/// How far the examination is: the one under way, or the last one.
#[utoipa::path(get, path = "/api/v1/operations/examination", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = ExaminationView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_examination(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<ExaminationView>, Problem> {
    session.allow_operating()?;
    Ok(Json(instances::newest(&app).await))
}

/// Looks at everything a save needs, hop by hop, with a whole editing session of a document of its own.
///
/// The work goes on in the background; ask for it again until `is_running` is false. An examination that is under way is joined.
#[utoipa::path(post, path = "/api/v1/operations/examination", tag = "operations", security(("bearer" = [])),
    responses((status = 202, body = ExaminationView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn begin_examination(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<(StatusCode, Json<ExaminationView>), Problem> {
    session.allow_operating()?;
    let patient = Patient {
        base: app.config.server.internal_url.as_str().trim_end_matches('/').to_owned(),
        token: token(&app),
        script_url: api_url_of(&app.config),
        http: examining::client().map_err(|cause| Problem::store(&cause))?,
        config: app.config.clone(),
    };
    Ok((StatusCode::ACCEPTED, Json(examining::begin(&app, patient).await?)))
}

/// The examination calls the service as the command line does.
fn token(app: &App) -> String {
    let caller = Caller {
        id: examining::CALLER.to_owned(),
        name: "Saveguard doctor".to_owned(),
        role: Role::Admin,
        companies: Companies::All,
        organisations: Organisations::NONE,
    };
    sign_api_token(&app.config, &caller, app.now(), TOKEN_LIFE)
}
