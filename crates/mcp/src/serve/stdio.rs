//! MCP on a pipe, both eras: one JSON message a line in, one out, nothing else on the output.
//!
//! `initialize` begins a legacy stay for the life of the pipe; a request that names the modern revision is served by
//! itself. The end of the input is the end of the service.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Semaphore, broadcast::error::RecvError, mpsc},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_core::{call::Surface, raw::Members};

use crate::{
    codes::{Fault, INVALID_REQUEST, PARSE_ERROR},
    meta::RequestMeta,
    serve::{
        Desk,
        conversation::{Conversation, Step},
        dispatch::{self, Answer},
        feed, http,
        legacy::noted,
        listen::Listening,
        modern,
        visit::{Asker, Visit, Who},
    },
    version::{Era, Version},
    wire::{self, Id, Message},
};

/// Requests answered at once; further ones wait in the pipe.
const MOST_REQUESTS: usize = 256;
/// When the input ends, running requests get this long.
const GRACE: Duration = Duration::from_secs(10);
const OUT_BACKLOG: usize = 1024;

struct Pipe {
    desk: Arc<Desk>,
    out: mpsc::Sender<String>,
    visit: Mutex<Option<Arc<Visit>>>,
    /// Modern requests under way.
    running: Mutex<HashMap<Id, CancellationToken>>,
    tasks: TaskTracker,
    /// The input has ended: nobody listens any more.
    ended: CancellationToken,
}

/// Serves until the input ends or the crib closes.
pub async fn serve(
    desk: Arc<Desk>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    let (out, lines) = mpsc::channel(OUT_BACKLOG);
    let writer = tokio::spawn(write(output, lines));
    let pipe = Arc::new(Pipe {
        desk: desk.clone(),
        out,
        visit: Mutex::default(),
        running: Mutex::default(),
        tasks: TaskTracker::new(),
        ended: CancellationToken::new(),
    });
    let read = pipe.read(input).await;
    pipe.ended.cancel();
    pipe.tasks.close();
    let _ = tokio::time::timeout(GRACE, pipe.tasks.wait()).await;
    pipe.cancel_all();
    if let Some(visit) = pipe.visit() {
        visit.end();
    }
    drop(pipe);
    let _ = tokio::time::timeout(GRACE, writer).await;
    read
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<String>,
) -> std::io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

impl Pipe {
    fn visit(&self) -> Option<Arc<Visit>> {
        self.visit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn asker(&self, era: Era) -> Asker {
        let style = self.desk.settings.style;
        Asker { caller: self.desk.callers.local(), surface: Surface::McpStdio, era, style }
    }

    async fn say(&self, message: String) {
        let _ = self.out.send(message).await;
    }

    async fn read(self: &Arc<Self>, input: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let longest = self.desk.settings.longest_body;
        let mut input = BufReader::new(input);
        let places = Arc::new(Semaphore::new(MOST_REQUESTS));
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = (&mut input).take(longest as u64 + 1);
            let read = tokio::select! {
                read = limited.read_until(b'\n', &mut line) => read?,
                () = self.desk.closing.cancelled() => return Ok(()),
            };
            if read == 0 {
                return Ok(());
            }
            if read > longest && !line.ends_with(b"\n") {
                let told = Fault::new(
                    PARSE_ERROR,
                    &format!("a line is longer than {longest} bytes; the rest is not read"),
                );
                self.say(wire::failure(None, &told.object)).await;
                return Ok(());
            }
            if !line.trim_ascii().is_empty() {
                self.take(line.trim_ascii(), &places).await;
            }
        }
    }

    async fn take(self: &Arc<Self>, line: &[u8], places: &Arc<Semaphore>) {
        let message = match Message::parse(line) {
            Ok(message) => message,
            Err(malformed) => {
                return self.say(wire::failure(None, &http::malformed_fault(&malformed).object)).await;
            }
        };
        match message {
            Message::Request { id, method, params }
                if method == "initialize" && !is_modern(params.as_deref()) =>
            {
                self.initialize(&id, params.as_deref()).await;
            }
            Message::Request { id, method, params } => {
                let place = places.clone().acquire_owned().await;
                let this = self.clone();
                self.tasks.spawn(async move {
                    let _place = place;
                    this.request(id, &method, params.as_deref()).await;
                });
            }
            Message::Notification { method, params } => self.noted(&method, params.as_deref()),
            Message::Response { .. } => {}
        }
    }

    fn noted(&self, method: &str, params: Option<&RawValue>) {
        if let Some(visit) = self.visit() {
            noted(&visit, method, params);
        }
        if method == "notifications/cancelled"
            && let Some(id) =
                params.map(Members::parse_lenient).and_then(|m| m.find("requestId")).and_then(Id::parse)
            && let Some(cancel) = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(&id)
        {
            cancel.cancel();
        }
    }

