// The Node SDK 1.x, which knows only the legacy era: `node-v1.cjs legacy http URL`, or `legacy stdio COMMAND [ARGUMENT...]`.
// Its packages are found through NODE_PATH.

const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = require("@modelcontextprotocol/sdk/types.js");
const { Bell, use } = require("./use.cjs");

async function main([, kind, place, ...args]) {
  const transport =
    kind === "http" ? new StreamableHTTPClientTransport(new URL(place)) : new StdioClientTransport({ command: place, args });
  const client = new Client({ name: "node-v1", version: "0" });
  const bell = new Bell();
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => bell.ring());
  await client.connect(transport);
  const call = (params, onprogress) => client.callTool(params, undefined, { onprogress });
  const seen = await use(client, call, bell);
  console.log(JSON.stringify({ protocol: transport.protocolVersion ?? null, ...seen }));
  await client.close();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
