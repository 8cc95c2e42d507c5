//! What the descriptions of all routes have in common: the problems any of them may answer, how bytes come, what an id looks
//! like. Said here once, not at every handler.
//!
//! Guarantees: what a handler says itself stays as it is. `cargo xtask schema` holds the whole description against the
//! running server.

use model::TemplateVersion;
use utoipa::Number;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr, Response};

use super::bytes;

const PROBLEM: &str = "application/problem+json";
const JSON: &str = "application/json";
/// How a handler says that it sends the bytes of a file.
const BYTES: &str = "application/octet-stream";
/// What `model::ids` takes.
const ID: &str = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$";
/// What `model::Label` takes: `14` or `14.2`.
const VERSION: &str = r"^[1-9][0-9]{0,8}(\.[1-9][0-9]{0,8})?$";

/// What a period may be called: `model::scopes::label`.
const LABEL: &str = r"^[^\x00-\x1F\x7F-\x9F]{0,99}[^\s\x00-\x1F\x7F-\x9F]$";

/// A problem that many operations may answer: status, name among the components, meaning.
type Shared = (&'static str, &'static str, &'static str);

const BAD_REQUEST: Shared =
    ("400", "BadRequest", "API_004, DOC_007: the path, the query or the body is not right");
const UNAUTHORIZED: Shared = ("401", "Unauthorized", "API_002: there is no valid token");
const FORBIDDEN: Shared = ("403", "Forbidden", "API_003: the token does not allow this");
const NOT_FOUND: Shared =
    ("404", "NotFound", "API_001: there is no such thing, or none this caller may know of");
const TOO_LARGE: Shared = ("413", "TooLarge", "API_005: the body is too large");
const NOT_JSON: Shared = ("415", "UnsupportedMediaType", "API_004: the body is not marked as JSON");
const UNAVAILABLE: Shared = ("503", "Unavailable", "DOC_003, API_007: not now; try again");

const ALL: [Shared; 7] = [BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_LARGE, NOT_JSON, UNAVAILABLE];

/// Adds what all routes have in common, and what the description is about.
pub(super) fn complete(mut description: OpenApi) -> OpenApi {
    description.info.title = "Saveguard".to_owned();
    description.info.version = env!("CARGO_PKG_VERSION").to_owned();
    description.info.description = Some("The safe place ONLYOFFICE saves to.".to_owned());
    add_components(description.components.get_or_insert_with(Default::default));
    for (path, item) in &mut description.paths.paths {
        let is_ours = path.starts_with("/api/");
        for (method, operation) in operations(item) {
            for parameter in operation.parameters.iter_mut().flatten().filter(|_| is_ours) {
                describe_id(parameter);
                describe_number(parameter);
            }
            describe_bytes(operation);
            for shared in problems_of(path, method, operation) {
                add_problem(operation, shared);
            }
        }
    }
    description
}

fn add_components(components: &mut Components) {
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    for (_, name, meaning) in ALL {
        components.responses.insert(name.to_owned(), RefOr::T(problem(meaning)));
    }
}

fn problem(meaning: &str) -> Response {
    let content = Content::new(Some(Ref::from_schema_name("ProblemDocument")));
    let mut response = Response::new(meaning);
    response.content.insert(PROBLEM.to_owned(), RefOr::T(content));
    response
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    let all = [("get", get), ("put", put), ("post", post), ("delete", delete), ("patch", patch)];
    all.into_iter().filter_map(|(method, operation)| operation.as_mut().map(|operation| (method, operation)))
}

/// The problems an operation may answer because of what it takes, whatever it does.
fn problems_of(path: &str, method: &str, operation: &Operation) -> Vec<Shared> {
    let parameters = operation.parameters.iter().flatten();
    let is_about_something = parameters.clone().any(is_in_path);
    let has_bearer = operation.security.as_ref().is_some_and(|ways| !ways.is_empty());
    let has_body = operation.request_body.is_some();
    let facts = [
        (BAD_REQUEST, has_body || parameters.count() > 0),
        (UNAUTHORIZED, has_bearer),
        // The cookie of a page changes nothing for other sites, whatever the role.
        (FORBIDDEN, has_bearer && method != "get"),
        (NOT_FOUND, has_bearer && is_about_something),
        (TOO_LARGE, has_body),
        (NOT_JSON, takes_json(operation)),
        (UNAVAILABLE, path != "/healthz"),
    ];
    facts.into_iter().filter_map(|(shared, is_so)| is_so.then_some(shared)).collect()
}

fn is_in_path(parameter: &RefOr<Parameter>) -> bool {
    matches!(parameter, RefOr::T(Parameter { parameter_in: ParameterIn::Path, .. }))
}

fn takes_json(operation: &Operation) -> bool {
    matches!(&operation.request_body, Some(RefOr::T(body)) if body.content.contains_key(JSON))
}

fn add_problem(operation: &mut Operation, (status, name, meaning): Shared) {
    let responses = &mut operation.responses.responses;
    match responses.get_mut(status) {
        Some(RefOr::T(known)) if known.description.is_empty() => known.description = meaning.to_owned(),
        Some(_) => {}
        None => {
            responses.insert(status.to_owned(), RefOr::Ref(Ref::from_response_name(name)));
        }
    }
}

/// Bytes come as what they are, whole or in part, or not at all if they are known or the part is outside.
fn describe_bytes(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let Some(RefOr::T(whole)) = responses.get_mut("200").filter(|each| is_bytes(each)) else { return };
    let binary = || {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let schema = ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build();
        RefOr::T(Content::new(Some(Schema::Object(schema))))
    };
    whole.content = bytes::content_types().map(|each| (each.to_owned(), binary())).collect();
    let mut part = Response::new("The part that `Range` asked for");
    part.content = whole.content.clone();
    responses.insert("206".to_owned(), RefOr::T(part));
    responses.insert("304".to_owned(), RefOr::T(Response::new("`If-None-Match` names it already")));
    responses.insert("416".to_owned(), RefOr::T(Response::new("The range lies outside of the content")));
}

fn is_bytes(response: &RefOr<Response>) -> bool {
    matches!(response, RefOr::T(response) if response.content.contains_key(BYTES))
}

fn describe_id(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(parameter) = parameter else { return };
    let pattern = match (&parameter.parameter_in, parameter.name.as_str()) {
        (ParameterIn::Path, "company" | "project" | "document") | (ParameterIn::Query, "project" | "id") => {
            ID
        }
        (
            ParameterIn::Path | ParameterIn::Query,
            "organisation" | "registration" | "accreditation" | "template",
        ) => ID,
        (ParameterIn::Path, "template_version") => TemplateVersion::PATTERN,
        (ParameterIn::Path, "period") => LABEL,
        (ParameterIn::Path, "log") => ID,
        (ParameterIn::Path | ParameterIn::Query, "version") => VERSION,
        _ => return,
    };
    let schema = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build();
    parameter.schema = Some(RefOr::T(Schema::Object(schema)));
}

/// Our numbers have no sign, and the usual formats do: they would be half as large.
fn describe_number(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(Parameter { schema: Some(RefOr::T(Schema::Object(schema))), .. }) = parameter else {
        return;
    };
    if schema.minimum.is_none() || schema.maximum.is_some() {
        return;
    }
    let is_short = matches!(schema.format, Some(SchemaFormat::KnownFormat(KnownFormat::Int32)));
    let most = if is_short { u64::from(u32::MAX) } else { u64::MAX };
    schema.format = None;
    schema.maximum = usize::try_from(most).ok().map(Number::UInt);
}

#[cfg(test)]
mod tests {
    use super::super::routes::openapi;
    use super::*;

    #[test]
    fn what_is_in_a_path_is_called_so_and_nothing_else_is() {
        for (path, mut item) in openapi().paths.paths {
            for (method, operation) in operations(&mut item) {
                let parameters = operation.parameters.iter().flatten().filter(|each| is_in_path(each));
                let mut named: Vec<String> = parameters
                    .map(|each| match each {
                        RefOr::T(parameter) => format!("{{{}}}", parameter.name),
                        RefOr::Ref(_) => String::new(),
                    })
                    .collect();
                let mut in_path: Vec<&str> = path.split('/').filter(|part| part.starts_with('{')).collect();
                named.sort_unstable();
                in_path.sort_unstable();
                assert_eq!(named, in_path, "{method} {path}");
            }
        }
    }

    #[test]
    fn every_operation_says_that_it_may_be_asked_to_come_back() {
        for (path, mut item) in openapi().paths.paths {
            for (method, operation) in operations(&mut item) {
                let is_said = operation.responses.responses.contains_key("503");
                assert_eq!(is_said, path != "/healthz", "{method} {path}");
            }
        }
    }
}
