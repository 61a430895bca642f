"""Calls of pgmnemo's functions, whose arguments differ between versions.

Calls name their arguments, as the database describes the installed functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .postgres_server import Database, UsageError

# Our name, and the names in all versions; a leading p_ is ignored.
_NAMES = {
    "role": ("role", "role_filter"),
    "project": ("project_id", "project_id_filter"),
    "topic": ("topic",),
    "text": ("lesson_text", "text", "content"),
    "importance": ("importance",),
    "embedding": ("embedding", "query_embedding"),
    "artifact": ("artifact_hash",),
    "metadata": ("metadata",),
    "query": ("query_text",),
    "k": ("k",),
    "min_score": ("min_score",),
}
_FUNCTIONS = """
    SELECT proname, coalesce(proargnames, '{}'), coalesce(proargmodes::text[], '{}'),
        ARRAY(SELECT format_type(type, NULL)
              FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS a (type, place) ORDER BY place),
        pronargdefaults
    FROM pg_proc WHERE pronamespace = to_regnamespace('pgmnemo') AND prokind = 'f'
    ORDER BY proname, oid"""
_COLUMNS = """
    SELECT attname, format_type(atttypid, NULL), atttypmod FROM pg_attribute
    WHERE attrelid = to_regclass('pgmnemo.agent_lesson') AND attnum > 0 AND NOT attisdropped"""


class Function(NamedTuple):
    """A function of pgmnemo, or an overload of one."""

    name: str
    arguments: dict[str, str]
    """Name to type, in order."""
    required: int
    """The number of arguments, from the first, without a default."""

    def call(self, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """The call and its values by name; None if it requires an argument that we do not have."""
        given = {
            argument: meaning
            for argument in self.arguments
            for meaning in values
            if argument.removeprefix("p_") in _NAMES[meaning]
        }
        if any(argument not in given for argument in list(self.arguments)[: self.required]):
            return None
        listed = ", ".join(
            f"{argument} => %({meaning})s::{self.arguments[argument]}"
            for argument, meaning in given.items()
        )
        return f"pgmnemo.{self.name}({listed})", {name: values[name] for name in given.values()}


class Calls:
    """The functions and the table as the database describes them."""

    def __init__(self, database: Database) -> None:
        self._functions = [_function(*row) for row in database.rows(_FUNCTIONS)]
        self._columns = {name: (kind, size) for name, kind, size in database.rows(_COLUMNS)}

    @property
    def dimensions(self) -> int:
        """The required length of vectors; 0 if any length is allowed."""
        _, length = self._columns["embedding"]
        return max(0, int(length))

    def has(self, name: str) -> bool:
        return any(function.name == name for function in self._functions)

    def signature(self, name: str) -> list[str]:
        """The arguments of the overload with the most of them."""
        return list(max(self._named(name), key=lambda f: len(f.arguments)).arguments)

    def recall(self, name: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        call, used = self._best(name, values)
        return f"SELECT * FROM {call}", used

    def ingest(self, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        if self.has("ingest"):
            call, used = self._best("ingest", values)
            return f"SELECT {call}", used
        return self._insert(values)

    def _best(self, name: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        calls = [call for function in self._named(name) if (call := function.call(values))]
        if not calls:
            raise UsageError(
                f"this version's pgmnemo.{name} requires arguments that are not known here: "
                f"{', '.join(self.signature(name))}"
            )
        return max(calls, key=lambda call: len(call[1]))

    def _named(self, name: str) -> list[Function]:
        return [function for function in self._functions if function.name == name]

    def _insert(self, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """An INSERT, for versions without `ingest`. Unverified lessons are never recalled."""
        given = {
            column: meaning
            for column in self._columns
            for meaning in values
            if column in _NAMES[meaning]
        }
        marks = [f"%({given[column]})s::{self._columns[column][0]}" for column in given]
        return (
            f"INSERT INTO pgmnemo.agent_lesson ({', '.join(given)}, verified_at) "
            f"VALUES ({', '.join(marks)}, now()) RETURNING id",
            {name: values[name] for name in given.values()},
        )


def _function(
    name: str, names: list[str], modes: list[str], types: list[str], defaults: int
) -> Function:
    """Names and modes include results; types are of arguments only."""
    taken = [
        one for one, mode in zip(names, modes or "i" * len(names), strict=True) if mode in "ibv"
    ]
    return Function(name, dict(zip(taken, types, strict=False)), len(types) - defaults)
