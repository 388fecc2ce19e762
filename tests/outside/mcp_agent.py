"""An agent goes through the workflow by the protocol's own SDK for Python, over http or stdio."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys
import urllib.parse
import uuid

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TRANSPORT, MODE = sys.argv[1:]
REPO = "teams/platform/website"
LOCK = {"repo": REPO, "lock_name": f"python.{TRANSPORT}.{MODE}"}


# Where a session over stdio notes its process, so that it can be killed.
PID_FILE = pathlib.Path(os.environ["HOME"], "mcp.pid")
STDIO = ["-c", 'echo $$ > "$0"; exec "$1" mcp', str(PID_FILE), os.environ["PEARING_CLI"]]


def server(token, url=os.environ["MCP_URL"]):
    if TRANSPORT == "http":
        headers = {"Authorization": f"Bearer {token}"}
        client = httpx2.AsyncClient(headers=headers, timeout=60)
        return streamable_http_client(url, http_client=client)
    environment = {
        "PEARING_URL": os.environ["PEARING_URL"],
        "PEARING_TOKEN": token,
        "HOME": os.environ["HOME"],
        "PATH": os.environ["PATH"],
    }
    return StdioServerParameters(command="sh", args=STDIO, env=environment)


@contextlib.asynccontextmanager
async def cutter(cuts):
    """A proxy that cuts the connection on which the first progress passes."""
    target = urllib.parse.urlsplit(os.environ["MCP_URL"])

    async def serve(reader, writer):
        upstream = await asyncio.open_connection(target.hostname, target.port)

        async def forth():
            while data := await reader.read(65536):
                upstream[1].write(data)

        forward = asyncio.ensure_future(forth())
        while data := await upstream[0].read(65536):
            if b"notifications/progress" in data:
                cuts.append(1)
                break
            writer.write(data)
        forward.cancel()
        for one in (writer, upstream[1]):
            one.close()

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}/mcp"
    finally:
        proxy.close()


async def call(client, name, given, progress=None):
    result = await client.call_tool(name, given, progress_callback=progress)
    assert json.loads(result.content[0].text) == result.structured_content
    return result


async def answer(client, name, given, progress=None):
    result = await call(client, name, given, progress)
    assert not result.is_error, (name, result.content[0].text)
    return result.structured_content


async def refusal(client, name, given):
    result = await call(client, name, given)
    assert result.is_error, (name, result.content[0].text)
    return result.structured_content["code"]


def acquire(**more):
    return LOCK | {"request_uuid": str(uuid.uuid4())} | more


async def break_off(claude):
    """Codex waits for what claude holds; its session breaks off in the middle of the wait. Another
    one makes the same call again, and has the same ticket."""
    lock = LOCK | {"lock_name": LOCK["lock_name"] + ".cut"}
    held = (await answer(claude, "acquire_lock", acquire() | lock))["ticket"]
    given, cuts = acquire(wait_seconds=300) | lock, []

    async def progress(seconds, total, message):
        cuts.append(1)
        os.kill(int(PID_FILE.read_text()), signal.SIGKILL)

    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(cutter(cuts))
        try:
            async with Client(server(os.environ["CODEX_TOKEN"], url), mode=MODE) as first:
                await first.call_tool(
                    "acquire_lock", given, read_timeout_seconds=10, progress_callback=progress
                )
            raise AssertionError("it was not cut off")
        except AssertionError:
            raise
        except BaseException as broken:  # Groups of errors, too.
            print(f"broke off: {type(broken).__name__}")
    assert cuts, "it broke off by itself"
    async with Client(server(os.environ["CODEX_TOKEN"]), mode=MODE) as codex:
        now = given | {"wait_here_seconds": 0}
        again = (await answer(codex, "acquire_lock", now))["ticket"]
        queue = (await answer(claude, "get_lock", lock))["queue"]
        assert [one["ticket_id"] for one in queue] == [again["ticket_id"]], queue
        await answer(claude, "release_lock_ticket", lock | {"ticket_id": held["ticket_id"]})
        turn = (await answer(codex, "acquire_lock", given))["ticket"]
        assert (turn["ticket_id"], turn["state"]) == (again["ticket_id"], "held"), turn
        await answer(codex, "release_lock_ticket", lock | {"ticket_id": turn["ticket_id"]})


async def main():
    async with contextlib.AsyncExitStack() as stack:
        connect = lambda name: stack.enter_async_context(
            Client(server(os.environ[name]), mode=MODE)
        )
        claude, codex = await connect("CLAUDE_TOKEN"), await connect("CODEX_TOKEN")
        tools = {tool.name for tool in (await claude.list_tools()).tools}
        assert {"acquire_lock", "what_do_i_hold"} <= tools, tools

        request = acquire(lease_seconds=60)
        first = (await answer(claude, "acquire_lock", request))["ticket"]
        again = (await answer(claude, "acquire_lock", request))["ticket"]
        assert (first["state"], again["ticket_id"]) == ("held", first["ticket_id"])
        contended = await answer(codex, "acquire_lock", acquire())
        assert contended["ticket"]["state"] == "contended", contended
        assert contended["holder"]["owner"] == "claude", contended

        ticket = LOCK | {"ticket_id": first["ticket_id"]}
        heard, let_go = [], []

        async def progress(seconds, total, message):
            heard.append(message)
            if not let_go:
                let_go.append(1)
                await answer(claude, "heartbeat_lock_ticket", ticket)
                await answer(claude, "release_lock_ticket", ticket)

        turn = (await answer(codex, "acquire_lock", acquire(wait_seconds=300), progress))["ticket"]
        assert turn["state"] == "held" and turn["fence_token"] > first["fence_token"], turn
        assert "claude holds the lock" in heard[0], heard
        assert await refusal(claude, "heartbeat_lock_ticket", ticket) == "ticket-not-held"

        holds = await answer(codex, "what_do_i_hold", {})
        assert [one["fence_token"] for one in holds["tickets"]] == [turn["fence_token"]], holds
        uri = f"pearing://ticket/{REPO}/{LOCK['lock_name']}/{turn['ticket_id']}"
        contents = (await codex.read_resource(uri)).contents
        assert json.loads(contents[0].text)["ticket"]["state"] == "held", contents
        prompts = (await codex.list_prompts()).prompts
        assert {one.name for one in prompts} == {"work_under_lock", "recover_after_lease_loss"}

        release = LOCK | {"ticket_id": turn["ticket_id"]}
        for _ in range(2):
            ended = await answer(codex, "release_lock_ticket", release)
            assert ended["ticket"]["state"] == "released", ended
        await break_off(claude)
        print(f"{TRANSPORT} {MODE}: {len(tools)} tools")


asyncio.run(main())
