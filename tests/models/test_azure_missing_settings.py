"""The error for missing Azure settings names each of them."""

from __future__ import annotations

import importlib.util

import pytest
from tests.optional import missing

from mnemoscope._store.errors import UsageError
from mnemoscope.models.chat import Prompt
from mnemoscope.models.providers.openai_chat import AzureProvider

if importlib.util.find_spec("openai") is None:
    missing("openai is not installed")


def test_a_single_missing_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    monkeypatch.setenv("OPENAI_API_VERSION", "1")
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(UsageError, match="needs AZURE_OPENAI_ENDPOINT in the environment"):
        AzureProvider("deployment").complete(Prompt("", "Hello?"))
