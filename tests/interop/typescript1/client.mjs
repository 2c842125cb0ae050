// The official TypeScript SDK, major version 1: `client.mjs legacy URL SERVER ARGUMENT...`.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [, url, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'interop', version: '0.0.0' });
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
const allowed = await client.callTool({ name: 'http_request', arguments: { method: 'GET', url } });
const denied = await client.callTool({ name: 'http_request', arguments: { method: 'DELETE', url } });
await client.ping();
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), allowed, denied }));
