// The official TypeScript SDK, major version 1: `client.mjs legacy CALLS SERVER ARGUMENT...`.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [, calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'interop', version: '0.0.0' });
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
const results = {};
for (const [name, [tool, given]] of Object.entries(JSON.parse(calls))) {
  results[name] = await client.callTool({ name: tool, arguments: given });
}
await client.ping();
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
