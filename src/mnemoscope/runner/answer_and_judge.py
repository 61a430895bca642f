"""The reader turns hits into an answer, and the judges turn an answer into a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost
from mnemoscope._store.jsonl import printable
from mnemoscope.judges import Case, Judge, Unjudged
from mnemoscope.judges.appeal import decide, excerpts
from mnemoscope.models.http_errors import without_keys
from mnemoscope.readers import Passage, Reader, Reply
from mnemoscope.runner.failures import error_line, is_a, stop_if_ours, timed_out
from mnemoscope.runner.pipeline import Ask, Pipeline, forgotten_by
from mnemoscope.systems.loader import Driver
from mnemoscope.text.abstention import says_nothing
from mnemoscope.types import (
    FAILED,
    Answer,
    Grade,
    Memory,
    Query,
    Scenario,
    Score,
    Status,
    Trial,
    Verdict,
)


class AnswerAndJudge:
    """The reader and the judges of one worker process."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._reader: Reader | None = pipeline.reader.build() if pipeline.reader else None
        self._judge: Judge | None = pipeline.judge.build() if pipeline.judge else None
        self._appellate: Judge | None = pipeline.appellate.build() if pipeline.appellate else None
        self._scenario: Scenario | None = None
        self._memories: dict[str, Memory] = {}

    def begin(self, scenario: Scenario) -> None:
        if self._scenario is scenario:
            return
        self._scenario = scenario
        if self._reader is not None:
            self._memories = {memory.id: memory for memory in scenario.memories}
        for judge, plan in (
            (self._judge, self._pipeline.judge),
            (self._appellate, self._pipeline.appellate),
        ):
            if judge is not None and plan is not None:
                try:
                    judge.begin(scenario)
                except (Exception, SystemExit) as error:
                    stop_if_ours(error)
                    raise MnemoscopeError(
                        f"judge {plan.spec} cannot begin with {scenario.id}: {error_line(error)}"
                    ) from error

    def answer(self, ask: Ask, trial: Trial | None, driver: Driver | None, seen: int) -> Answer:
        """The answer of the reader, or of the system itself.

        `SystemLost` is not caught here: the caller restarts the system.
        """
        assert self._scenario is not None
        about = (self._scenario.id, ask.question.id)
        if trial is not None and trial.status in FAILED:  # only with --compat recall-bench
            return self._pipeline.no_answer(self._scenario.id, ask, trial.status, trial.error)
        try:
            if self._pipeline.system_answers:
                assert driver is not None
                reply = Reply(driver.answer(ask.question), abstained=None)
            else:
                assert self._reader is not None and trial is not None
                question = ask.question
                policy = self._scenario.policy
                query = Query(question.text, question.now, question.session, policy)
                passages = list(self._passages(trial, seen, ask.checkpoint))
                reply = _checked(self._reader.read(query, passages))
        except BaseException as error:
            stop_if_ours(error)
            if is_a(error, SystemLost) and self._pipeline.system_answers:
                raise
            status: Status = "timeout" if timed_out(error) else "error"
            return self._pipeline.no_answer(self._scenario.id, ask, status, error_line(error))
        abstained = reply.abstained
        if abstained is None:
            abstained = says_nothing(reply.text, ask.question.text)
        status = _status(reply, abstained)
        return Answer(
            *about,
            status,
            reply.text,
            reply.sources,
            checkpoint=ask.checkpoint,
            shown=reply.shown,
        )

    def judge(self, ask: Ask, trial: Trial | None, answer: Answer, seen: int) -> Verdict:
        assert self._scenario is not None and self._judge is not None
        window = self._pipeline.window
        case = Case(
            ask.question,
            answer.text,
            abstained=answer.status == "abstained",
            memories=seen,
            excerpts=excerpts(self._scenario, ask.question, window, seen) if window else "",
            recalled=self._recalled(trial, answer, seen) if self._recalled_wanted else (),
            policy=self._scenario.policy,
        )
        final: Score | Grade | None = None
        primary: Score | Grade | None = None
        failure = ""
        try:
            final, primary, failure = decide(self._judge, self._appellate, case)
            if isinstance(final, Grade) and any(p.days for p in self._scenario.checkpoints):
                final = primary = None
                failure = (
                    "a simulated history is scored by the rubric, and this judge gives one number"
                )
        except Unjudged as error:
            failure = without_keys(str(error))
        except BaseException as error:
            stop_if_ours(error)
            failure = error_line(error)
        return Verdict(
            self._scenario.id,
            ask.question.id,
            final if isinstance(final, Score) else None,
            primary if isinstance(primary, Score) else None,
            error=failure,
            checkpoint=ask.checkpoint,
            grade=final if isinstance(final, Grade) else None,
            primary_grade=primary if isinstance(primary, Grade) else None,
        )

    @property
    def _recalled_wanted(self) -> bool:
        return any(getattr(one, "wants_recalled", False) for one in (self._judge, self._appellate))

    def _recalled(self, trial: Trial | None, answer: Answer, seen: int) -> tuple[str, ...]:
        """The texts of the passages that the reader was shown."""
        if trial is None:
            return ()
        passages = self._passages(trial, seen, answer.checkpoint)
        return tuple(passage.text for passage in passages)[: answer.shown]

    def _passages(self, trial: Trial, seen: int, checkpoint: str) -> Iterator[Passage]:
        """The hits as passages, each once; or all memories, if the reader wants everything."""
        if getattr(self._reader, "wants_everything", False):
            assert self._scenario is not None
            gone = forgotten_by(self._scenario, checkpoint)
            for each in self._scenario.memories[:seen]:
                if each.id not in gone:
                    yield Passage(each.id, each.text, each.at, each.session)
            return
        for id in dict.fromkeys(trial.ranking):
            own = self._memories.get(id)
            if own is not None:
                yield Passage(id, trial.texts.get(id, own.text), own.at, own.session)
            elif id in trial.texts:
                first = self._memories.get(next(iter(trial.sources.get(id, ())), ""))
                yield Passage(id, trial.texts[id], first.at if first else None)
            else:
                for source in trial.sources.get(id, ()):
                    if (memory := self._memories.get(source)) is not None:
                        yield Passage(source, memory.text, memory.at, memory.session)


def _checked(reply: object) -> Reply:
    """The reply with values that can be written; an error if it is not a Reply."""
    if not isinstance(reply, Reply) or not isinstance(reply.text, str):
        raise BadReply(f"the reader returned {type(reply).__name__} {reply!r:.80}, not a Reply")
    abstained = None if reply.abstained is None else bool(reply.abstained)
    sources = tuple(str(source) for source in reply.sources)
    shown = None if reply.shown is None else int(reply.shown)
    return Reply(printable(reply.text), abstained, sources, shown, bool(reply.truncated))


def _status(reply: Reply, abstained: bool) -> Status:
    if abstained:
        return "abstained"
    if not reply.text.strip():
        return "empty"
    return "truncated" if reply.truncated else "answered"
