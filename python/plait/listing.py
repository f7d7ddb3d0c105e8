"""Questions that need no run: decisions of one state, and the names that plait knows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from plait import _plait
from plait.arguments import unicode
from plait.schedulers import name_of, register


def decide(question: Mapping[str, Any] | None = None, /, **keys: Any) -> dict[str, Any]:
    """Returns the decision of a scheduler in one state, as ``plait decide`` does; docs/decide.md has the keys.

    The scheduler may be a class. If the question has the key ``cc``, it is one for a congestion controller (``plait decide --cc``).

    >>> import plait
    >>> answer = plait.decide(scheduler="ecf", subflows=[{"id": 0, "srtt_ms": 9}, {"id": 1, "srtt_ms": 60}])
    >>> answer["decision"], answer["subflow"]
    ('send', 0)
    >>> answer = plait.decide({"cc": "lia", "flows": [{"cwnd": 9}], "event": {"ack": 9}})
    >>> answer["flows"][0]["cwnd"] > 9
    True
    """
    if not (question is None or isinstance(question, Mapping)):
        raise _plait.Error(f"question: `{question}` is no dictionary\n  allowed: {{\"scheduler\": \"ecf\", ...}}, or keywords")
    asked = {**(question or {}), **keys}
    if "scheduler" in asked and not isinstance(asked["scheduler"], str):
        asked["scheduler"] = name_of(register(asked["scheduler"]))
    try:
        text = json.dumps(asked, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _plait.Error(f"question: {error}\n  allowed: numbers, texts, lists and dictionaries") from None
    answer = _plait.decide_cc if "cc" in asked else _plait.decide
    try:
        decision: dict[str, Any] = json.loads(answer(text))
    except _plait.Error as error:
        # The columns are those of the JSON text, which the caller has not seen.
        raise _plait.Error(re.sub(r" \(column \d+\)", "", str(error))) from None
    return decision


def list_schedulers(name: str | None = None) -> list[dict[str, Any]]:
    """Returns the schedulers, each with its page and its parameters; with a name only this one.

    >>> import plait
    >>> "ecf" in [entry["name"] for entry in plait.list_schedulers()]
    True
    >>> plait.list_schedulers("eff")
    Traceback (most recent call last):
        ...
    plait.Error: unknown scheduler `eff`...
    """
    return _entries("schedulers", name)


def list_controllers(name: str | None = None) -> list[dict[str, Any]]:
    """Returns the congestion controllers; with a name only this one."""
    return _entries("cc", name)


def list_workloads(name: str | None = None) -> list[dict[str, Any]]:
    """Returns the workloads; with a name only this one."""
    return _entries("workloads", name)


def list_paths(name: str | None = None) -> list[dict[str, Any]]:
    """Returns the profiles of paths; with a name only this one."""
    return _entries("paths", name)


def list_measures(name: str | None = None) -> list[dict[str, Any]]:
    """Returns the measures; with a name only this one."""
    return _entries("measures", name)


def _entries(kind: str, name: str | None) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(_plait.list_entries(kind, None if name is None else unicode(kind, str(name))))["entries"]
    return entries
