//! A small HTTP client for the REST interface of a crib: JSON asked for, JSON given back, bodies read to a limit.
//!
//! It follows no redirects and tries nothing twice.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::cli::trouble::{Trouble, whole};

/// The largest answer that is read.
const LARGEST_ANSWER: usize = 256 << 20;

/// One crib's interface at one address.
#[derive(Debug, Clone)]
pub struct Wire {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Without a slash at its end.
    root: String,
    token: Option<HeaderValue>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Wire {
    pub fn new(root: &str, token: Option<&str>) -> Result<Self, Trouble> {
        let fits = root.parse::<Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.authority().is_some()
                && uri.query().is_none()
        });
        if !fits {
            let told = format!("`{root}` is not the address of a crib");
            return Err(Trouble::usage(told).hint("write it like `http://127.0.0.1:3100`"));
        }
        let token = token
            .map(|token| {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
                    .map_err(|_| Trouble::usage("the token has characters a header cannot carry"))?;
                value.set_sensitive(true);
                Ok::<_, Trouble>(value)
            })
            .transpose()?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let https = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .map_err(|error| Trouble::failed(format!("TLS cannot be set up: {error}")))?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).build(https);
        Ok(Self { client, root: root.trim_end_matches('/').to_owned(), token })
    }

    pub fn root(&self) -> &str {
        &self.root
    }

    /// Asks once. `patience` covers the whole answer; none waits as long as it takes.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        patience: Option<Duration>,
    ) -> Result<Answer, Trouble> {
        let sending = self.send(method, path, body);
        match patience {
            None => sending.await,
            Some(patience) => tokio::time::timeout(patience, sending).await.unwrap_or_else(|_| {
                Err(Trouble::unavailable(format!("the crib at {} did not answer in time", self.root)))
            }),
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<String>) -> Result<Answer, Trouble> {
        let unreachable =
            |why: String| Trouble::unavailable(format!("the crib at {} cannot be reached: {why}", self.root));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.root))
            .header(USER_AGENT, concat!("toolcrib/", env!("CARGO_PKG_VERSION")));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|error| Trouble::usage(error.to_string()))?;
        let response = self.client.request(request).await.map_err(|error| unreachable(whole(&error)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LARGEST_ANSWER)
            .collect()
            .await
            .map_err(|error| unreachable(error.to_string()))?
            .to_bytes();
        Ok(Answer { status, body })
    }
}

/// A piece of a path with everything escaped that is not plain.
pub fn escaped(piece: &str) -> String {
    let mut out = String::new();
    for byte in piece.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                out.push(char::from(byte))
            }
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}
