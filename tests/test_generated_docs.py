"""The generated pages of docs/ are what the code says today."""

from __future__ import annotations

import pytest
from tools import docs


@pytest.mark.parametrize("name", docs.PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    page = docs.DOCS / name
    assert page.read_text(encoding="utf-8") == docs.PAGES[name](), "run: python tools/docs.py"
