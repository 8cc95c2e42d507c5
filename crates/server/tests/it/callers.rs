//! The host application's published keys, and API tokens from their making to their revocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use model::CompanyId;
use model::access::{Caller, Companies, Role};
use reqwest::Method;
use saveguard::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use understudy::Settings;

use crate::support::{Stage, admin};

const JWKS: &str = include_str!("../keys/jwks.json");

/// An identity provider: serves a JWKS, and counts how often it was asked.
struct Provider {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    async fn start() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let keys = axum::routing::get(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { JWKS }
        });
        let away = axum::routing::get(|| async { axum::response::Redirect::temporary("/keys") });
        let router = axum::Router::new().route("/keys", keys).route("/moved", away);
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, asked }
    }
}

fn signed(kid: &str, changes: &Value) -> String {
    let mut claims = json!({
        "sub": "ann", "role": "viewer", "companies": ["acme"], "exp": SystemClock.now().as_second() + 300,
        "iss": "https://id.example", "aud": ["saveguard"],
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let key = EncodingKey::from_ec_der(include_bytes!("../keys/ec.der"));
    let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::ES256) };
    jsonwebtoken::encode(&header, &claims, &key).unwrap()
}

async fn status(stage: &Stage, path: &str, bearer: &str) -> u16 {
    let request = stage.http.get(format!("{}{path}", stage.base)).bearer_auth(bearer);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_signed_with_published_keys_count_and_made_up_keys_ask_nobody() {
    let provider = Provider::start().await;
    let settings = [
        ("API_JWKS", format!("{}/keys", provider.url)),
        ("API_ISSUER", "https://id.example".to_owned()),
        ("API_AUDIENCE", "saveguard".to_owned()),
    ];
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let stage = Stage::start_with(&settings, Settings::default()).await;
    let company = "/api/v1/companies/acme";

    assert_eq!(status(&stage, company, &signed("ec", &json!({}))).await, 200);
    for (kid, changes) in [
        ("rsa", json!({})),
        ("ec", json!({ "aud": "other" })),
        ("ec", json!({ "iss": "https://evil.example" })),
        ("ec", json!({ "exp": 1000 })),
        ("ec", json!({ "role": "root" })),
        ("made-up-1", json!({})),
        ("made-up-2", json!({})),
    ] {
        assert_eq!(status(&stage, company, &signed(kid, &changes)).await, 401, "{kid} {changes}");
    }
    let instances = stage.apps().count();
    assert_eq!(
        provider.asked.load(Ordering::Relaxed),
        instances,
        "each at the start, and not again within a minute"
    );
    let page = format!("{}/sign-in?token={}&next=/", stage.base, signed("ec", &json!({})));
    assert_eq!(stage.http.get(page).send().await.unwrap().status().as_u16(), 303);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_published_keys_the_service_starts_and_the_secret_counts() {
    let provider = Provider::start().await;
    for address in
        [format!("{}/moved", provider.url), format!("{}/gone", provider.url), "/nowhere".to_owned()]
    {
        let stage = Stage::start_with(&[("API_JWKS", &address)], Settings::default()).await;

        assert_eq!(status(&stage, "/api/v1/companies/acme", &signed("ec", &json!({}))).await, 401);
        assert_eq!(status(&stage, "/api/v1/companies/acme", &stage.token(&admin())).await, 200);
        stage.stop().await;
    }
    assert_eq!(provider.asked.load(Ordering::Relaxed), 0, "a redirect is not followed");
}

fn of(company: &str, role: Role) -> Caller {
    let companies = Companies::Only(vec![CompanyId::parse(company).unwrap()]);
    Caller { id: format!("{company}-{}", role.as_str()), role, companies, ..admin() }
}

/// Status and body of a call with JSON.
async fn call(stage: &Stage, bearer: &str, (method, path): (Method, &str), body: &Value) -> (u16, Value) {
    let request = stage.http.request(method, format!("{}{path}", stage.base)).bearer_auth(bearer).json(body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or(Value::Null))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_token_is_shown_once_opens_its_company_and_ends_with_its_revocation() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let admin = stage.token(&of("acme", Role::Admin));
    let wish = json!({ "name": "export", "role": "viewer", "companies": ["acme"], "expires_days": 30 });

    let (made_status, made) = call(&stage, &admin, (Method::POST, "/api/v1/tokens"), &wish).await;
    let token = made["token"].as_str().unwrap();

    assert_eq!(made_status, 201);
    assert!(token.starts_with("sg_"), "{made}");
    assert_eq!(status(&stage, "/api/v1/documents/12345", token).await, 200);
    assert_eq!(status(&stage, "/api/v1/tokens", token).await, 403);
    let number = made["details"]["number"].as_u64().unwrap();
    let used = async || stage.app().ledger.api_token(number).await.unwrap().unwrap().last_used_at.is_some();
    stage.wait_until("the use is noted", used).await;
    let (_, listed) = call(&stage, &admin, (Method::GET, "/api/v1/tokens"), &Value::Null).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!((&listed[0]["name"], &listed[0]["created_by"]), (&json!("export"), &json!("acme-admin")));
    assert!(!listed.to_string().contains("sg_"), "never again");

    let path = format!("/api/v1/tokens/{number}");
    for _ in 0..2 {
        assert_eq!(call(&stage, &admin, (Method::DELETE, &path), &Value::Null).await.0, 204);
        assert_eq!(status(&stage, "/api/v1/documents/12345", token).await, 401);
    }
    let chain = stage.app().ledger.audit("company:acme", 0, 100).await.unwrap();
    let acts: Vec<_> = chain.iter().map(|(entry, _)| (entry.actor.as_str(), entry.action.as_str())).collect();
    let expected = [
        ("root", "company-created"),
        ("root", "project-created"),
        ("saveguard", "heads-anchored"),
        ("acme-admin", "token-created"),
        ("acme-admin", "token-revoked"),
    ];
    assert_eq!(acts, expected);
    let copy = stage.folder().join("copy");
    stage.app().ledger.write_snapshot(&copy).await.unwrap();
    let ledger = std::fs::read(copy).unwrap();
    assert!(!ledger.windows(token.len()).any(|window| window == token.as_bytes()), "only its hash is kept");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hands_out_more_than_they_have() {
    let stage = Stage::start().await;
    stage.post("/api/v1/companies", &json!({ "id": "other", "name": "Other" })).await;
    let wish = |role: &str, companies: &[&str]| json!({ "name": "x", "role": role, "companies": companies });
    let admin = stage.token(&of("acme", Role::Admin));
    let make = async |bearer: &str, wish: Value| {
        call(&stage, bearer, (Method::POST, "/api/v1/tokens"), &wish).await.0
    };

    assert_eq!(make(&admin, wish("admin", &["acme"])).await, 201);
    assert_eq!(make(&admin, wish("viewer", &["acme", "other"])).await, 404);
    assert_eq!(make(&admin, wish("viewer", &["acme", "missing"])).await, 404);
    assert_eq!(make(&admin, wish("viewer", &["*"])).await, 403);
    assert_eq!(make(&stage.token(&of("acme", Role::Editor)), wish("viewer", &["acme"])).await, 403);
    assert_eq!(make(&stage.token(&crate::support::admin()), wish("admin", &["*"])).await, 201);
    assert_eq!(make(&stage.token(&crate::support::admin()), wish("viewer", &["missing"])).await, 404);
    for strange in [
        wish("root", &["acme"]),
        wish("viewer", &[]),
        wish("viewer", &["../x"]),
        wish("viewer", &["*", "acme"]),
        json!({ "name": "", "role": "viewer", "companies": ["acme"] }),
        json!({ "name": "x", "role": "viewer", "companies": ["acme"], "expires_days": 0 }),
        json!({ "name": "x", "role": "viewer", "companies": ["acme"], "unheard": 1 }),
    ] {
        assert_eq!(make(&admin, strange.clone()).await, 400, "{strange}");
    }
    let listed = async |bearer: &str| {
        call(&stage, bearer, (Method::GET, "/api/v1/tokens"), &Value::Null).await.1.as_array().unwrap().len()
    };
    assert_eq!(listed(&admin).await, 1);
    assert_eq!(listed(&stage.token(&crate::support::admin())).await, 2);
    stage.stop().await;
}
