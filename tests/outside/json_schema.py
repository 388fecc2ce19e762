"""Holds each event of a server's feed against its schema, with a validator that isn't ours.

Takes the folder of the schemas and the server's address, and the token from the environment.
Each event has to pass, and none of what is made of it by one mistake may. Prints the types.
"""

import copy
import json
import pathlib
import sys

import feed
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

# What may be null. In an event nothing else may.
NULLABLE = {
    "person", "label", "expires_at", "note", "reason", "request_uuid", "fence", "parent"
}
# Numbers that JSON's readers take for another one begin here.
BEYOND = 2**53

folder = pathlib.Path(sys.argv[1])


def validator(path):
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(
        schema, format_checker=Draft202012Validator.FORMAT_CHECKER
    )


whole = validator(folder / "answers" / "cloud_event.json")
# CloudEvents' `dataschema` is the name of the schema of `data`.
data = {found.schema["$id"]: found for found in map(validator, (folder / "events").iterdir())}


def places(value, path=()):
    """The paths of all values in a value, itself included."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, list
    ) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def changed(event, path, new):
    event = copy.deepcopy(event)
    at(event, path[:-1])[path[-1]] = new
    return event


def mistakes(event, depth_max):
    """What is made of an event by one mistake, not too deep in it, each with its name."""
    for path in places(event):
        if len(path) > depth_max:
            continue
        value = at(event, path)
        if isinstance(value, dict):
            # CloudEvents lets anyone add attributes to an event, though not to its data.
            if "specversion" not in value:
                more = {**value, "further": 1}
                yield f"{path} has a further field", changed(event, path, more) if path else more
            for key in value:
                fewer = {name: part for name, part in value.items() if name != key}
                yield f"{path} has no {key}", changed(event, path, fewer) if path else fewer
        if not path:
            continue
        name = next(key for key in reversed(path) if isinstance(key, str))
        yield f"{path} is in a list", changed(event, path, [value])
        if value is not None and (name not in NULLABLE or isinstance(path[-1], int)):
            yield f"{path} is null", changed(event, path, None)
        if isinstance(value, bool):
            yield f"{path} is a number", changed(event, path, 1)
        elif isinstance(value, int):
            for new in (-1, value + 0.5, BEYOND, str(value)):
                yield f"{path} is {new!r}", changed(event, path, new)
        elif isinstance(value, str):
            yield f"{path} is a number", changed(event, path, 7)
            # Only a thread's body may be.
            if name != "body" or "title" not in at(event, path[:-1]):
                yield f"{path} is empty", changed(event, path, "")


def refuse(held_against, value, depth_max):
    for mistake, wrong in mistakes(value, depth_max):
        if held_against.is_valid(wrong):
            sys.exit(f"{mistake}, and it passes:\n{json.dumps(wrong)}")


types, shapes = set(), set()
for text in feed.history(sys.argv[2]):
    event = json.loads(text)
    data_alone = data[event["dataschema"]]
    for held_against, value in ((whole, event), (data_alone, event["data"])):
        error = best_match(held_against.iter_errors(value))
        if error is not None:
            sys.exit(f"{error.json_path}: {error.message}\n{text}")
    plain_type = event["type"].removeprefix("pearing.")
    if plain_type not in types:
        refuse(whole, event, 1)
    types.add(plain_type)
    # Once for each set of values that are there.
    there = (path for path in places(event) if at(event, path) not in (None, []))
    shape = (event["type"], *there)
    if shape not in shapes:
        shapes.add(shape)
        refuse(data_alone, event["data"], 9)
print(*sorted(types), sep="\n")
