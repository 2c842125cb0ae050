// The MCP Inspector's command line, a process for each step: `client.mjs ERA[,strict] CALLS SERVER ARGUMENT...`.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const OK = 0;
const TOOL_ERROR = 5; // what it exits with when a result has isError
const [mode, calls, ...server] = process.argv.slice(2);
const [era, strict] = mode.split(',');

function inspect(statuses, ...options) {
  const args = ['--cli', '--format', 'json', '--protocol-era', era, ...options, '--', ...server];
  const run = spawnSync(join(import.meta.dirname, 'node_modules/.bin/mcp-inspector'), args, {
    encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], timeout: 30_000,
  });
  if (!statuses.includes(run.status)) {
    throw new Error(`inspector ${options.join(' ')}: exit ${run.status}, not ${statuses.join(' or ')}\n${run.stdout}`);
  }
  const { result } = JSON.parse(run.stdout);
  if ((run.status === TOOL_ERROR) !== (result.isError ?? false)) {
    throw new Error(`inspector ${options.join(' ')}: exit ${run.status} with isError ${result.isError}`);
  }
  return result;
}

const { tools } = inspect([OK], '--method', 'tools/list', ...(strict ? ['--strict'] : []));
const results = {};
for (const [name, [tool, given]] of Object.entries(JSON.parse(calls))) {
  const args = ['--tool-name', tool, '--tool-args-json', JSON.stringify(given)];
  results[name] = inspect([OK, TOOL_ERROR], '--method', 'tools/call', ...args);
}
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
