// A client as the conformance suite runs one: what a scenario needs, through a stock SDK of the era that is asked for.
// usage: node scenarios.mjs URL, with MCP_CONFORMANCE_SCENARIO and, where there is any, MCP_CONFORMANCE_CONTEXT.

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const url = new URL(process.argv.at(-1));
const OLDER = new Set(["initialize", "elicitation-sep1034-client-defaults", "sse-retry"]);
const older = OLDER.has(scenario) || (process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "") < "2026";

const capabilities = { elicitation: { form: { applyDefaults: true } } };
const identity = { name: "stock", version: "1.0.0" };
const accepted = async () => ({ action: "accept", content: {} });

async function connected() {
  if (older) {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
    const client = new Client(identity, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, accepted);
    await client.connect(new StreamableHTTPClientTransport(url));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = new Client(identity, { capabilities, versionNegotiation: { mode: "auto" } });
  client.setRequestHandler("elicitation/create", accepted);
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

const tried = (step) => step().catch((error) => console.error(String(error)));
const client = await connected();
const call = (name, args = {}) => tried(() => client.callTool({ name, arguments: args }));
const { tools } = (await tried(() => client.listTools())) ?? { tools: [] };

if (scenario === "tools_call") await call("add_numbers", { a: 5, b: 3 });
else if (scenario === "http-custom-headers") {
  for (const { name, arguments: args } of context.toolCalls ?? []) await call(name, args);
} else if (scenario === "http-standard-headers") {
  await call(tools[0]?.name);
  const { resources = [] } = (await tried(() => client.listResources())) ?? {};
  if (resources.length) await tried(() => client.readResource({ uri: resources[0].uri }));
  const { prompts = [] } = (await tried(() => client.listPrompts())) ?? {};
  if (prompts.length) await tried(() => client.getPrompt({ name: prompts[0].name, arguments: {} }));
} else if (scenario !== "initialize" && scenario !== "json-schema-ref-no-deref") {
  for (const tool of tools) await call(tool.name);
}
await client.close();
process.exit(0);
