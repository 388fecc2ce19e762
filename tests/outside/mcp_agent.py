"""An agent goes through the workflow by the protocol's own SDK for Python, over http or stdio."""

import asyncio
import contextlib
import json
import os
import sys
import uuid

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TRANSPORT, MODE = sys.argv[1:]
REPO = "teams/platform/website"
LOCK = {"repo": REPO, "lock_name": f"python.{TRANSPORT}.{MODE}"}


def server(token):
    if TRANSPORT == "http":
        headers = {"Authorization": f"Bearer {token}"}
        client = httpx2.AsyncClient(headers=headers, timeout=60)
        return streamable_http_client(os.environ["MCP_URL"], http_client=client)
    environment = {
        "PEARING_URL": os.environ["PEARING_URL"],
        "PEARING_TOKEN": token,
        "HOME": os.environ["HOME"],
    }
    return StdioServerParameters(command=os.environ["PEARING_CLI"], args=["mcp"], env=environment)


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
        print(f"{TRANSPORT} {MODE}: {len(tools)} tools")


asyncio.run(main())
