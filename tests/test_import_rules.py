"""The rules about which room may import which hold, and are able to fail."""

from __future__ import annotations

from tools.import_rules import allowed_imports, module_imports, problems


def test_every_room_imports_only_what_it_may_and_no_modules_import_each_other() -> None:
    assert problems(allowed_imports(), module_imports()) == []


def test_a_forbidden_import_a_cycle_and_a_room_without_a_line_are_found() -> None:
    rules = {"types": [], "runner": ["types"], "cli": ["*"]}
    imports = {
        "mnemoscope": {"mnemoscope.types"},
        "mnemoscope.types": {"mnemoscope.runner.worker"},
        "mnemoscope.runner.worker": {"mnemoscope.types"},
        "mnemoscope.attic.box": set[str](),
        "mnemoscope.cli.app": {"mnemoscope.runner.worker"},
    }
    found = problems(rules, imports)
    assert found[0].startswith("mnemoscope.attic.box: the room 'attic' has no line")
    assert found[1].endswith("types may not import runner")
    assert found[2].startswith("import cycle: ")
    assert len(found) == 3
