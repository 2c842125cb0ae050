// The MCP Inspector's command line, a process for each step: `client.mjs ERA[,strict] URL SERVER ARGUMENT...`.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const OK = 0;
const TOOL_ERROR = 5; // what it exits with when a result has isError
const [mode, url, ...server] = process.argv.slice(2);
const [era, strict] = mode.split(',');

function inspect(status, ...options) {
  const args = ['--cli', '--format', 'json', '--protocol-era', era, ...options, '--', ...server];
  const run = spawnSync(join(import.meta.dirname, 'node_modules/.bin/mcp-inspector'), args, {
    encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], timeout: 30_000,
  });
  if (run.status !== status) {
    throw new Error(`inspector ${options.join(' ')}: exit ${run.status}, not ${status}\n${run.stdout}`);
  }
  return JSON.parse(run.stdout).result;
}

function call(status, method) {
  const args = JSON.stringify({ method, url });
  return inspect(status, '--method', 'tools/call', '--tool-name', 'http_request', '--tool-args-json', args);
}

const { tools } = inspect(OK, '--method', 'tools/list', ...(strict ? ['--strict'] : []));
const allowed = call(OK, 'GET');
const denied = call(TOOL_ERROR, 'DELETE');
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), allowed, denied }));
