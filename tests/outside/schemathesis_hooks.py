"""What no schema can tell schemathesis: what there is on this server, and what it is for.

Every second request that is meant to be valid is pointed at something that is there: a live
ticket, the thread 42, a user made for it. The other half, and all that is meant to be invalid,
goes as it was made up.
"""

import itertools
import os
import uuid

import requests
import schemathesis
from schemathesis.openapi.checks import RejectedPositiveData

REPO = "teams/platform/website"
URL = os.environ["URL"]
ASKER = "admin"

numbers = itertools.count(1)
session = requests.Session()
session.trust_env = False
session.headers["Authorization"] = f"Bearer {os.environ['TOKEN']}"


def call(method, path, body=None):
    answer = session.request(method, f"{URL}{path}", json=body, timeout=20)
    assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json()


TOKEN_ID = call("GET", "/v1/whoami")["token_id"]


def new(word):
    return f"{word}-{next(numbers)}"


def held():
    """A ticket of a lock that nobody else takes."""
    lock_name = new("lock")
    body = {"request_uuid": str(uuid.uuid4())}
    return call("POST", f"/v1/locks/{lock_name}/tickets?repo={REPO}", body)["ticket"]


def user():
    return call("POST", "/v1/admin/users", {"user": new("user")})["user"]


def ticket_path():
    ticket = held()
    return {"lock_name": ticket["lock_name"], "ticket_id": ticket["ticket_id"]}


def break_hold(case):
    ticket = held()
    case.path_parameters["lock_name"] = ticket["lock_name"]
    case.body["fence_token"] = ticket["fence_token"]


def member():
    name = user()
    call("PUT", f"/v1/admin/teams/platform/members/{name}", {"role": "write"})
    return {"team": "platform", "user": name}


def grantee():
    name = user()
    call("PUT", f"/v1/admin/access/{name}?repo={REPO}", {"role": "write"})
    return {"user": name}


def agent():
    name = new("agent")
    call("POST", "/v1/agents", {"name": name})
    return {"name": name}


# What is there, for each operation that needs it: values of the path.
THERE = {
    "GET /v1/locks/{lock_name}/tickets/{ticket_id}": ticket_path,
    "DELETE /v1/locks/{lock_name}/tickets/{ticket_id}": ticket_path,
    "POST /v1/locks/{lock_name}/tickets/{ticket_id}/heartbeat": ticket_path,
    "GET /v1/threads/{number}": lambda: {"number": 42},
    "POST /v1/threads/{number}/replies": lambda: {"number": 42},
    "POST /v1/threads/{number}/close": lambda: {"number": 42},
    "POST /v1/threads/{number}/reopen": lambda: {"number": 42},
    "DELETE /v1/agents/{name}/tokens": agent,
    "POST /v1/admin/users/{user}/disable": lambda: {"user": user()},
    "POST /v1/admin/users/{user}/enable": lambda: {"user": user()},
    "DELETE /v1/admin/tokens/{token_id}": lambda: {
        "token_id": call("POST", "/v1/admin/tokens", {"user": user()})["token_id"]
    },
    "GET /docs/{file}": lambda: {"file": "swagger-ui.css"},
    "GET /v1/admin/teams/{team}/members": lambda: {"team": "platform"},
    "PUT /v1/admin/teams/{team}/members/{user}": member,
    "DELETE /v1/admin/teams/{team}/members/{user}": member,
    "PUT /v1/admin/access/{user}": grantee,
    "DELETE /v1/admin/access/{user}": grantee,
}
# The same for bodies.
THERE_IN_BODY = {
    "POST /v1/locks/{lock_name}/tickets": lambda: {"request_uuid": str(uuid.uuid4())},
    "POST /v1/admin/tokens": lambda: {"user": user()},
    "POST /v1/admin/repos": lambda: {"repo": f"teams/platform/{new('repo')}"},
}
SCOPES = ("repo", "team", "user")

