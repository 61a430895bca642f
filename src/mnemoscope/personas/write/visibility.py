"""Visibility: the parts of persona and arcs that the prompts of one session may contain.

The prompts of other sessions never contain the text of an isolated session, nor a sentence of the
persona or arcs files that names one of its topics.
"""

from __future__ import annotations

import re

import msgspec

from mnemoscope.personas.simulate.story import Person, Principal
from mnemoscope.personas.write.persona_files import Arc, Arcs, Persona, PersonaSession
from mnemoscope.personas.write.session_schedule import echoes

_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+")
_APART = re.compile(r"[\s_-]+")


class Visibility:
    """What the prompts of one session may contain."""

    def __init__(self, persona: Persona, arcs: Arcs, session: str) -> None:
        self._persona = persona
        self._session = session
        self._others = [one for one in persona.sessions if one.isolated and one.id != session]
        self._secret = _any_of(_secrets(persona, arcs, session, self._others))

    def cut(self, text: str) -> str:
        """The text without the sentences that name a secret of another session."""
        if self._secret is None:
            return text
        lines = []
        for line in text.split("\n"):
            if not self._secret.search(line):
                lines.append(line)
                continue
            kept = [part for part in _SENTENCE_END.split(line) if not self._secret.search(part)]
            if kept:
                lines.append(" ".join(kept))
        return "\n".join(lines)

    def hides(self, arc: Arc) -> bool:
        """Whether a part of the arc is a secret of another session."""
        events = (directive.event for directive in arc.directives)
        texts = (arc.title, arc.description, arc.wrong_belief, arc.corrected_belief, *events)
        return any(map(self.is_secret, texts))

    def is_secret(self, text: str) -> bool:
        return self._secret is not None and self._secret.search(text) is not None

    def persona(self) -> Persona:
        """The persona without the secrets of other sessions."""
        whole = self._persona
        principal = whole.principal
        return msgspec.structs.replace(
            whole,
            role=self.cut(whole.role),
            domain=self.cut(whole.domain),
            profile=self.cut(whole.profile),
            communication_style=self.cut(whole.communication_style),
            principal=principal
            and Principal(principal.name, self.cut(principal.role), self.cut(principal.profile)),
            cast=tuple(person for person in whole.cast if self._is_known(person)),
            projects=tuple(
                one
                for one in whole.projects
                if not self.is_secret(f"{one.id} {one.name}: {one.description}")
            ),
            shared_knowledge=tuple(filter(None, map(self.cut, whole.shared_knowledge))),
            sessions=tuple(one for one in whole.sessions if one not in self._others),
        )

    def arc(self, arc: Arc) -> Arc:
        """An arc without the secrets of other sessions."""
        return msgspec.structs.replace(
            arc,
            title=self.cut(arc.title),
            description=self.cut(arc.description),
            participants=tuple(name for name in arc.participants if self._is_met(name)),
            directives=tuple(one for one in arc.directives if not self.is_secret(one.event)),
            wrong_belief=self.cut(arc.wrong_belief),
            corrected_belief=self.cut(arc.corrected_belief),
        )

    def _is_known(self, person: Person) -> bool:
        """Their name and role name no secret, and one of their sessions is open or this one."""
        return self._is_met(person.name) and not self.is_secret(f"{person.name}, {person.role}")

    def _is_met(self, name: str) -> bool:
        sessions = [one for one in self._persona.sessions if name in one.participants]
        met = not sessions or any(one not in self._others for one in sessions)
        return met and not self.is_secret(name)


def _secrets(
    persona: Persona, arcs: Arcs, session: str, others: list[PersonaSession]
) -> dict[str, None]:
    """Topics, ids and arc titles of the other isolated sessions that this one does not share."""
    own = {
        topic.casefold()
        for one in persona.sessions
        if one.id == session
        for topic in one.sensitive_topics
    }
    known = {
        arc.title.casefold()
        for arc in arcs.arcs
        if arc.primary_session == session or session in echoes(arc, persona)
    }
    hidden = {one.id for one in others}
    found = [topic for one in others for topic in one.sensitive_topics]
    found += [id for id in hidden if _is_specific(id)]
    found += [
        arc.title for arc in arcs.arcs if arc.primary_session in hidden and _is_specific(arc.title)
    ]
    return {one: None for one in sorted(found) if one.casefold() not in own | known and one.strip()}


def _is_specific(name: str) -> bool:
    """Whether it has several words: one word such as `family` or `Budget` is too common."""
    return len(_APART.split(name.strip())) > 1


def _any_of(secrets: dict[str, None]) -> re.Pattern[str] | None:
    """A pattern for any of them, with other separators between the words, or a plural s."""
    if not secrets:
        return None
    spelt = (
        r"[\s_-]+".join(map(re.escape, filter(None, _APART.split(secret)))) for secret in secrets
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(spelt)})(?:['’]?s)?(?!\w)", re.IGNORECASE)