    fn cancel_all(&self) {
        for cancel in self.running.lock().unwrap_or_else(PoisonError::into_inner).values() {
            cancel.cancel();
        }
    }

    async fn initialize(self: &Arc<Self>, id: &Id, params: Option<&RawValue>) {
        let asked = params.map(Members::parse_lenient).and_then(|members| members.text("protocolVersion"));
        let version = Version::negotiate(asked.as_deref().unwrap_or_default());
        let asker = self.asker(Era::Legacy);
        let result = dispatch::initialized(&self.desk, &asker, version);
        let who = Who::new(&self.desk.callers, &asker);
        let visit = Arc::new(Visit::new(who, version, self.desk.gateway.clone()));
        let last = self.visit.lock().unwrap_or_else(PoisonError::into_inner).replace(visit.clone());
        if let Some(last) = last {
            last.end();
        }
        self.say(wire::success(Some(id), &result)).await;
        tokio::spawn(follow(self.desk.clone(), visit, self.out.clone()));
    }

    async fn request(self: &Arc<Self>, id: Id, method: &str, params: Option<&RawValue>) {
        let meta = RequestMeta::of(params);
        if meta.protocol_version.is_some() {
            return self.modern(id, method, params, meta).await;
        }
        let Some(visit) = self.visit() else {
            let told = "send `initialize` first, or name 2026-07-28 in `_meta`";
            return self.say(wire::failure(Some(&id), &Fault::new(INVALID_REQUEST, told).object)).await;
        };
        match dispatch::legacy(&self.desk, &visit, id.clone(), method, params, meta).await {
            Answer::Now(told) => self.tell(&id, told).await,
            Answer::Later(conversation) => {
                let _tracked = visit.track(&id, conversation.cancel_token());
                self.converse(*conversation).await;
            }
        }
    }

    async fn modern(self: &Arc<Self>, id: Id, method: &str, params: Option<&RawValue>, meta: RequestMeta) {
        if let Err(told) = modern::check_envelope(&meta) {
            return self.tell(&id, Err(told)).await;
        }
        let asker = self.asker(Era::Modern);
        if method == "subscriptions/listen" {
            return self.listen(Listening::begin(&self.desk, &asker, id.clone(), params).await, id).await;
        }
        match dispatch::modern(&self.desk, &asker, id.clone(), method, params, meta).await {
            Answer::Now(told) => self.tell(&id, told).await,
            Answer::Later(conversation) => {
                self.track(&id, conversation.cancel_token());
                self.converse(*conversation).await;
                self.untrack(&id);
            }
        }
    }

    fn track(&self, id: &Id, cancel: CancellationToken) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), cancel);
    }

    fn untrack(&self, id: &Id) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    async fn listen(&self, mut listening: Listening, id: Id) {
        let cancel = self.desk.closing.child_token();
        self.track(&id, cancel.clone());
        loop {
            let message = tokio::select! {
                message = listening.next() => message,
                () = cancel.cancelled() => None,
                () = self.out.closed() => None,
                () = self.ended.cancelled() => None,
            };
            match message {
                Some(message) => self.say(message).await,
                None => break,
            }
        }
        self.untrack(&id);
    }

    async fn tell(&self, id: &Id, told: Result<toolcrib_core::raw::Raw, Fault>) {
        self.say(match told {
            Ok(result) => wire::success(Some(id), &result),
            Err(fault) => wire::failure(Some(id), &fault.object),
        })
        .await;
    }

    /// A request that was cancelled is not answered.
    async fn converse(&self, mut conversation: Conversation) {
        let cancel = conversation.cancel_token();
        loop {
            match conversation.next().await {
                Step::Notify(message) => self.say(message).await,
                Step::Done { .. } if cancel.is_cancelled() => return,
                Step::Done { message, .. } => return self.say(message).await,
            }
        }
    }
}

fn is_modern(params: Option<&RawValue>) -> bool {
    RequestMeta::of(params).protocol_version.is_some()
}

/// The crib's news for a legacy client on this pipe.
async fn follow(desk: Arc<Desk>, visit: Arc<Visit>, out: mpsc::Sender<String>) {
    let mut news = desk.gateway.newsroom().listen();
    loop {
        let heard = tokio::select! {
            () = visit.closed.cancelled() => return,
            heard = news.recv() => heard,
        };
        let notes = match heard {
            Ok(news) => feed::legacy(&news, &visit, &desk.gateway),
            Err(RecvError::Lagged(_)) => vec![feed::Note::plain(feed::TOOLS_CHANGED)],
            Err(RecvError::Closed) => return,
        };
        for note in notes {
            if out.send(wire::notification(&note.method, note.params.as_deref())).await.is_err() {
                return;
            }
        }
    }
}
