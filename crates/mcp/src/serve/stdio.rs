//! MCP on a pipe, both eras: one JSON message a line in, one out, nothing else on the output.
//!
//! `initialize` begins a legacy stay for the life of the pipe; a request that names the modern revision is served by
//! itself. The end of the input is the end of the service.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Semaphore, broadcast, mpsc},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_core::{
    call::Surface,
    error::{Failure, Kind},
    news::News,
    raw::{Members, Raw},
};

use crate::{
    codes::{Fault, INVALID_REQUEST, PARSE_ERROR},
    meta::RequestMeta,
    serve::{
        Desk,
        batch::Batch,
        conversation::{Conversation, Step},
        dispatch::{self, Answer},
        feed, http,
        listen::Listening,
        modern,
        underway::{Ticket, UnderWay},
        visit::{Asker, Visit, Who},
    },
    version::{Era, Version},
    wire::{self, Id, Message},
};

/// Requests answered at once; one more is refused, so that the pipe is always read and cancellations are heard.
const MOST_REQUESTS: usize = 256;
const MOST_LISTENS: usize = 64;
/// When the input ends, running requests get this long.
const GRACE: Duration = Duration::from_secs(10);
/// And then what was said gets this long to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);
const OUT_BACKLOG: usize = 1024;

struct Pipe {
    desk: Arc<Desk>,
    out: mpsc::Sender<String>,
    visit: Mutex<Option<Arc<Visit>>>,
    under_way: Arc<UnderWay>,
    requests: Arc<Semaphore>,
    listens: Arc<Semaphore>,
    tasks: TaskTracker,
    /// The input has ended: nobody listens any more.
    ended: CancellationToken,
    /// The grace is over: whatever still runs is called off.
    cut: CancellationToken,
}

/// Serves until the input ends or the crib closes.
pub async fn serve(
    desk: Arc<Desk>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    serve_with_grace(desk, input, output, GRACE).await
}

