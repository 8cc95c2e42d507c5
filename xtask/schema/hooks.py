"""What schemathesis does not know by itself: how the Document Server signs its callbacks, and what must stay for the others.

What is done to a call depends on the call alone: the same run makes the same calls.
"""

import json
import os
import zlib

import schemathesis
from run import EDITOR_SECRET, signed

KEYS = json.loads(os.environ["SCHEMA_KEYS"])
FILE = os.environ["SCHEMA_FILE"]
STAY = ("notes", "draft")


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw.get("operationId")
    case.body = whole(case.body)
    if operation == "receive" and isinstance(case.body, dict):
        case.body = sign_some(case.body)
    if operation in ("delete_document", "revoke_share") and case.path_parameters.get("document") in STAY:
        case.path_parameters["document"] = "expendable-0"
    if operation == "set_quota" and case.path_parameters.get("company") == "acme":
        case.path_parameters["company"] = "limited"


def whole(value):
    """JSON Schema calls 9.0 an integer. Whoever reads numbers into types does not, and nobody writes one so."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def sign_some(claims):
    """A quarter stays unsigned, a quarter is signed as it is, half of them name a key and a file that are there."""
    chance = zlib.crc32(json.dumps(claims, sort_keys=True, default=str).encode())
    if chance % 4 == 0:
        return claims
    if chance % 4 > 1:
        claims = {**claims, "key": KEYS[chance // 4 % len(KEYS)], "url": FILE}
    return {"token": signed(claims, EDITOR_SECRET)}
