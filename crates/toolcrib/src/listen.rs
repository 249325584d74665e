//! A listener: accepts connections up to a cap, speaks HTTP/1.1 with bounded headers, and closes in an orderly way.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

const MOST_CONNECTIONS: usize = 4096;
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 128;
const HEAD_TIME: Duration = Duration::from_secs(30);

/// Binds now, so that a taken port is an error at start and not a line in the log.
pub async fn bind(what: &str, key: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("{what} cannot listen on {address}; is another crib running? set `{key}` to another port")
    })
}

/// Serves until `closing`, then lets open requests finish for `patience`.
pub async fn run(listener: TcpListener, router: Router, closing: CancellationToken, patience: Duration) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closing.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: give running connections time to end.
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Without this an event of a stream waits for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS);
        let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let served = graceful.watch(served);
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection ended badly");
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(patience, graceful.shutdown()).await;
}
