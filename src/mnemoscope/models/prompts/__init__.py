"""Prompts are files, which runs identify by their hash.

A file contains `system` and `user` with {{placeholders}}, the longest reply, a typical reply for
estimates, and optionally the reply's JSON schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts.text_prompts import named_placeholders

_TEXT_TOKENS = 200
"""The longest reply to a text prompt, which cannot state it."""
_NAME = re.compile(r"\{\{ *(\w+) *\}\}")


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    system: str
    user: str
    max_tokens: int
    typical: str
    schema: dict[str, Any] | None = None


class PromptFile(msgspec.Struct, frozen=True):
    """A prompt with placeholders, and the hash of its file."""

    name: str
    sha256: str
    content: _Content
    is_text: bool = False
    """Whether it is a text file of the user's, which shows the answer as it is."""

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(_NAME.findall(self.content.system + self.content.user))

    def fill(self, **values: str) -> Prompt:
        """The prompt with values for its placeholders; the values are not searched for others."""

        def value(match: re.Match[str]) -> str:
            return values[match[1]]

        return Prompt(
            _NAME.sub(value, self.content.system).strip(),
            _NAME.sub(value, self.content.user).strip(),
            self.content.max_tokens,
            self.content.schema,
            self.content.typical.strip(),
        )

    def identity(self) -> dict[str, str]:
        return {"prompt": self.name, "prompt_sha256": self.sha256}


def load_prompt(
    name: str, holes: frozenset[str], needs: frozenset[str] = frozenset()
) -> PromptFile:
    """A shipped prompt by its name, or the user's by the path of its YAML file.

    `holes` are the placeholders that get values; a prompt must contain those in `needs`.
    """
    own = is_own(name)
    place: Any = Path(name).expanduser() if own else files(__name__) / f"{name}.yaml"
    if not place.is_file():
        raise UsageError(
            f"there is no prompt {name!r}; shipped are {', '.join(shipped())}, or give the path of "
            "your .yaml or .txt file"
        )
    raw: bytes = place.read_bytes()
    is_text = name.endswith(".txt")
    try:
        if is_text:
            content = _Content("", named_placeholders(raw.decode(), place), _TEXT_TOKENS, "yes")
        else:
            content = msgspec.convert(parse_yaml(raw.decode(), place), _Content)
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        raise DataError(str(error), file=str(place)) from None
    found = PromptFile(name, sha256(raw).hexdigest(), content, is_text)
    if unknown := sorted(found.holes - holes):
        raise DataError(
            f"the placeholder {{{{{unknown[0]}}}}} has no value here; known are "
            f"{', '.join(sorted(holes))}",
            file=str(place),
        )
    if lacking := sorted(needs - found.holes):
        raise DataError(
            f"{{{{{lacking[0]}}}}} is missing from its system and user text: add it, or the model "
            "does not see that text",
            file=str(place),
        )
    return found


def is_own(name: str) -> bool:
    """Whether this is the path of a user's prompt, not the name of a shipped one."""
    return name.endswith((".yaml", ".yml", ".txt"))


def load_family(
    name: str, kinds: Sequence[str], holes: frozenset[str], needs: frozenset[str] = frozenset()
) -> dict[str, PromptFile]:
    """A prompt for each kind: `NAME-KIND`, `folder/name-KIND.txt`, or one own file for all."""
    if not is_own(name):
        return {kind: load_prompt(f"{name}-{kind}", holes, needs) for kind in kinds}
    stem, dot, ending = name.rpartition(".")
    if Path(name).expanduser().is_file():
        return dict.fromkeys(kinds, load_prompt(name, holes, needs))
    return {kind: load_prompt(f"{stem}-{kind}{dot}{ending}", holes, needs) for kind in kinds}


def shipped() -> list[str]:
    names = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))
