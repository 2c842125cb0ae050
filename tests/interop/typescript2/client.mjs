// The official TypeScript SDK, major version 2: `client.mjs legacy|auto|REVISION CALLS SERVER ARGUMENT...`.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, calls, command, ...args] = process.argv.slice(2);
const versionNegotiation = { mode: ['legacy', 'auto'].includes(mode) ? mode : { pin: mode } };
const client = new Client({ name: 'interop', version: '0.0.0' }, { versionNegotiation });
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
const results = {};
for (const [name, [tool, given]] of Object.entries(JSON.parse(calls))) {
  results[name] = await client.callTool({ name: tool, arguments: given });
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
