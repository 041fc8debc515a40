//! Requests to Glue's Iceberg REST endpoint, signed as AWS's own library signs them.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{Cluster, run_python};

const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// Requests as they came.
type Seen = Arc<Mutex<Vec<Value>>>;

/// Just enough of a catalog to be asked of everything: one database and no table.
async fn answer(State(seen): State<Seen>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a body");
    let headers: Vec<(String, String)> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
        .collect();
    let path = parts.uri.path_and_query().expect("a path").to_string();
    let answer = match (parts.method.as_str(), parts.uri.path()) {
        ("GET", "/iceberg/v1/config") => {
            json!({"defaults": {}, "overrides": {"prefix": "catalogs/123456789012"}})
        }
        ("GET", "/iceberg/v1/catalogs/123456789012/namespaces") => {
            json!({"namespaces": [["a", "b c"]]})
        }
        ("POST", _) => json!({"namespace": ["new"], "properties": {}}),
        _ => Value::Null,
    };
    seen.lock().expect("no panic").push(json!({
        "method": parts.method.as_str(),
        "path": path,
        "headers": headers,
        "body": String::from_utf8(body.to_vec()).expect("text"),
    }));
    let status = match answer {
        Value::Null => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(answer.to_string()))
        .expect("a response")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_glue_are_signed_as_awss_library_signs_them() {
    let seen = Seen::default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(answer).with_state(Arc::clone(&seen));
    let served = tokio::spawn(async move { axum::serve(listener, router).await });

    let server = Cluster::server();
    let mut client = server.client().await;
    client
        .query(&format!(
            "CREATE CATALOG g PROPERTIES ('type' = 'glue', 'glue.endpoint' = 'http://{address}', \
             'glue.region' = 'eu-west-1', 'glue.id' = '123456789012:s3tablescatalog/x', \
             'glue.access-key-id' = '{KEY}', 'glue.secret-access-key' = '{SECRET}', 'glue.session-token' = 'session/+=')"
        ))
        .await;
    assert_eq!(
        client.query("SHOW DATABASES FROM g LIKE 'a%'").await,
        [["a.b c"]]
    );
    client.query("CREATE DATABASE g.`new`").await;
    // A path with characters that are encoded, and encoded once more to be signed.
    let error = client.error("SELECT * FROM g.`a.b c`.`t(ü)`").await;
    assert!(error.contains("does not exist"), "{error}");
    served.abort();

    let seen = seen.lock().expect("no panic").clone();
    assert!(seen.len() >= 4, "{seen:?}");
    assert!(
        seen.iter()
            .any(|request| request["path"]
                .as_str()
                .is_some_and(|path| path
                    == "/iceberg/v1/config?warehouse=123456789012%3As3tablescatalog%2Fx"))
    );
    assert!(
        seen.iter()
            .any(|request| request["method"] == "POST" && request["body"] != "")
    );
    let printed = run_python(
        "verify_sigv4.py",
        &[
            KEY,
            SECRET,
            "eu-west-1",
            "glue",
            &format!("http://{address}"),
            &Value::from(seen.clone()).to_string(),
        ],
    );
    assert_eq!(
        printed.trim(),
        format!("{} signatures are right", seen.len())
    );
}
