"""Reads each event of a server's feed with the SDK of CloudEvents.

Takes the server's address, and the token from the environment. Prints the types that it read.
"""

import json
import sys

import feed
from cloudevents.core.bindings.http import HTTPMessage, from_http_event, to_structured_event

types = set()
for text in feed.history(sys.argv[1]):
    headers = {"content-type": "application/cloudevents+json"}
    event = from_http_event(HTTPMessage(headers, text.encode()))
    given = json.loads(text)
    assert event.get_specversion() == "1.0", text
    assert event.get_id() == given["id"] and event.get_source() == given["source"], text
    assert event.get_subject() == given["subject"], text
    assert event.get_dataschema() == given["dataschema"], text
    assert event.get_time().utcoffset().total_seconds() == 0, text
    assert event.get_data() == given["data"], text
    for extension in ("actor", "hash"):
        assert event.get_extension(extension) == given[extension], text
    # Nothing is lost on the way back, but for the spelling of the time.
    again = json.loads(to_structured_event(event).body)
    assert {**again, "time": None} == {**given, "time": None}, text
    types.add(event.get_type().removeprefix("pearing."))
print(*sorted(types), sep="\n")
