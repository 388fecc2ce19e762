"""Follows the feed with httpx-sse, and reconnects as its documentation says.

Prints the id and the name of each event on stderr. Takes the address as its argument and the
token from the environment. Goes on until it is killed, or refused.
"""

import os
import sys
import time

import httpx
from httpx_sse import connect_sse

client = httpx.Client(
    headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}, timeout=60, trust_env=False
)
last_event_id = ""
reconnection_delay = 0.1
while True:
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    try:
        with connect_sse(client, "GET", sys.argv[1], headers=headers) as source:
            if source.response.status_code != 200:
                sys.exit(f"refused {source.response.status_code}")
            for sse in source.iter_sse():
                last_event_id = sse.id
                if sse.retry is not None:
                    reconnection_delay = sse.retry / 1000
                if sse.data:
                    print(sse.id, sse.event, file=sys.stderr, flush=True)
    except httpx.TransportError:
        pass
    time.sleep(reconnection_delay)
