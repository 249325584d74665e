// The Node client 2.x, both eras: `node-v2.cjs ERA http URL`, or `ERA stdio COMMAND [ARGUMENT...]`.
// Its packages are found through NODE_PATH.

const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
const { Bell, use } = require("./use.cjs");

async function main([era, kind, place, ...args]) {
  const transport =
    kind === "http" ? new StreamableHTTPClientTransport(new URL(place)) : new StdioClientTransport({ command: place, args });
  const bell = new Bell();
  const client = new Client(
    { name: "node-v2", version: "0" },
    {
      versionNegotiation: { mode: era === "legacy" ? "legacy" : "auto" },
      listChanged: { tools: { autoRefresh: false, onChanged: () => bell.ring() } },
    },
  );
  await client.connect(transport);
  const call = (params, onprogress) => client.callTool(params, { onprogress });
  const seen = await use(client, call, bell);
  console.log(JSON.stringify({ protocol: client.getNegotiatedProtocolVersion(), ...seen }));
  await client.close();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
