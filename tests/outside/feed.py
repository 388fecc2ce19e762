"""What the feed has, read with httpx-sse up to the present."""

import os

import httpx
from httpx_sse import connect_sse


def history(url):
    """The data of each event from the first one on, as it came."""
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    found = []
    with httpx.Client(headers=headers, timeout=60, trust_env=False) as client:
        with connect_sse(client, "GET", f"{url}/v1/events?after=0") as source:
            for sse in source.iter_sse():
                if sse.event == "caught-up":
                    return found
                if sse.data:
                    found.append(sse.data)
    raise SystemExit("the feed ended before it had caught up")
