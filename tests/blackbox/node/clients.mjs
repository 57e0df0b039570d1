// The stock clients of both TypeScript SDKs, as their users write them: one session, and every message that came back.
// usage: node clients.mjs v1|v2 list|session URL|COMMAND [ARGUMENT...]; one JSON object on stdout.

const PACKAGES = {
  v1: ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/streamableHttp.js",
    "@modelcontextprotocol/sdk/client/stdio.js", "@modelcontextprotocol/sdk/types.js"],
  v2: ["@modelcontextprotocol/client", "@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"],
};

const [edition, act, target, ...rest] = process.argv.slice(2);
const [main, http, stdio] = await Promise.all(PACKAGES[edition].slice(0, 3).map((name) => import(name)));

const transport = /^https?:/.test(target)
  ? new http.StreamableHTTPClientTransport(new URL(target))
  : new stdio.StdioClientTransport({ command: target, args: rest, stderr: "ignore" });
const options = edition === "v2" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new main.Client({ name: "stock", version: "1.0.0" }, options);

const heard = [];
// Whoever listens, and the client may change its mind about that, hears it through here.
let listener;
Object.defineProperty(transport, "onmessage", {
  get: () => listener,
  set: (wanted) => {
    listener = wanted && ((message, extra) => {
      heard.push(message);
      return wanted(message, extra);
    });
  },
});

async function session() {
  const outcome = async (step) => step().catch((error) => ({ failed: String(error.message ?? error) }));
  await outcome(() => client.ping());
  await outcome(() => client.listTools());
  await outcome(() => client.listPrompts());
  await outcome(() => client.listResources());
  await outcome(() => client.listResourceTemplates());
  await outcome(() => client.getPrompt({ name: "simple-prompt" }));
  await outcome(() => client.getPrompt({ name: "args-prompt", arguments: { city: "Bern" } }));
  await outcome(() => client.complete({
    ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "E" },
  }));
  const call = (name, args, more) => outcome(() => edition === "v1"
    ? client.callTool({ name, arguments: args }, undefined, more)
    : client.callTool({ name, arguments: args }, more));
  await call("echo", { message: "gr\u00fcezi \u{1F9C0}" });
  await call("get-sum", { a: 2, b: 3.5 });
  await call("get-structured-content", { location: "Chicago" });
  await call("get-annotated-message", { messageType: "error", includeImage: true });
  await call("get-tiny-image", {});
  await call("get-sum", { a: "no number" });
  await call("no-such-tool", {});
  await call("trigger-long-running-operation", { duration: 0.4, steps: 4 }, { onprogress: () => {} });
  await outcome(() => client.readResource({ uri: "demo://resource/nothing" }));
}

await client.connect(transport);
let tools = [];
if (act === "list") tools = (await client.listTools()).tools.map((tool) => tool.name);
else await session();
const server = client.getServerVersion()?.name;
await client.close();
process.stdout.write(JSON.stringify({ server, tools, heard }));
process.exit(0);
