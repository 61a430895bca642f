"""What is written down of an error."""

from __future__ import annotations

import pytest

from mnemoscope.runner.failures import error_line


def test_no_recorded_error_contains_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    assert error_line(RuntimeError("refused sk-hunter2")) == "RuntimeError: refused …"


def test_a_key_at_the_length_limit_is_removed_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_SECRET", "hunter2" * 20)
    said = error_line(RuntimeError("x" * 450 + "hunter2" * 20))
    assert said == "RuntimeError: " + "x" * 450 + "…"


def test_the_placeholder_key_x_does_not_change_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert error_line(ValueError("next to extra")) == "ValueError: next to extra"
