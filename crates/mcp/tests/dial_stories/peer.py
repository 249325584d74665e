"""An MCP server on standard input and output that does what its first argument says. For the tests of `dial`."""
import json, os, signal, subprocess, sys, time

mode = sys.argv[1] if len(sys.argv) > 1 else "legacy"
seen = []
MODERN = "2026-07-28"


def write(text):
    sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode())
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}))


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
    "completions": {},
}
INFO = {"name": "peer", "version": "1", "odd": 1}


def greet(method, id):
    if method == "server/discover":
        if mode == "deaf":
            return
        if mode == "fragile":
            sys.exit(3)
        if mode == "modern":
            send(id=id, result={"resultType": "complete", "supportedVersions": [MODERN], "capabilities": CAPABILITIES,
                                "instructions": "be kind", "ttlMs": 0, "cacheScope": "private",
                                "_meta": {"io.modelcontextprotocol/serverInfo": INFO}})
            return
        send(id=id, error={"code": -32601, "message": "no such method"})
    elif mode == "modern":
        send(id=id, error={"code": -32601, "message": "no such method"})
    else:
        version = "1999-01-01" if mode == "ancient" else "2025-06-18"
        send(id=id, result={"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO,
                            "instructions": "be kind"})


def lists(method, id, params):
    if method == "tools/list":
        if mode == "cursor":
            n = len([m for m in seen if m["method"] == method])
            send(id=id, result={"tools": [tool("t%d" % n)], "nextCursor": "again"})
        elif mode == "huge":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"x":"' % id + b"x" * (65 * 1024 * 1024) + b'"}}')
        elif mode == "no-list":
            sys.stderr.write("the list was eaten\n")
            sys.stderr.flush()
            os._exit(8)
        elif mode == "no-tools":
            send(id=id, error={"code": -32603, "message": "tools are out"})
        else:
            page = [tool("raw", odd={"n": 1}), {"inputSchema": {}}, tool("seen")]
            send(id=id, result={"tools": page, "ttlMs": 5000, "nextCursor": "2"} if "cursor" not in params else
                 {"tools": [tool("last")], "ttlMs": 3000})
    elif method == "prompts/list":
        if mode == "no-prompts":
            send(id=id, error={"code": -32603, "message": "prompts are out"})
        else:
            send(id=id, result={"prompts": [{"name": "p"}]})
    elif method == "resources/list":
        send(id=id, result={"resources": [{"uri": "a:b", "name": "ab"}]})
    else:
        send(id=id, result={"resourceTemplates": [{"uriTemplate": "a:{x}", "name": "ax"}]})


def call(id, params):
    name, meta = params.get("name"), params.get("_meta", {})
    if name == "raw":
        write('{"jsonrpc":"2.0","id":%d,"result":{"content": [ ],"odd":{"big":12345678901234567890123, "f":1.50}}}' % id)
    elif name == "seen":
        send(id=id, result=text(json.dumps(seen)))
    elif name == "env":
        send(id=id, result=text(json.dumps(dict(os.environ))))
    elif name == "fail":
        send(id=id, result={"content": [], "isError": True})
    elif name == "ask":
        send(id=id, result={"resultType": "input_required", "inputRequests": {}})
    elif name == "progress":
        token = meta.get("progressToken")
        for n in (1, 2):
            send(method="notifications/progress", params={"progressToken": token, "progress": n, "odd": True})
        send(id=id, result=text(json.dumps(token)))
    elif name == "die":
        sys.stderr.write("the cat ate the wires\n")
        sys.stderr.flush()
        os._exit(7)
    elif name == "chatter":
        send(method="notifications/message", params={"level": "error", "data": "about " + params["arguments"]["about"]})
        send(id=id, result=text("said"))
    elif name == "news":
        send(method="notifications/tools/list_changed")
        send(method="notifications/resources/updated", params={"uri": "a:b", "odd": 1})
        send(method="notifications/message", params={"level": "error", "data": "x"})
        send(method="notifications/vendor/thing", params={"a": 1})
        send(id=id, result=text("told"))
    elif name == "questions":
        send(id="q1", method="ping")
        send(id="q2", method="sampling/createMessage", params={})
        send(id=id, result=text("asked"))
    elif name == "garbage":
        for _ in range(int(params["arguments"]["lines"])):
            write(b"\xff\xfe not a message")
        send(id=id, result=text("done"))
    elif name == "litter":
        kid = subprocess.Popen(["sleep", "1000"])
        send(id=id, result=text(str(kid.pid)))
    elif name != "hang":
        send(id=id, error={"code": -32602, "message": "no such tool", "data": {"odd": 1}})


if mode == "dead":
    sys.stderr.write("no key, no work\n")
    sys.exit(1)
if mode == "noise":
    while True:
        write("this is a log line, not a message")
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

for line in sys.stdin:
    message = json.loads(line)
    seen.append(message)
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method in ("server/discover", "initialize"):
        greet(method, id)
    elif method and method.endswith("/list"):
        lists(method, id, params)
    elif method == "tools/call":
        call(id, params)
    elif method == "subscriptions/listen":
        send(method="notifications/subscriptions/acknowledged",
             params={"_meta": {"io.modelcontextprotocol/subscriptionId": id}})
        for uri in params["notifications"].get("resourceSubscriptions", []):
            send(method="notifications/resources/updated",
                 params={"uri": uri, "_meta": {"io.modelcontextprotocol/subscriptionId": id, "own": 1}})
    elif mode == "mute" and (params.get("uri") == "a:silent" or params.get("level") == "emergency"):
        pass
    elif id is not None and method:
        send(id=id, result={"echo": message})

while mode == "stubborn":
    time.sleep(1)
