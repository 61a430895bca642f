"""One question of a run with all that is known about it, and the questions that a run missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mnemoscope.results.frames import SHOWN_ROWS, frame_of, html_table, plain_cell
from mnemoscope.results.result_rows import QuestionRow
from mnemoscope.text.display import as_html

if TYPE_CHECKING:
    from mnemoscope.analysis.question_details import QuestionDetails
    from mnemoscope.results.frames import DataFrame


class ShownQuestion:
    """One question of one run: evidence, hits, answer and verdicts."""

    def __init__(
        self,
        details: QuestionDetails,
        system: str,
        *,
        has_texts: bool,
        category_names: Mapping[str, str] = {},
    ) -> None:
        self.details = details
        self.system = system
        self.has_texts = has_texts
        """Whether the texts of memories are known, from the dataset or from the run's page."""
        self.category_names = category_names

    def __repr__(self) -> str:
        about = self.details
        found = f", evidence {about.found} in the top {about.k}" if about.found else ""
        return f"{about.id} by {self.system}: {about.status}{found}"

    def _repr_html_(self) -> str:
        about = self.details
        rows = [
            [
                *(str(hit.rank), plain_cell(hit.score), hit.kind, hit.id),
                hit.text if hit.text is not None else hit.memory.text if hit.memory else "",
            ]
            for hit in about.hits[:SHOWN_ROWS]
        ]
        told = [repr(self), about.text, f"reference: {about.reference}"]
        told += [f"answer: {about.answer.text}"] if about.answer else []
        return "".join(f"<p>{as_html(line)}</p>" for line in told) + html_table(
            ["rank", "score", "hit", "memory", "text"], rows
        )


class MissedQuestions:
    """The questions that a run missed, each with the reason."""

    def __init__(
        self,
        rows: Sequence[QuestionRow],
        system: str,
        *,
        asked: int,
        category_names: Mapping[str, str] = {},
        withheld: str = "",
    ) -> None:
        self.rows = list(rows)
        self.system = system
        self.asked = asked
        """How many questions the run asked, in the chosen category."""
        self.category_names = category_names
        self.withheld = withheld
        """Why the judge's verdicts give no figure; the number of missed questions is one."""

    def to_frame(self) -> DataFrame:
        return frame_of(QuestionRow, self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        if self.withheld:
            return f"Questions that {self.system} missed by verdicts without a figure"
        return f"{self.system} missed {len(self.rows):,} of {self.asked:,} questions"

    def _repr_html_(self) -> str:
        rows = [[plain_cell(cell) for cell in row] for row in self.rows[:SHOWN_ROWS]]
        return f"<p>{as_html(repr(self))}</p>{html_table(QuestionRow._fields, rows)}"
