//! The load generator: a fixed number of callers, each with one connection kept open, each asking again as soon as
//! it is answered (a closed loop).
//!
//! Every answer is checked. A wrong one is counted and its latency is not; the caller goes on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::latency::Latencies;
use crate::scenario::{Era, Scenario};
use crate::wire::{self, Question};

/// How long a phase may overrun before it is given up: some call never came back.
const GRACE: Duration = Duration::from_secs(30);

/// What one phase saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub latencies: Latencies,
    pub wrong: u64,
    /// The first wrong answer, for whoever has to find out why.
    pub example: Option<String>,
    pub took: Duration,
}

impl Seen {
    /// Calls that came back, right or wrong: what the proxy worked for.
    pub fn calls(&self) -> u64 {
        self.latencies.count() as u64 + self.wrong
    }

    pub fn right_per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.took.as_secs_f64().max(f64::EPSILON)
    }
}

/// Asks for `duration`, with as many callers as the scenario says.
pub async fn phase(target: SocketAddr, scenario: Scenario, duration: Duration) -> Result<Seen> {
    let started = Instant::now();
    let deadline = started + duration;
    let mut callers = JoinSet::new();
    for number in 0..scenario.concurrency {
        callers.spawn(caller(target, scenario, number as u64, deadline));
    }
    let mut all = Vec::new();
    let mut seen = Seen::default();
    let gather = async {
        while let Some(ended) = callers.join_next().await {
            let tale = ended.context("a caller died")??;
            all.extend(tale.nanoseconds);
            seen.wrong += tale.wrong;
            seen.example = seen.example.take().or(tale.example);
        }
        anyhow::Ok(())
    };
    match tokio::time::timeout(duration + GRACE, gather).await {
        Ok(gathered) => gathered?,
        Err(_) => bail!("`{}`: a call was not answered within {GRACE:?} after the end", scenario.name),
    }
    seen.took = started.elapsed();
    seen.latencies = Latencies::new(all);
    Ok(seen)
}

/// One right answer to one question, on a connection of its own: proof that a path works from end to end.
pub async fn once(target: SocketAddr, scenario: Scenario) -> Result<()> {
    let mut line = Line::open(target, scenario.era).await?;
    let question = Question::new(scenario.ask, 1);
    let (status, headers, body) = line.ask(&question, scenario.era).await?;
    question.check(status, &headers, &body)
}

#[derive(Default)]
struct Tale {
    nanoseconds: Vec<u64>,
    wrong: u64,
    example: Option<String>,
}

async fn caller(target: SocketAddr, scenario: Scenario, number: u64, deadline: Instant) -> Result<Tale> {
    let mut line = Line::open(target, scenario.era).await?;
    let mut tale = Tale::default();
    // Ids of different callers never meet, so an answer to somebody else is noticed.
    let mut id = number << 32;
    while Instant::now() < deadline {
        id += 1;
        let question = Question::new(scenario.ask, id);
        let asked = Instant::now();
        let answered = line.ask(&question, scenario.era).await;
        let nanoseconds = asked.elapsed().as_nanos() as u64;
        let checked = answered.and_then(|(status, headers, body)| question.check(status, &headers, &body));
        match checked {
            Ok(()) => tale.nanoseconds.push(nanoseconds),
            Err(error) => {
                tale.wrong += 1;
                tale.example.get_or_insert_with(|| format!("{error:#}"));
                line = Line::open(target, scenario.era).await?;
            }
        }
    }
    Ok(tale)
}

/// One connection, and the legacy session on it where there is one.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    session: Option<String>,
}

impl Line {
    async fn open(target: SocketAddr, era: Era) -> Result<Line> {
        let stream =
            TcpStream::connect(target).await.with_context(|| format!("nothing listens on {target}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Its end is seen by the sender, as an error of the next question.
        tokio::spawn(async move { drop(connection.await) });
        let mut line = Line { sender, host: target.to_string(), session: None };
        if era == Era::Legacy {
            line.begin_session().await?;
        }
        Ok(line)
    }

    async fn begin_session(&mut self) -> Result<()> {
        let (status, headers, _) = self.send(wire::initialize(&self.host)?).await?;
        ensure!(status == StatusCode::OK, "`initialize` was answered with {status}");
        let session = headers.get(wire::SESSION_HEADER).and_then(|value| value.to_str().ok());
        self.session = session.map(str::to_string);
        let (status, _, _) = self.send(wire::initialized(&self.host, self.session.as_deref())?).await?;
        ensure!(status.is_success(), "`notifications/initialized` was answered with {status}");
        Ok(())
    }

    async fn ask(&mut self, question: &Question, era: Era) -> Result<(StatusCode, HeaderMap, Bytes)> {
        let request = question.request(&self.host, era, self.session.as_deref())?;
        self.send(request).await
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<(StatusCode, HeaderMap, Bytes)> {
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok((parts.status, parts.headers, body))
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, SocketAddr, phase};
    use crate::{scenario, upstream};
    use axum::Router;

    async fn listening(router: Router) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    #[tokio::test]
    async fn every_scenario_is_answered_right_by_the_upstream() {
        let target = listening(upstream::router()).await;
        for scenario in scenario::ALL {
            let seen = phase(target, *scenario, Duration::from_millis(60)).await.unwrap();
            assert_eq!((seen.wrong, seen.example.as_deref()), (0, None), "{}", scenario.name);
            assert!(seen.latencies.count() >= scenario.concurrency, "{}", scenario.name);
        }
    }

    #[tokio::test]
    async fn a_server_that_answers_wrongly_is_counted_as_wrong() {
        let liar = Router::new().fallback(|| async { r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"# });
        let target = listening(liar).await;
        let seen = phase(target, scenario::ALL[1], Duration::from_millis(60)).await.unwrap();
        assert_eq!(seen.latencies.count(), 0);
        assert!(seen.wrong > 0 && seen.example.is_some());
    }
}
