"""Registries: names to classes and functions, imported on first use.

The built-in ones are in one literal table, so listing them imports nothing. Other packages add
theirs through an entry-point group. `MNEMOSCOPE_PLUGINS=0` switches plugins off.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.import_path import find_named_modules
from mnemoscope._store.spec import Spec, parse_scalar
from mnemoscope._store.suggest import did_you_mean
from mnemoscope.types import Scalar


@dataclass(frozen=True)
class Entry:
    """A built-in: its import path and a one-line summary."""

    target: str
    summary: str = ""


@dataclass(frozen=True)
class Registry:
    """Everything of one kind that can be chosen by name."""

    kind: str
    builtin: Mapping[str, Entry]
    group: str = ""

    def names(self) -> list[str]:
        return [*self.builtin, *sorted(set(self._plugins()) - set(self.builtin))]

    def __contains__(self, name: str) -> bool:
        """Plug-ins are looked for only if there is no built-in one: that takes milliseconds."""
        return name in self.builtin or name in self._plugins()

    def summary(self, name: str) -> str:
        if name in self.builtin:
            return self.builtin[name].summary
        return f"plugin: {self._plugins()[name]}"

    def get(self, name: str) -> Any:
        """The class or function behind a name or behind `module:Name`."""
        return import_target(self.locate(name), self.kind)

    def locate(self, name: str) -> str:
        """The import path `module:Name` behind a name; nothing is imported."""
        if name in self.builtin:
            return self.builtin[name].target
        if (plugin := self._plugins().get(name)) is not None:
            return plugin
        if ":" in name:
            return name
        known = self.names()
        raise UsageError(
            f"unknown {self.kind} {name!r}: {did_you_mean(name, known)}known are {', '.join(known)}"
            + (", or your own as module:Name" if self.group else "")
        )

    def _plugins(self) -> dict[str, str]:
        if not self.group or os.environ.get("MNEMOSCOPE_PLUGINS") == "0":
            return {}
        from importlib.metadata import entry_points  # takes longer to import than this module

        return {point.name: point.value for point in entry_points(group=self.group)}


def import_target(target: str, kind: str) -> Any:
    """Import `module:Name`; an error says whether the module or the name is wrong."""
    module_name, _, attribute = target.partition(":")
    if not _is_installed(module_name):
        find_named_modules()
    try:
        found: Any = importlib.import_module(module_name)
    except MnemoscopeError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"cannot import {kind} {target!r}: {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"module {module_name!r} has no {attribute!r}") from None
    return found


def _is_installed(module: str) -> bool:
    """Whether our own path has the package of a module."""
    package = module.partition(".")[0]
    return package in sys.modules or PathFinder.find_spec(package) is not None


def bind_arguments(factory: Callable[..., Any], spec: Spec, *given: str) -> dict[str, Scalar]:
    """All arguments of the factory, given and defaulted, checked against its annotations.

    Parameters named in `given` are left out: the caller sets them.
    """
    parameters = {n: p for n, p in inspect.signature(factory).parameters.items() if n not in given}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {key: _fit(spec, key, value, None) for key, value in spec.args.items()}
    for key in spec.args:
        if key not in parameters:
            has = ", ".join(parameters) or "none"
            hint = did_you_mean(key, parameters)
            raise UsageError(f"{spec.name!r} has no option {key!r}: {hint}it has {has}")
    kinds = _annotations(factory)
    bound: dict[str, Scalar] = {}
    for name, parameter in parameters.items():
        if name in spec.args:
            bound[name] = _fit(spec, name, spec.args[name], kinds.get(name))
        elif parameter.default is parameter.empty:
            raise UsageError(f"{spec.name!r} needs the option {name!r}: {spec},{name}=…")
        else:
            bound[name] = parameter.default
    return bound


def describe_options(factory: Callable[..., Any], *given: str) -> dict[str, str]:
    """Each option with its default and, if they are few, its other values: `session|turn`."""
    kinds = _annotations(factory)
    described: dict[str, str] = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        if name in given or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        default = "required" if parameter.default is parameter.empty else parameter.default
        kind = kinds.get(name)
        values: list[Any] = [default]
        if kind is bool:
            values = ["on", "off"] if default else ["off", "on"]
        elif get_origin(kind) is Literal:
            values += [value for value in get_args(kind) if value != default]
        described[name] = "|".join(map(str, values))
    return described


def _annotations(factory: Callable[..., Any]) -> dict[str, Any]:
    """The parameters' types; empty if an annotation cannot be evaluated at run time."""
    try:
        return get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    except Exception:
        return {}


def _fit(spec: Spec, name: str, value: Scalar, kind: Any) -> Scalar:
    """The value converted to the annotated type; an error lists the allowed values."""
    choices: tuple[Any, ...] = ()
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value in choices:
            return value
    elif kind is bool:
        choices = tuple(_SWITCH)
        if str(value).lower() in _SWITCH:
            return _SWITCH[str(value).lower()]
    elif kind is str:
        return str(value)
    elif kind in (int, float):
        value = parse_scalar(value) if isinstance(value, str) else value
        if isinstance(value, kind | int) and not isinstance(value, bool):
            return float(value) if kind is float else value
        noun = "an integer" if kind is int else "a number"
        raise UsageError(f"{spec.name!r}: {name}={value} is not {noun}")
    else:
        return parse_scalar(value) if isinstance(value, str) else value
    listed = ", ".join(map(str, choices))
    raise UsageError(f"{spec.name!r}: {name}={value} is unknown, choose from {listed}")


_SWITCH = {"true": True, "false": False, "on": True, "off": False, "yes": True, "no": False}
