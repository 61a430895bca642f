"""Discretion: what the writer of one session may know, cut out of the papers.

What is said in an isolated session stays there. Its text is never given to another; and of the
papers another session's writer sees no sentence that names what the isolated one is about.
"""

from __future__ import annotations

import re

import msgspec

from mnemoscope.personas.simulate.story import Person, Principal, Project
from mnemoscope.personas.write.persona_files import Arc, Arcs, Persona, PersonaSession
from mnemoscope.personas.write.session_schedule import echoes

_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+")
_APART = re.compile(r"[\s_-]+")


class Visibility:
    """What may be told in one session."""

    def __init__(self, persona: Persona, arcs: Arcs, session: str) -> None:
        self._persona = persona
        self._session = session
        self._others = [room for room in persona.sessions if room.isolated and room.id != session]
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
        """Whether some of the arc may not be told here."""
        events = (directive.event for directive in arc.directives)
        texts = (arc.title, arc.description, arc.wrong_belief, arc.corrected_belief, *events)
        return any(map(self.is_secret, texts))

    def is_secret(self, text: str) -> bool:
        return self._secret is not None and self._secret.search(text) is not None

    def persona(self) -> Persona:
        """The persona's paper as this session's writer may read it."""
        whole = self._persona
        return msgspec.structs.replace(
            whole,
            role=self.cut(whole.role),
            domain=self.cut(whole.domain),
            profile=self.cut(whole.profile),
            communication_style=self.cut(whole.communication_style),
            principal=self._principal(whole.principal),
            cast=tuple(person for person in whole.cast if self._is_known(person)),
            projects=tuple(one for one in whole.projects if not self.is_secret(_words(one))),
            shared_knowledge=tuple(filter(None, map(self.cut, whole.shared_knowledge))),
            sessions=tuple(room for room in whole.sessions if room not in self._others),
        )

    def arc(self, arc: Arc) -> Arc:
        """An arc as this session's writer may read it."""
        return msgspec.structs.replace(
            arc,
            title=self.cut(arc.title),
            description=self.cut(arc.description),
            participants=tuple(name for name in arc.participants if self._is_met(name)),
            directives=tuple(one for one in arc.directives if not self.is_secret(one.event)),
            wrong_belief=self.cut(arc.wrong_belief),
            corrected_belief=self.cut(arc.corrected_belief),
        )

    def _principal(self, principal: Principal | None) -> Principal | None:
        if principal is None:
            return None
        return Principal(principal.name, self.cut(principal.role), self.cut(principal.profile))

    def _is_known(self, person: Person) -> bool:
        """Neither their role names a secret, nor are they met in other isolated sessions alone."""
        return self._is_met(person.name) and not self.is_secret(f"{person.name}, {person.role}")

    def _is_met(self, name: str) -> bool:
        rooms = [room for room in self._persona.sessions if name in room.participants]
        met = not rooms or any(room not in self._others for room in rooms)
        return met and not self.is_secret(name)


def _secrets(
    persona: Persona, arcs: Arcs, session: str, others: list[PersonaSession]
) -> dict[str, None]:
    """The topics, names and arcs of the other isolated sessions that are not this one's as well."""
    own = {
        topic.casefold()
        for room in persona.sessions
        if room.id == session
        for topic in room.sensitive_topics
    }
    known = {
        arc.title.casefold()
        for arc in arcs.arcs
        if arc.primary_session == session or session in echoes(arc, persona)
    }
    hidden = {room.id for room in others}
    found = [topic for room in others for topic in room.sensitive_topics]
    found += [id for id in hidden if _is_telling(id)]
    found += [
        arc.title for arc in arcs.arcs if arc.primary_session in hidden and _is_telling(arc.title)
    ]
    return {one: None for one in sorted(found) if one.casefold() not in own | known and one.strip()}


def _is_telling(name: str) -> bool:
    """One word alone may be anybody's: `family`, `Budget`."""
    return len(_APART.split(name.strip())) > 1


def _any_of(secrets: dict[str, None]) -> re.Pattern[str] | None:
    """Finds any of them, with other gaps between the words, and with an s behind."""
    if not secrets:
        return None
    spelt = (
        r"[\s_-]+".join(map(re.escape, filter(None, _APART.split(secret)))) for secret in secrets
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(spelt)})(?:['’]?s)?(?!\w)", re.IGNORECASE)


def _words(project: Project) -> str:
    return f"{project.id} {project.name}: {project.description}"
