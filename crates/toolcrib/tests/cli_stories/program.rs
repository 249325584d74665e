//! The program under test, its folder, and a small MCP server in Python for it to talk to.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A server with an echo, a failing tool and a picture, in the era before 2026.
const SERVER: &str = r#"
import json, sys
TOOLS = [
    {"name": "echo", "description": "Says it back.\nMore about it.", "inputSchema": {"type": "object",
     "required": ["text"], "properties": {"text": {"type": "string", "description": "what to say"}}}},
    {"name": "fail", "description": "Always fails.", "inputSchema": {"type": "object"}},
    {"name": "picture", "description": "Draws a dot.", "inputSchema": {"type": "object"}},
]
def result(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "tiny", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        if params["name"] == "echo":
            return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        if params["name"] == "picture":
            return {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]}
        return {"content": [{"type": "text", "text": "it broke"}], "isError": True}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    found = result(message.get("method"), message.get("params", {}))
    if found is None:
        answer["error"] = {"code": -32601, "message": "no such method"}
    else:
        answer["result"] = found
    print(json.dumps(answer), flush=True)
"#;

/// A home folder with a config in it.
pub struct Home {
    folder: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What it printed, if it ended with `code`.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl Home {
    /// No config, nothing.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With a config: `rest` after ports from the system and a data folder.
    pub fn new(rest: &str) -> Self {
        let home = Self::empty();
        let data = home.path().join("data");
        let own = format!(
            "data: {}\nlisten: {{ mcp: \"127.0.0.1:0\", admin: \"127.0.0.1:0\" }}\n{rest}\n",
            data.display()
        );
        home.write("toolcrib.yaml", &own);
        home
    }

    /// With the Python server as `tiny`, and one that cannot be started as `dead`.
    pub fn with_servers() -> Self {
        let home = Self::new("");
        let script = home.write("server.py", SERVER);
        let text = std::fs::read_to_string(home.path().join("toolcrib.yaml")).unwrap();
        let servers = format!(
            "{text}servers:\n  tiny: {{ command: python3, args: [\"{}\"] }}\n  dead: {{ command: no-such-program-here }}\n",
            script.display()
        );
        home.write("toolcrib.yaml", &servers);
        home
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path().join(name)).ok()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command
            .args(words)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &[&str]) -> Run {
        Run::of(&self.command(words).output().unwrap())
    }

    pub fn run_with(&self, words: &[&str], env: &[(&str, &str)]) -> Run {
        Run::of(&self.command(words).envs(env.iter().copied()).output().unwrap())
    }

    /// With `input` on stdin, which then ends.
    pub fn run_fed(&self, words: &[&str], input: &str) -> Run {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(input.as_bytes()).unwrap();
        drop(pipe);
        Run::of(&child.wait_with_output().unwrap())
    }
}

/// `toolcrib serve`, and where it is.
pub struct Serving {
    child: Child,
    pub admin: String,
    pub mcp: String,
}

impl Serving {
    pub fn start(home: &Home) -> Self {
        let mut command = home.command(&["serve"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut admin, mut mcp) = (None, None);
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let url =
                line.split_whitespace().nth(1).filter(|word| word.starts_with("http")).map(str::to_owned);
            match line.split_whitespace().next() {
                Some("mcp") => mcp = mcp.or(url),
                Some("admin") => admin = admin.or(url),
                _ => {}
            }
            if admin.is_some() && mcp.is_some() {
                break;
            }
        }
        Self { child, admin: admin.unwrap(), mcp: mcp.unwrap() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
