//! What a person sees when the crib starts: where it is, who it takes them for, and what to paste where.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write as _},
    net::SocketAddr,
    path::Path,
};

use crate::clients::{Client, connect};

pub struct Facts<'a> {
    pub mcp: SocketAddr,
    pub admin: SocketAddr,
    pub config: Option<&'a Path>,
    pub data: &'a Path,
    pub servers: usize,
    /// Nobody needs a token.
    pub open: bool,
}

/// To standard output, which carries nothing else.
pub fn print(facts: &Facts<'_>) {
    let text = compose(facts, std::io::stdout().is_terminal());
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

fn compose(facts: &Facts<'_>, colour: bool) -> String {
    let (bold, dim, off) = if colour { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let base = format!("http://{}", facts.mcp);
    let mut out = String::new();
    let _ = writeln!(out, "{bold}toolcrib {}{off}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(out, "  mcp     {base}/mcp");
    let _ = writeln!(out, "  rest    {base}/openapi.json");
    let _ = writeln!(out, "  admin   http://{}", facts.admin);
    match facts.config {
        Some(path) => {
            let _ = writeln!(out, "  config  {} ({} servers)", path.display(), facts.servers);
        }
        None => {
            let _ = writeln!(
                out,
                "  config  none: built-in tools only; `toolcrib import` brings in your MCP servers"
            );
        }
    }
    let _ = writeln!(out, "  data    {}", facts.data.display());
    let who = if facts.open {
        "local: no token is needed, because only this machine can connect"
    } else {
        "callers of the config, by bearer token"
    };
    let _ = writeln!(out, "  caller  {who}\n");
    let _ = writeln!(
        out,
        "{bold}point a client at it{off} {dim}(or `toolcrib connect <client>` writes it for you){off}"
    );
    for client in Client::ALL {
        let snippet = connect::snippet(client, &base);
        let _ = writeln!(out, "  {:<15} {dim}{}:{off} {}", client.word(), snippet.place, snippet.text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_names_the_urls_the_caller_and_every_client() {
        let facts = Facts {
            mcp: "127.0.0.1:8081".parse().unwrap(),
            admin: "127.0.0.1:3100".parse().unwrap(),
            config: None,
            data: Path::new("/d"),
            servers: 0,
            open: true,
        };
        let text = compose(&facts, false);
        assert!(text.contains("http://127.0.0.1:8081/mcp") && text.contains("http://127.0.0.1:3100"));
        assert!(text.contains("caller  local") && !text.contains('\x1b'));
        assert!(Client::ALL.iter().all(|client| text.contains(client.word())));
    }
}
