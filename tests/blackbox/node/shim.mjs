// A call through a server that may ask back, by the stock clients of both TypeScript SDKs as their users write them.
// usage: node shim.mjs v1|v2 TOOL ARGUMENTS ANSWERS URL|COMMAND [ARGUMENT...]; ANSWERS is a list of true, false, "decline" or
// "cancel", the last for good. SECRET in the environment is sent as a bearer token. One JSON object on stdout.

const [edition, tool, args, said, target, ...rest] = process.argv.slice(2);
const v1 = "@modelcontextprotocol/sdk";
const names = edition === "v1"
  ? [`${v1}/client/index.js`, `${v1}/client/streamableHttp.js`, `${v1}/client/stdio.js`, `${v1}/types.js`]
  : ["@modelcontextprotocol/client", "@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"];
const [main, http, stdio, types] = await Promise.all(names.map((name) => import(name)));

const headers = process.env.SECRET ? { authorization: `Bearer ${process.env.SECRET}` } : {};
const transport = /^https?:/.test(target)
  ? new http.StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new stdio.StdioClientTransport({ command: target, args: rest, env: process.env, stderr: "ignore" });
const options = { capabilities: { elicitation: { form: {} } } };
if (edition === "v2") options.versionNegotiation = { mode: "auto" };
const client = new main.Client({ name: "stock", version: "1.0.0" }, options);

const answers = JSON.parse(said), asked = [];
const elicited = async (request) => {
  const [name] = Object.keys(request.params.requestedSchema.properties);
  asked.push({ name, message: request.params.message });
  const answer = answers.length > 1 ? answers.shift() : answers[0];
  return typeof answer === "string" ? { action: answer } : { action: "accept", content: { [name]: answer } };
};
client.setRequestHandler(edition === "v1" ? types.ElicitRequestSchema : "elicitation/create", elicited);

const told = [], call = { name: tool, arguments: JSON.parse(args) };
const onprogress = (progress) => told.push(progress.message);
await client.connect(transport);
const tools = (await client.listTools()).tools.map((one) => one.name);
let result, failed;
try {
  result = edition === "v1"
    ? await client.callTool(call, undefined, { onprogress })
    : await client.callTool(call, { onprogress });
} catch (error) {
  failed = String(error.message ?? error);
}
await client.close();
process.stdout.write(JSON.stringify({ tools, asked, told, result, failed }));
process.exit(0);
