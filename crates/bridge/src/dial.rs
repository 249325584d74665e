//! The HTTP side: one pooled client, the wait for a crib that is not up yet, bodies read to a limit.
//!
//! It repeats only what was never sent (the connection was refused); whether a lost request may be repeated
//! is decided in `courier.rs`. It knows nothing of sessions or eras.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::options::Options;

/// Why no answer came back.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(
        "cannot reach the crib at `{endpoint}` after {waited} s ({why}); is it running, and is the URL right?"
    )]
    Unreachable { endpoint: Uri, waited: u64, why: String },
    #[error("no secure connection to the crib at `{endpoint}` ({why}); check its certificate")]
    Untrusted { endpoint: Uri, why: String },
    #[error(
        "the connection to the crib was lost before it answered ({why}); the request may or may not have been carried out"
    )]
    Lost { why: String },
    #[error("the answer is longer than {0} bytes, the limit of the bridge")]
    TooLong(usize),
}

/// The client of one crib.
#[derive(Debug)]
pub struct Dial {
    client: Client<HttpsConnector<HttpConnector>, Letter>,
    endpoint: Uri,
    headers: HeaderMap,
    wait: Duration,
    told: AtomicBool,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Not on the connection yet.
    Waiting,
    /// Its body was handed to the connection.
    Sent,
    /// The crib has it: the head of an answer came back.
    Heard,
}

/// Where the way of a request can be watched.
pub type Progress = Arc<watch::Sender<Way>>;

impl Dial {
    /// A client for the endpoint of `options`. Fails only if TLS itself cannot be set up.
    pub fn new(options: &Options) -> Result<Self, rustls::Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(Duration::from_secs(10)));
        http.set_keepalive(Some(Duration::from_secs(60)));
        let https = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(16)
            .build(https);
        let mut headers = options.headers.clone();
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("toolcrib-bridge/", env!("CARGO_PKG_VERSION"))));
        Ok(Self {
            client,
            endpoint: options.endpoint.clone(),
            headers,
            wait: options.wait,
            told: AtomicBool::new(false),
        })
    }

    /// Posts one message and waits for the head of the answer.
    pub async fn post(
        &self,
        headers: &HeaderMap,
        line: &Bytes,
        progress: Option<&Progress>,
    ) -> Result<Response<Incoming>, DialError> {
        let request = || {
            let letter = Letter { bytes: Some(line.clone()), progress: progress.cloned() };
            let mut request = self.request(Method::POST, headers, letter);
            let own = request.headers_mut();
            own.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            own.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            request
        };
        let response = self.send(request, self.wait).await?;
        if let Some(progress) = progress {
            progress.send_replace(Way::Heard);
        }
        Ok(response)
    }

    /// Opens the stream of what the crib says unasked. Does not wait for a crib that is not up.
    pub async fn listen(&self, headers: &HeaderMap) -> Result<Response<Incoming>, DialError> {
        let request = || {
            let mut request = self.request(Method::GET, headers, Letter::default());
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            request
        };
        self.send(request, Duration::ZERO).await
    }

    /// Ends the session named in `headers`. Does not wait for a crib that is not up.
    pub async fn end(&self, headers: &HeaderMap) -> Result<Response<Incoming>, DialError> {
        self.send(|| self.request(Method::DELETE, headers, Letter::default()), Duration::ZERO).await
    }

    /// How long a message waits for a crib that refuses connections.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Whether the user gave something to be recognised by.
    pub fn has_token(&self) -> bool {
        self.headers.contains_key(http::header::AUTHORIZATION)
    }

    fn request(&self, method: Method, headers: &HeaderMap, letter: Letter) -> Request<Letter> {
        let mut request = Request::new(letter);
        *request.method_mut() = method;
        *request.uri_mut() = self.endpoint.clone();
        let own = request.headers_mut();
        own.extend(self.headers.clone());
        for (name, value) in headers {
            own.insert(name, value.clone());
        }
        request
    }

    async fn send(
        &self,
        request: impl Fn() -> Request<Letter>,
        wait: Duration,
    ) -> Result<Response<Incoming>, DialError> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(100);
        loop {
            let error = match self.client.request(request()).await {
                Ok(response) => {
                    self.told.store(false, Ordering::Relaxed);
                    return Ok(response);
                }
                Err(error) => error,
            };
            let why = reason(&error);
            if !error.is_connect() {
                return Err(DialError::Lost { why });
            }
            if is_tls(&error) {
                return Err(DialError::Untrusted { endpoint: self.endpoint.clone(), why });
            }
            let waited = begun.elapsed();
            if waited >= wait {
                let endpoint = self.endpoint.clone();
                return Err(DialError::Unreachable { endpoint, waited: waited.as_secs(), why });
            }
            if !self.told.swap(true, Ordering::Relaxed) {
                eprintln!("toolcrib-bridge: waiting for the crib at {} ({why})", self.endpoint);
            }
            tokio::time::sleep(pause.min(wait.saturating_sub(waited))).await;
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }
}

/// Reads a body whole, to at most `limit` bytes.
pub async fn whole(body: Incoming, limit: usize) -> Result<Vec<u8>, DialError> {
    let mut body = body;
    let mut held = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| DialError::Lost { why: chain(&e) })?;
        let Ok(part) = frame.into_data() else { continue };
        if held.len() + part.len() > limit {
            return Err(DialError::TooLong(limit));
        }
        held.extend_from_slice(&part);
    }
    Ok(held)
}

/// Reads what is left of an answered body for a moment, so that the connection can be used again.
pub fn let_finish(mut body: Incoming) {
    tokio::spawn(async move {
        let rest = async { while body.frame().await.is_some_and(|frame| frame.is_ok()) {} };
        let _ = tokio::time::timeout(Duration::from_secs(1), rest).await;
    });
}

/// An error with its causes, in one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

fn reason(error: &Error) -> String {
    // The outermost text is only "client error"; the causes say what happened.
    error.source().map_or_else(|| error.to_string(), chain)
}

/// Whether TLS itself refused: waiting does not mend a certificate. I/O errors hide what they wrap from `source`,
/// so they are opened one by one.
fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    if error.is::<rustls::Error>() {
        return true;
    }
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(wrapped) => is_tls(wrapped),
        None => error.source().is_some_and(is_tls),
    }
}

/// A request body that says when the connection has taken it.
#[derive(Debug, Default)]
pub struct Letter {
    bytes: Option<Bytes>,
    progress: Option<Progress>,
}

impl Body for Letter {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(bytes) = self.bytes.take() else { return Poll::Ready(None) };
        if let Some(progress) = self.progress.take() {
            progress.send_replace(Way::Sent);
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |b| b.len() as u64))
    }
}