asked = {}


def is_positive(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


def plainly(value):
    """The value with whole numbers written as such: 60.0 is refused on purpose, while to a schema
    it is an integer."""
    if isinstance(value, dict):
        return {name: plainly(part) for name, part in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


@schemathesis.hook
def before_call(context, case, kwargs):
    label = case.operation.label
    if not is_positive(case):
        return
    if isinstance(case.body, dict):
        case.body = plainly(case.body)
    parameters = {parameter.name for parameter in case.operation.query}
    if parameters.issuperset(SCOPES):
        # Exactly one of them is a rule that a schema of each alone can't have.
        given = [name for name in SCOPES if name in case.query]
        for name in given[1:]:
            del case.query[name]
        if not given and "GET /v1/events" != label:
            case.query["repo"] = REPO
    # What a link leads to stays as it is.
    if case.meta.phase.name == "stateful":
        return
    asked[label] = asked.get(label, 0) + 1
    if asked[label] % 2 == 0:
        return
    if "repo" in parameters:
        for name in SCOPES:
            case.query.pop(name, None)
        case.query["repo"] = REPO
    if label in THERE:
        case.path_parameters.update(THERE[label]())
    if label in THERE_IN_BODY:
        case.body.update(THERE_IN_BODY[label]())
    if label == "POST /v1/locks/{lock_name}/break":
        break_hold(case)


@schemathesis.hook
def filter_case(context, case):
    """The asker goes on to the end."""
    path = case.path_parameters or {}
    label = case.operation.label
    if label == "POST /v1/admin/users/{user}/disable":
        return path.get("user") != ASKER
    if label == "DELETE /v1/admin/tokens/{token_id}":
        return str(path.get("token_id")).lower() != TOKEN_ID
    return True


# Refusals of what the schema allows, since it depends on what there is: for an operation, the
# field, or the code of a problem that is about no field.
UUID_REUSED = "request-uuid-reused"
EXPECTED = {
    # An example's UUID comes with other input again.
    ("POST /v1/locks/{lock_name}/tickets", UUID_REUSED),
    ("PUT /v1/activity", UUID_REUSED),
    ("POST /v1/threads", UUID_REUSED),
    ("POST /v1/threads/{number}/replies", UUID_REUSED),
    ("POST /v1/threads/{number}/close", UUID_REUSED),
    ("POST /v1/threads/{number}/reopen", UUID_REUSED),
    # Beyond the head.
    ("GET /v1/events", "after"),
    ("GET /v1/events", "Last-Event-ID"),
    ("GET /v1/admin/ledger", "after"),
    ("GET /v1/locks", "as_of"),
    ("GET /v1/locks/{lock_name}", "as_of"),
    ("GET /v1/timeline", "from"),
    ("GET /v1/timeline", "to"),
    ("GET /v1/threads", "as_of"),
    ("GET /v1/threads/{number}", "as_of"),
    # Together with the name of its person it has to be a name.
    ("POST /v1/agents", "name"),
    ("DELETE /v1/agents/{name}/tokens", "name"),
}
# A cursor is only what an earlier page answered. How it looks is nobody's business, so its schema
# allows any text.
MADE_UP = "cursor"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if not isinstance(failure, RejectedPositiveData) or response.status_code != 422:
        return True
    problem = response.json()
    what = problem.get("field", problem["code"])
    return what != MADE_UP and (case.operation.label, what) not in EXPECTED


succeeded = set()
operations = set()


@schemathesis.hook
def after_load_schema(context, schema):
    operations.update(result.ok().label for result in schema.get_all_operations())


@schemathesis.check
class EveryOperationSucceeds:
    """Each operation is done at least once."""

    def after_response(self, ctx, response, case):
        if 200 <= response.status_code < 300:
            succeeded.add(case.operation.label)

    def after_run(self, ctx):
        missing = sorted(operations - succeeded)
        assert operations and not missing, f"never answered 2xx: {missing}"
