use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A folder, served as a bucket by the part of S3's protocol that a reader needs: GET, with ranges, and HEAD.
///
/// Keys are the names of files as they are, so a `%2F` in a name is `%252F` in a URL. Whoever asks is let in, and
/// nobody may write.
pub struct Bucket {
    /// `http://host:port`, for path-style addresses.
    pub endpoint: String,
    task: JoinHandle<()>,
}

struct Served {
    name: String,
    folder: PathBuf,
}

impl Bucket {
    pub async fn serve(name: &str, folder: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let served = Arc::new(Served {
            name: name.to_owned(),
            folder: folder.to_owned(),
        });
        let router = Router::new().fallback(answer).with_state(served);
        let task = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the bucket is served");
        });
        Self {
            endpoint: format!("http://{address}"),
            task,
        }
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(served): State<Arc<Served>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    if !matches!(method, Method::GET | Method::HEAD) {
        return failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed");
    }
    let Some(key) = percent_decoded(uri.path())
        .and_then(|path| Some(path.strip_prefix(&format!("/{}/", served.name))?.to_owned()))
    else {
        return failure(StatusCode::NOT_FOUND, "NoSuchBucket");
    };
    // To a file system these would be other folders; as parts of a key they are none of ours.
    if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return failure(StatusCode::NOT_FOUND, "NoSuchKey");
    }
    let Ok(bytes) = tokio::fs::read(served.folder.join(&key)).await else {
        return failure(StatusCode::NOT_FOUND, "NoSuchKey");
    };
    let total = bytes.len();
    let response = Response::builder()
        .header(header::ETAG, format!("\"{total:x}\""))
        .header(header::LAST_MODIFIED, "Wed, 21 Oct 2026 07:28:00 GMT")
        .header(header::ACCEPT_RANGES, "bytes");
    let asked = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let (status, range) = match asked.map(|range| byte_range(range, total)) {
        None => (StatusCode::OK, 0..total),
        Some(Some(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(None) => return failure(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange"),
    };
    let response = match status {
        StatusCode::PARTIAL_CONTENT => response.header(
            header::CONTENT_RANGE,
            format!("bytes {}-{}/{total}", range.start, range.end - 1),
        ),
        _ => response,
    };
    let response = response
        .status(status)
        .header(header::CONTENT_LENGTH, range.len());
    let body = match method {
        Method::HEAD => Body::empty(),
        _ => Body::from(bytes[range].to_vec()),
    };
    response.body(body).expect("a response")
}

fn failure(status: StatusCode, code: &str) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/xml")
        .body(Body::from(format!("<Error><Code>{code}</Code></Error>")))
        .expect("a response")
}

/// `bytes=a-b`, `bytes=a-` or `bytes=-n` of a file of that length.
fn byte_range(range: &str, total: usize) -> Option<std::ops::Range<usize>> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (from, to) {
        ("", last) => total.saturating_sub(last.parse().ok()?)..total,
        (from, "") => from.parse().ok()?..total,
        (from, to) => from.parse().ok()?..to.parse::<usize>().ok()?.checked_add(1)?.min(total),
    };
    (range.start < range.end).then_some(range)
}

fn percent_decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
