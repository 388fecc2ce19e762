// Two agents go through the whole workflow by the protocol's own SDK: MCP_SDK is v1 or v2, the
// transport is http or stdio. What goes otherwise than it should ends it.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const fs = require("node:fs");
const net = require("node:net");

const [transport] = process.argv.slice(2);
const { MCP_SDK, MCP_URL, PEARING_CLI, PEARING_URL } = process.env;
const isOld = MCP_SDK === "v1";
const sdk = "@modelcontextprotocol/";
const { Client } = require(isOld ? `${sdk}sdk/client/index.js` : `${sdk}client`);
const { StreamableHTTPClientTransport } = require(
  isOld ? `${sdk}sdk/client/streamableHttp.js` : `${sdk}client`,
);
const { StdioClientTransport } = require(isOld ? `${sdk}sdk/client/stdio.js` : `${sdk}client/stdio`);

const repo = "teams/platform/website";
const lock_name = `sdk.${MCP_SDK}.${transport}`;
const lock = { repo, lock_name };

// Where a session over stdio notes its process, so that it can be killed.
const pid_file = `${process.env.HOME}/mcp.pid`;
const stdio = ["-c", 'echo $$ > "$0"; exec "$1" mcp', pid_file, PEARING_CLI];

// A proxy that cuts the connection on which the first progress passes.
function cutter() {
  const target = new URL(MCP_URL);
  const server = net.createServer((client) => {
    const upstream = net.connect(target.port, target.hostname);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
    client.pipe(upstream);
    upstream.on("data", (data) => {
      if (data.includes("notifications/progress")) {
        server.cuts += 1;
        end();
      } else {
        client.write(data);
      }
    });
  });
  server.cuts = 0;
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

async function connect(token, url = MCP_URL) {
  const client = new Client({ name: "test", version: "1" }, isOld ? {} : JSON.parse(process.env.MCP_OPTIONS ?? "{}"));
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(
    transport === "http"
      ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
      : new StdioClientTransport({
          command: "sh",
          args: stdio,
          env: { PEARING_URL, PEARING_TOKEN: token, HOME: process.env.HOME, PATH: process.env.PATH },
        }),
  );
  return client;
}

async function call(client, name, given, options) {
  const parameters = { name, arguments: given };
  const result = isOld
    ? await client.callTool(parameters, undefined, options)
    : await client.callTool(parameters, options);
  // Who can't read structured output reads the same as text.
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result;
}

async function answer(client, name, given, options) {
  const result = await call(client, name, given, options);
  assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
  return result.structuredContent;
}

async function refusal(client, name, given) {
  const result = await call(client, name, given);
  assert.equal(result.isError, true, `${name}: ${result.content[0].text}`);
  return result.structuredContent.code;
}

// Codex waits for what claude holds; its session breaks off in the middle of the wait. Another one
// makes the same call again, and has the same ticket.
async function breakOff(claude) {
  const lock = { repo, lock_name: `${lock_name}.cut` };
  const held = await answer(claude, "acquire_lock", { ...lock, request_uuid: randomUUID() });
  const proxy = transport === "http" ? await cutter() : undefined;
  const url = proxy && `http://127.0.0.1:${proxy.address().port}/mcp`;
  const first = await connect(process.env.CODEX_TOKEN, url);
  const given = { ...lock, request_uuid: randomUUID(), wait_seconds: 300 };
  let begun = false;
  const onprogress = () => {
    begun = true;
    process.kill(Number(fs.readFileSync(pid_file, "utf8")), "SIGKILL");
  };
  const broken = call(first, "acquire_lock", given, { onprogress, timeout: 10_000 });
  await assert.rejects(broken);
  assert.ok(proxy ? proxy.cuts === 1 : begun);
  await first.close();
  proxy?.close();
  const codex = await connect(process.env.CODEX_TOKEN);
  const again = (await answer(codex, "acquire_lock", { ...given, wait_here_seconds: 0 })).ticket;
  const seen = await answer(claude, "get_lock", lock);
  assert.deepEqual(seen.queue.map((one) => one.ticket_id), [again.ticket_id]);
  await answer(claude, "release_lock_ticket", { ...lock, ticket_id: held.ticket.ticket_id });
  const turn = (await answer(codex, "acquire_lock", given)).ticket;
  assert.deepEqual([turn.ticket_id, turn.state], [again.ticket_id, "held"]);
  await answer(codex, "release_lock_ticket", { ...lock, ticket_id: turn.ticket_id });
  await codex.close();
}

async function main() {
  const claude = await connect(process.env.CLAUDE_TOKEN);
  const codex = await connect(process.env.CODEX_TOKEN);
  assert.match(claude.getInstructions(), /acquire_lock/);
  const version = claude.getNegotiatedProtocolVersion?.() ?? "by handshake";

  const { tools } = await claude.listTools();
  const named = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  assert.equal(named.get_lock_ticket.annotations.readOnlyHint, true);
  assert.equal(named.break_lock.annotations.destructiveHint, true);
  const keeps = "keep_alive_minutes" in named.acquire_lock.inputSchema.properties;
  assert.equal(keeps, transport === "stdio");

  const request = { ...lock, request_uuid: randomUUID(), lease_seconds: 60 };
  const first = (await answer(claude, "acquire_lock", request)).ticket;
  assert.equal(first.state, "held");
  const again = (await answer(claude, "acquire_lock", request)).ticket;
  assert.equal(again.ticket_id, first.ticket_id);

  const contended = await answer(codex, "acquire_lock", { ...lock, request_uuid: randomUUID() });
  assert.equal(contended.ticket.state, "contended");
  assert.equal(contended.holder.owner, "claude");

  const wait = { ...lock, request_uuid: randomUUID(), wait_seconds: 300, wait_here_seconds: 0 };
  const waiting = (await answer(codex, "acquire_lock", wait)).ticket;
  assert.equal(waiting.state, "waiting");
  const ticket = { ...lock, ticket_id: first.ticket_id };
  const progress = [];
  let let_go;
  const turn = await answer(
    codex,
    "get_lock_ticket",
    { ...lock, ticket_id: waiting.ticket_id },
    {
      onprogress: (now) => {
        progress.push(now);
        // The one who waits is told how it stands, and only then is it let go.
        let_go ??= answer(claude, "heartbeat_lock_ticket", ticket).then(() =>
          answer(claude, "release_lock_ticket", ticket),
        );
      },
    },
  );
  assert.equal((await let_go).ticket.state, "released");
  assert.equal(turn.ticket.state, "held");
  assert.ok(turn.ticket.fence_token > first.fence_token);
  assert.match(progress[0].message, /position 1; claude holds the lock/);

  assert.equal(await refusal(claude, "heartbeat_lock_ticket", ticket), "ticket-not-held");
  assert.equal((await answer(claude, "release_lock_ticket", ticket)).ticket.state, "released");
  assert.equal(await refusal(codex, "get_lock", { lock_name }), "invalid-argument");

  const holds = await answer(codex, "what_do_i_hold", {});
  assert.equal(holds.user, "codex");
  assert.ok(holds.tickets.some((one) => one.ticket_id === waiting.ticket_id));
  const { contents } = await codex.readResource({ uri: `pearing://lock/${repo}/${lock_name}` });
  assert.equal(JSON.parse(contents[0].text).owner, "codex");
  const prompt = await codex.getPrompt({ name: "work_under_lock", arguments: lock });
  assert.match(prompt.messages[0].content.text, /release_lock_ticket/);
  assert.equal((await codex.listResourceTemplates()).resourceTemplates.length, 2);

  await answer(codex, "update_user_activity", { activity: "Working on thread 42" });
  const reply = { repo, number: 42, kind: "implementation", body: "A step.", request_uuid: randomUUID() };
  const fence = (fence_token) => ({ fence_lock_name: lock_name, fence_token });
  const late = { ...reply, request_uuid: randomUUID(), ...fence(first.fence_token) };
  assert.equal(await refusal(claude, "create_reply", late), "stale-fence");
  const written = { ...reply, ...fence(turn.ticket.fence_token) };
  const { reply_id } = await answer(codex, "create_reply", written);
  assert.equal((await answer(codex, "create_reply", written)).reply_id, reply_id);
  const thread = await answer(claude, "get_thread_tree", { repo, number: 42 });
  assert.ok(JSON.stringify(thread).includes(reply_id));
  await answer(codex, "release_lock_ticket", { ...lock, ticket_id: waiting.ticket_id });
  await answer(codex, "clear_user_activity", {});

  await breakOff(claude);
  await claude.close();
  await codex.close();
  console.log(`${MCP_SDK} over ${transport}: ${version}, ${tools.length} tools`);
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
