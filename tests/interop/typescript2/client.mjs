// The official TypeScript SDK, major version 2: `client.mjs legacy|auto|REVISION URL SERVER ARGUMENT...`.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, url, command, ...args] = process.argv.slice(2);
const versionNegotiation = { mode: ['legacy', 'auto'].includes(mode) ? mode : { pin: mode } };
const client = new Client({ name: 'interop', version: '0.0.0' }, { versionNegotiation });
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
const allowed = await client.callTool({ name: 'http_request', arguments: { method: 'GET', url } });
const denied = await client.callTool({ name: 'http_request', arguments: { method: 'DELETE', url } });
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), allowed, denied }));