/// Serves until the input ends or the crib closes; requests that run then get the grace and no more.
pub async fn serve_with_grace(
    desk: Arc<Desk>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
    grace: Duration,
) -> std::io::Result<()> {
    let (out, lines) = mpsc::channel(OUT_BACKLOG);
    let mut writer = tokio::spawn(write(output, lines));
    let pipe = Arc::new(Pipe {
        desk,
        out,
        visit: Mutex::default(),
        under_way: Arc::default(),
        requests: Arc::new(Semaphore::new(MOST_REQUESTS)),
        listens: Arc::new(Semaphore::new(MOST_LISTENS)),
        tasks: TaskTracker::new(),
        ended: CancellationToken::new(),
        cut: CancellationToken::new(),
    });
    let read = pipe.read(input).await;
    pipe.ended.cancel();
    pipe.tasks.close();
    let _ = tokio::time::timeout(grace, pipe.tasks.wait()).await;
    pipe.cut.cancel();
    pipe.tasks.wait().await;
    if let Some(visit) = pipe.visit() {
        visit.end();
    }
    drop(pipe);
    if tokio::time::timeout(LAST_WORDS, &mut writer).await.is_err() {
        writer.abort();
    }
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

    async fn refuse(&self, id: Option<&Id>, told: &Fault) {
        self.say(wire::failure(id, &told.object)).await;
    }

    async fn read(self: &Arc<Self>, input: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let longest = self.desk.settings.longest_body;
        let mut input = BufReader::new(input);
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
                let told = format!("a line is longer than {longest} bytes; the rest is not read");
                self.refuse(None, &Fault::new(PARSE_ERROR, &told)).await;
                return Ok(());
            }
            match line.trim_ascii() {
                [] => {}
                [b'[', ..] => self.batch(line.trim_ascii()).await,
                line => self.take(line).await,
            }
        }
    }

    async fn take(self: &Arc<Self>, line: &[u8]) {
        match Message::parse(line) {
            Err(malformed) => self.refuse(None, &http::malformed_fault(&malformed)).await,
            Ok(Message::Request { id, method, params }) => {
                let meta = RequestMeta::of(params.as_deref());
                if method == "initialize" && meta.protocol_version.is_none() {
                    self.initialize(&id, params.as_deref()).await;
                } else {
                    self.begin(id, method, params, meta).await;
                }
            }
            Ok(Message::Notification { method, params }) => self.under_way.noted(&method, params.as_deref()),
            Ok(Message::Response { .. }) => {}
        }
    }

    /// The request is entered here and answered elsewhere, so that the next line finds it under way.
    async fn begin(self: &Arc<Self>, id: Id, method: String, params: Option<Raw>, meta: RequestMeta) {
        let modern = meta.protocol_version.is_some();
        let places = if modern && method == "subscriptions/listen" { &self.listens } else { &self.requests };
        let Ok(place) = places.clone().try_acquire_owned() else {
            return self.refuse(Some(&id), &overloaded()).await;
        };
        let (this, ticket) = (self.clone(), self.under_way.enter(&id));
        self.spawn(async move {
            let _place = place;
            match modern {
                true => this.modern(&ticket, &method, params.as_deref(), meta).await,
                false => this.legacy(&ticket, &method, params.as_deref(), meta).await,
            }
        });
    }

    async fn batch(self: &Arc<Self>, line: &[u8]) {
        let Some(visit) = self.visit() else {
            return self.refuse(None, &uninitialized()).await;
        };
        let batch = match Batch::take(line, &visit, &self.under_way) {
            Ok(batch) => batch,
            Err(told) => return self.refuse(None, &told).await,
        };
        let size = u32::try_from(batch.size()).unwrap_or(u32::MAX);
        let Ok(places) = self.requests.clone().try_acquire_many_owned(size) else {
            return self.refuse(None, &overloaded()).await;
        };
        let this = self.clone();
        self.spawn(async move {
            let _places = places;
            if let Some(answers) = batch.answer(&this.desk, &visit).await {
                this.say(answers).await;
            }
        });
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        self.tasks.spawn(async move { cut.run_until_cancelled(work).await });
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
        let news = self.desk.gateway.newsroom().listen();
        self.say(wire::success(Some(id), result.get())).await;
        tokio::spawn(follow(self.desk.clone(), visit, news, self.out.clone()));
    }

    async fn legacy(&self, ticket: &Ticket, method: &str, params: Option<&RawValue>, meta: RequestMeta) {
        let Some(visit) = self.visit() else {
            return self.refuse(Some(&ticket.id), &uninitialized()).await;
        };
        let answer = dispatch::legacy(&self.desk, &visit, ticket.id.clone(), method, params, meta).await;
        self.answer(ticket, answer).await;
    }

    async fn modern(&self, ticket: &Ticket, method: &str, params: Option<&RawValue>, meta: RequestMeta) {
        if let Err(told) = modern::check_envelope(&meta) {
            return self.refuse(Some(&ticket.id), &told).await;
        }
        let (asker, id) = (self.asker(Era::Modern), ticket.id.clone());
        if method == "subscriptions/listen" {
            return self.listen(Listening::begin(&self.desk, &asker, id, params).await, ticket).await;
        }
        let answer = dispatch::modern(&self.desk, &asker, id, method, params, meta).await;
        self.answer(ticket, answer).await;
    }

    async fn listen(&self, mut listening: Listening, ticket: &Ticket) {
        loop {
            let message = tokio::select! {
                // First, because a crib that closes still owes its listeners a result.
                biased;
                message = listening.next() => message,
                () = ticket.cancel.cancelled() => None,
                () = self.out.closed() => None,
                () = self.ended.cancelled() => None,
            };
            match message {
                Some(message) => self.say(message).await,
                None => break,
            }
        }
    }

    /// A request that was called off is not answered.
    async fn answer(&self, ticket: &Ticket, answer: Answer) {
        let message = match answer {
            Answer::Now(Ok(result)) => wire::success(Some(&ticket.id), &result),
            Answer::Now(Err(fault)) => wire::failure(Some(&ticket.id), &fault.object),
            Answer::Later(conversation) => self.converse(conversation.heeding(ticket).on_a_leash()).await,
        };
        if !ticket.cancel.is_cancelled() {
            self.say(message).await;
        }
    }

    /// Passes on what is said on the way; gives the answer.
    async fn converse(&self, mut conversation: Conversation) -> String {
        loop {
            match conversation.next().await {
                Step::Notify(message) => self.say(message).await,
                Step::Done { message, .. } => return message,
            }
        }
    }
}

fn uninitialized() -> Fault {
    Fault::new(INVALID_REQUEST, "send `initialize` first, or name 2026-07-28 in `_meta`")
}

/// The same in both eras.
fn overloaded() -> Fault {
    let told = format!(
        "at most {MOST_REQUESTS} requests and {MOST_LISTENS} listeners are served at once, try again in a moment"
    );
    Fault::of(&Failure::new(Kind::Overloaded, told), Era::Legacy)
}

/// The crib's news for a legacy client on this pipe.
async fn follow(
    desk: Arc<Desk>,
    visit: Arc<Visit>,
    mut news: broadcast::Receiver<Arc<News>>,
    out: mpsc::Sender<String>,
) {
    loop {
        let heard = tokio::select! {
            () = visit.closed.cancelled() => return,
            heard = news.recv() => heard,
        };
        let Some(notes) = feed::heard(heard, &visit, &desk.gateway) else { return };
        for note in notes {
            if out.send(wire::notification(&note.method, note.params.as_deref())).await.is_err() {
                return;
            }
        }
    }
}
