"""Names lead to things, imported only when asked for; a broken plugin breaks nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import Entry, Registry, bind_arguments, import_target
from mnemoscope._store.spec import Spec
from mnemoscope.types import Scalar

GROUP = "mnemoscope.test_things"
THINGS = Registry(
    "thing",
    {
        "counter": Entry("collections:Counter", "counts"),
        "decimal": Entry("decimal:Decimal", "exact"),
    },
    GROUP,
)
PLUGINS = """
good = registry_plugin:Good
broken = registry_plugin_broken:Thing
missing = no_such_registry_module:Thing
leaving = registry_plugin_leaving:Thing
counter = registry_plugin:Good
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with plugins, good and bad."""
    info = tmp_path / "registry_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: registry-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]{PLUGINS}")
    (tmp_path / "registry_plugin.py").write_text("class Good:\n    pass\n")
    (tmp_path / "registry_plugin_broken.py").write_text("1 / 0\n")
    (tmp_path / "registry_plugin_leaving.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_listing_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "decimal", raising=False)

    assert THINGS.names() == ["counter", "decimal"]
    assert THINGS.summary("decimal") == "exact"
    assert "decimal" not in sys.modules


def test_a_name_gives_the_object() -> None:
    from collections import Counter

    assert THINGS.get("counter") is Counter
    assert THINGS.get("collections:Counter") is Counter
    assert THINGS.get("collections:Counter.most_common") is Counter.most_common


@pytest.mark.usefixtures("plugins")
def test_broken_plugins_are_listed_and_do_not_break_the_list() -> None:
    assert THINGS.names() == ["counter", "decimal", "broken", "good", "leaving", "missing"]
    assert THINGS.summary("broken") == "plugin: registry_plugin_broken:Thing"


@pytest.mark.usefixtures("plugins")
def test_plugins_are_found_by_name_but_never_in_place_of_a_built_in() -> None:
    assert THINGS.get("good").__name__ == "Good"
    assert THINGS.get("counter").__name__ == "Counter"


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", "cannot import thing 'registry_plugin_broken:Thing': ZeroDivisionError"),
        ("missing", "cannot import thing 'no_such_registry_module:Thing': ModuleNotFoundError"),
        ("leaving", "cannot import thing 'registry_plugin_leaving:Thing': SystemExit"),
    ],
)
def test_a_broken_plugin_says_what_is_wrong_when_it_is_chosen(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        THINGS.get(name)


@pytest.mark.usefixtures("plugins")
def test_plugins_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_PLUGINS", "0")

    assert THINGS.names() == ["counter", "decimal"]
    with pytest.raises(UsageError, match="unknown thing 'good'"):
        THINGS.get("good")


@pytest.mark.usefixtures("plugins")
def test_a_registry_without_a_group_has_no_plugins() -> None:
    assert Registry("thing", THINGS.builtin).names() == ["counter", "decimal"]


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean 'counter'") as caught:
        THINGS.get("conter")
    assert "known are counter, decimal, or your own as module:Name" in str(caught.value)


def test_a_missing_attribute_is_told_apart_from_a_missing_module() -> None:
    with pytest.raises(UsageError, match="module 'collections' has no 'Conter'"):
        import_target("collections:Conter", "thing")
    with pytest.raises(UsageError, match="cannot import thing 'colections:Counter'"):
        import_target("colections:Counter", "thing")


class Thing:
    def __init__(
        self,
        data: Path,
        weight: float = 0.5,
        size: int = 3,
        fusion: Literal["minmax", "rrf"] = "minmax",
        cache: bool = True,
        label: str = "",
    ) -> None: ...


def bound(text: str, factory: Callable[..., Any] = Thing) -> dict[str, Scalar]:
    return bind_arguments(factory, Spec.parse(text), "data")


def test_given_arguments_are_fitted_and_the_others_are_the_defaults() -> None:
    assert bound("thing,weight=1,cache=off,label=7") == {
        "weight": 1.0,
        "size": 3,
        "fusion": "minmax",
        "cache": False,
        "label": "7",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("thing,wight=1", "has no option 'wight': did you mean 'weight'?"),
        ("thing,data=x", "has no option 'data'"),
        ("thing,weight=heavy", "weight=heavy is not a number"),
        ("thing,weight=true", "weight=True is not a number"),
        ("thing,size=1.5", "size=1.5 is not an integer"),
        ("thing,fusion=max", "fusion=max is unknown, choose from minmax, rrf"),
        ("thing,cache=maybe", "cache=maybe is unknown, choose from true, false, on, off, yes, no"),
    ],
)
def test_an_argument_of_the_wrong_type_is_explained(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        bound(text)
    assert said in str(caught.value)


def test_a_missing_required_argument_is_an_error() -> None:
    with pytest.raises(UsageError, match="needs the option 'data': thing,data=…"):
        bind_arguments(Thing, Spec("thing"))


def test_a_factory_with_keyword_arguments_gets_the_given_ones() -> None:
    def anything(**options: object) -> None: ...

    assert bound("thing,a=1,b=x", anything) == {"a": 1, "b": "x"}


def test_annotations_that_cannot_be_evaluated_are_ignored() -> None:
    def strange(client: Any = None, size: int = 3) -> None: ...

    strange.__annotations__["client"] = "NowhereDefined"

    assert bound("thing,size=4", strange) == {"client": None, "size": 4}
