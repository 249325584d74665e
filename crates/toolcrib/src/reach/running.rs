//! A crib that runs in another process, asked over its REST interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{Answer, Wire, escaped};
use super::{Address, Deed, Server, Tool};
use crate::cli::trouble::{Code, Trouble, remedy};
use crate::config::Config;

/// A crib on this machine answers long before this.
const GLANCE: Duration = Duration::from_millis(300);
/// One somewhere else may be farther away.
const LOOK: Duration = Duration::from_secs(5);
/// Listing waits for servers that are being connected, and they may take their time.
const PATIENCE: Duration = Duration::from_secs(90);

pub struct Running {
    admin: Wire,
    tools: Wire,
}

impl Running {
    /// The crib at the address given, which must answer, or at the config's, which may not.
    pub async fn find(config: &Config, address: &Address) -> Result<Option<Self>, Trouble> {
        let token = address.token.as_deref();
        if let Some(url) = &address.admin {
            let running = Self::at(url, config, address)?;
            return match running.admin.ask(Method::GET, "/health/live", None, Some(LOOK)).await {
                Ok(answer) if is_crib(&answer) => Ok(Some(running)),
                Ok(_) => Err(Trouble::unavailable(format!("what answers at {url} is not a crib"))),
                Err(trouble) => Err(trouble.hint("start it with `toolcrib serve`, or leave `--admin` out")),
            };
        }
        if config.listen.admin.port() == 0 {
            return Ok(None);
        }
        let admin = Wire::new(&local_url(config.listen.admin), token)?;
        match admin.ask(Method::GET, "/health/live", None, Some(GLANCE)).await {
            Ok(answer) if is_crib(&answer) => {
                Ok(Some(Self { admin, tools: Wire::new(&mcp_url(config, address), token)? }))
            }
            _ => Ok(None),
        }
    }

    /// The crib that has to be there.
    pub async fn required(config: &Config, address: &Address, what: &str) -> Result<Self, Trouble> {
        Self::find(config, address).await?.ok_or_else(|| {
            let url = local_url(config.listen.admin);
            Trouble::unavailable(format!("no crib is running at {url}, so there is nothing to {what}"))
                .hint("start one with `toolcrib serve`, or say where it is with `--admin URL`")
        })
    }

    fn at(url: &str, config: &Config, address: &Address) -> Result<Self, Trouble> {
        let token = address.token.as_deref();
        let admin = Wire::new(url, token)?;
        // The tools of a crib elsewhere are on the same host, on the port the config names.
        let beside = || {
            let mut beside = url::Url::parse(url).ok()?;
            beside.set_port(Some(config.listen.mcp.port())).ok()?;
            Some(beside.to_string())
        };
        let tools = address.mcp.clone().or_else(beside).unwrap_or_else(|| mcp_url(config, address));
        Ok(Self { admin, tools: Wire::new(strip(&tools), token)? })
    }

    pub fn url(&self) -> &str {
        self.admin.root()
    }

    pub async fn servers(&self) -> Result<Vec<Server>, Trouble> {
        #[derive(Deserialize)]
        struct Servers {
            servers: Vec<Server>,
        }
        Ok(self.fetch::<Servers>(Method::GET, "/servers").await?.servers)
    }

    pub async fn server(&self, id: &str) -> Result<Server, Trouble> {
        self.fetch(Method::GET, &format!("/servers/{}", escaped(id))).await
    }

    pub async fn act(&self, deed: Deed, id: &str) -> Result<Server, Trouble> {
        self.fetch(Method::POST, &format!("/servers/{}/{}", escaped(id), deed.word())).await
    }

    pub async fn tools(&self, source: Option<&str>) -> Result<Vec<Tool>, Trouble> {
        #[derive(Deserialize)]
        struct Tools {
            tools: Vec<Tool>,
        }
        let query = source.map(|source| format!("?source={}", escaped(source))).unwrap_or_default();
        Ok(self.fetch::<Tools>(Method::GET, &format!("/tools{query}")).await?.tools)
    }

    pub async fn tool(&self, spelling: &str) -> Result<Tool, Trouble> {
        self.fetch(Method::GET, &format!("/tools/{}", escaped(spelling))).await
    }

    pub async fn call(&self, tool: &str, arguments: &RawValue) -> Result<Box<RawValue>, Trouble> {
        let body = json!({ "tool": tool, "args": arguments }).to_string();
        let answer = self.tools.ask(Method::POST, "/api/call", Some(body), None).await?;
        read(&answer)
    }

    async fn fetch<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Trouble> {
        read(&self.admin.ask(method, path, None, Some(PATIENCE)).await?)
    }
}

/// `{"live": true}`, and nothing else that happens to listen there.
fn is_crib(answer: &Answer) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    answer.status == StatusCode::OK && body.get("live") == Some(&Value::Bool(true))
}

/// Where the crib of `config` offers its tools, as a base without `/mcp`.
pub fn mcp_url(config: &Config, address: &Address) -> String {
    address.mcp.as_deref().map_or_else(|| local_url(config.listen.mcp), |url| strip(url).to_owned())
}

fn strip(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix("/mcp").unwrap_or(url)
}

/// The address to knock at for one to listen on: "any" means this machine.
fn local_url(listen: SocketAddr) -> String {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, listen.port()))
}

/// The answer as `T`, or the crib's refusal in our words.
fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Trouble> {
    if answer.status.is_success() {
        return serde_json::from_slice(&answer.body)
            .map_err(|error| Trouble::failed(format!("the crib's answer is not understood: {error}")));
    }
    #[derive(Deserialize)]
    struct Refused {
        error: Reason,
    }
    #[derive(Deserialize)]
    struct Reason {
        kind: String,
        message: String,
    }
    let code = code_of(answer.status);
    let Ok(Refused { error }) = serde_json::from_slice::<Refused>(&answer.body) else {
        return Err(Trouble::new(code, "http", format!("the crib answered with status {}", answer.status)));
    };
    let mut trouble = Trouble::new(code, &error.kind, error.message);
    trouble.hint = remedy(&error.kind).map(str::to_owned);
    Err(trouble)
}

/// The statuses of the crib's REST interface, one for each way a call can fail.
fn code_of(status: StatusCode) -> Code {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Code::Refused,
        StatusCode::NOT_FOUND => Code::Unknown,
        StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => Code::Usage,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ => Code::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_is_knocked_at_on_this_machine() {
        assert_eq!(local_url("0.0.0.0:3100".parse().unwrap()), "http://127.0.0.1:3100");
        assert_eq!(local_url("[::]:3100".parse().unwrap()), "http://[::1]:3100");
        assert_eq!(strip("http://h:8081/mcp/"), "http://h:8081");
    }

    #[test]
    fn a_refusal_keeps_its_words_and_gets_a_code() {
        let body = r#"{"error":{"kind":"unauthenticated","message":"the bearer token is not known","retry":"useless"}}"#;
        let answer = Answer { status: StatusCode::UNAUTHORIZED, body: body.into() };
        let trouble = read::<Value>(&answer).unwrap_err();
        assert_eq!(
            (trouble.code, trouble.message.as_str()),
            (Code::Refused, "the bearer token is not known")
        );
        assert!(trouble.hint.unwrap().contains("--token"));
    }
}
