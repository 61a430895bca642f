"""The server of the viewer: which address shows what, on loopback only, by GET only.

A request names runs by ids from the listing and questions by their ids. No part of an address
becomes a path.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.json_server import JsonReply, JsonRequest, JsonServer, ServerLimits
from mnemoscope.analysis.comparison import Discordant
from mnemoscope.analysis.system_groups import labelled
from mnemoscope.results import ComparisonResult
from mnemoscope.viewer.checkpoint_pages import checkpoint_panel, checkpoints_content
from mnemoscope.viewer.comparison_pages import (
    BY_ANSWERS,
    ChangedQuestions,
    answer_changes,
    changed_by,
    comparison_content,
    question_content,
)
from mnemoscope.viewer.html_elements import Child, el, foreign, page
from mnemoscope.viewer.kept_results import KeptResults
from mnemoscope.viewer.live_pages import live_content, live_state
from mnemoscope.viewer.live_progress import LiveProgress, RunWatcher
from mnemoscope.viewer.page_replies import (
    SHARED_HEADERS,
    PageError,
    Query,
    asset_routes,
    band_of,
    first,
    html_reply,
    not_found,
    report_reply,
)
from mnemoscope.viewer.run_folder import RunFolder, ViewedRun
from mnemoscope.viewer.run_pages import list_content, run_content
from mnemoscope.viewer.system_pages import (
    compared_runs,
    forest_content,
    metrics_of,
    systems_content,
)

HOST = "127.0.0.1"
MOST_SYSTEMS = 40
"""Runs that one table or plot shows: all pairs of more would take minutes."""
_MOST_FIELDS = 200


class ViewServer:
    """Serves the pages over the runs below one folder."""

    def __init__(self, folder: Path, *, port: int = 0, data: Path | None = None) -> None:
        self._folder = RunFolder(folder)
        self._kept = KeptResults(data)
        self._watchers: dict[str, RunWatcher] = {}
        self._watching = Lock()
        pages: dict[str, Callable[[Query], JsonReply]] = {
            "/": self._list,
            "/run": self._run,
            "/systems": self._systems,
            "/forest": self._forest,
            "/compare": self._compare,
            "/question": self._question,
            "/checkpoints": self._checkpoints,
            "/live": self._live,
            "/live.json": self._live_json,
            "/report": self._report,
        }
        routes = {f"GET {path}": self._served(show) for path, show in pages.items()}
        routes |= asset_routes()
        limits = ServerLimits(connections=64, body_bytes=0, total_bytes=0)
        self._server = JsonServer(routes, host=HOST, port=port, allow_hosts=None, limits=limits)
        self.url = self._server.url
        self.start, self.serve_forever = self._server.start, self._server.serve_forever
        self.close = self._server.close

    def _served(self, show: Callable[[Query], JsonReply]) -> Callable[[JsonRequest], JsonReply]:
        def answer(request: JsonRequest) -> JsonReply:
            try:
                query = parse_qs(request.query, max_num_fields=_MOST_FIELDS)
            except ValueError:
                return self._failed(PageError(400, "Not found", "the address has too many fields"))
            try:
                return show(query)
            except PageError as error:
                return self._failed(error)
            except MnemoscopeError as error:
                return self._failed(PageError(422, "Not possible", self._folder.shown(error)))
            except Exception as error:  # files that another program wrote
                text = f"this cannot be shown: {self._folder.shown(error)}"
                return self._failed(PageError(500, "Not readable", text))

        return answer

    def _failed(self, error: PageError) -> JsonReply:
        return self._page(
            error.title, el("p", foreign(str(error)), class_="problem"), status=error.status
        )

    def _page(
        self,
        title: str,
        *content: Child | list[Child],
        status: int = 200,
        here: str = "",
        below: str = "",
    ) -> JsonReply:
        body = page(title, *content, folder=self._folder.root.name, here=here, below=below)
        return html_reply(body, status)

    # Pages

    def _list(self, query: Query) -> JsonReply:
        runs = self._folder.runs()
        content = list_content(runs, is_truncated=self._folder.is_truncated)
        return self._page("Runs", *content, here="/")

    def _run(self, query: Query) -> JsonReply:
        run = self._named(query)
        siblings = [one for one in self._folder.runs() if run.set and one.set == run.set]
        return self._page(run.name, *run_content(run, siblings))

    def _systems(self, query: Query) -> JsonReply:
        runs = self._chosen(query)
        ranked = [one for one in runs if one.view and one.view.metrics["overall"]]
        try:
            content = systems_content(runs, self._kept.groups(ranked))
        except MnemoscopeError as error:
            content = systems_content(runs, self._folder.shown(error))
        return self._page(f"Systems on {runs[0].benchmark}", *content, below=runs[0].options)

    def _forest(self, query: Query) -> JsonReply:
        runs = self._chosen(query)
        if "run" not in query:  # the oracle would only stretch the scale
            every = labelled([one.directory for one in runs])
            kept = [run for run, about in zip(runs, every, strict=True) if not about.sees_labels]
            runs = kept or runs
        named = first(query, "reference")
        reference = next((one for one in runs if one.id == named), None)
        if named and reference is None:
            raise not_found()
        if reference is None:
            reference = next((one for one in runs if one.system == "bm25"), runs[0])
        band = band_of(first(query, "band"))

        def compare(base: ViewedRun, cand: ViewedRun) -> ComparisonResult | str:
            try:
                return self._kept.comparison(base, cand, band=band, by_category=False)
            except MnemoscopeError as error:
                return self._folder.shown(error)

        compared = compared_runs(runs, reference, compare)
        metric = first(query, "metric")
        if metric and metric not in metrics_of(compared):
            raise PageError(404, "Not found", "these runs do not have this metric")
        content = forest_content(runs, reference, compared, metric, band)
        title = f"Differences on {runs[0].benchmark}"
        return self._page(title, *content, below=runs[0].options)

    def _compare(self, query: Query) -> JsonReply:
        base, cand = self._two(query)
        choices = changed_by([one.view for one in (base, cand) if one.view is not None])
        by = first(query, "by") or next(
            (one for one in choices if one == "hit@10"), choices[0] if choices else ""
        )
        if by and by not in choices:
            raise PageError(404, "Not found", "these runs do not have this measure")
        hits = "" if by == BY_ANSWERS else by
        problem = "" if by else "these runs have neither a hit metric nor judged answers in common"
        try:
            result = self._kept.comparison(base, cand, discordant=hits)
        except MnemoscopeError as error:
            if not hits:
                raise
            problem = self._folder.shown(error)
            result = self._kept.comparison(base, cand)
        found: list[Discordant] = result.paired.discordant if result.paired else []
        if by == BY_ANSWERS:
            found = answer_changes(self._kept.question_rows(base), self._kept.question_rows(cand))
        changed = ChangedQuestions(by, choices, found, problem)
        return self._page(
            f"{cand.name} against {base.name}", *comparison_content(base, cand, result, changed)
        )

    def _question(self, query: Query) -> JsonReply:
        base, cand = self._two(query)
        id = first(query, "id")
        found = self._kept.details(base, id), self._kept.details(cand, id)
        if found == (None, None):
            raise PageError(404, "Not found", "neither run asked this question")
        content = question_content(base, cand, found)
        if first(query, "fragment"):
            return html_reply(content.encode())
        return self._page(id, content)

    def _checkpoints(self, query: Query) -> JsonReply:
        run = self._named(query)
        if run.view is None or not run.view.longitudinal:
            raise PageError(404, "Not found", "this run has no figures of checkpoints")
        count = len(run.view.longitudinal["checkpoints"])
        given = first(query, "at") or str(count - 1)
        at = int(given) if given.isdecimal() and len(given) < 6 else count
        if at >= count:
            raise PageError(404, "Not found", "this run has no such checkpoint")
        if first(query, "fragment"):
            return html_reply(checkpoint_panel(run.view, at).encode())
        return self._page(
            f"{run.name} over its checkpoints", *checkpoints_content(run, run.view, at)
        )

    def _live(self, query: Query) -> JsonReply:
        run = self._named(query)
        return self._page(f"{run.name} in progress", *live_content(run, self._progress(run)))

    def _live_json(self, query: Query) -> JsonReply:
        run = self._named(query)
        return JsonReply(live_state(run, self._progress(run)), 200, SHARED_HEADERS)

    def _progress(self, run: ViewedRun) -> LiveProgress | None:
        with self._watching:
            if run.manifest is None or run.state not in ("running", "interrupted"):
                self._watchers.pop(run.id, None)
                return None
            watcher = self._watchers.get(run.id)
            if watcher is None or watcher.id != run.manifest.id:
                watcher = self._watchers[run.id] = RunWatcher(run.path, run.manifest)
            return watcher.progress()

    def _report(self, query: Query) -> JsonReply:
        run = self._named(query)
        if run.view is None:
            raise PageError(422, "No report", run.problem or f"the run is {run.state}")
        return report_reply(self._kept.report(run, run.view))

    # What a request names

    def _named(self, query: Query, key: str = "run") -> ViewedRun:
        run = self._folder.run(first(query, key))
        if run is None:
            raise not_found()
        return run

    def _two(self, query: Query) -> tuple[ViewedRun, ViewedRun]:
        """The base and the candidate: by these names, or the two chosen runs."""
        chosen = query.get("run", [])
        if "base" not in query and len(chosen) != 2:
            raise PageError(
                422, "Compare two runs", f"choose two runs in the list, not {len(chosen)}"
            )
        if "base" in query:
            runs = self._named(query, "base"), self._named(query, "cand")
        else:
            runs = self._named({"run": chosen[:1]}), self._named({"run": chosen[1:]})
        return _complete(runs[0]), _complete(runs[1])

    def _chosen(self, query: Query) -> list[ViewedRun]:
        """The runs that are named, which must be complete, or all complete ones of a set."""
        key, ids = first(query, "set"), dict.fromkeys(query.get("run", []))
        if ids:
            runs = [_complete(self._named({"run": [id]})) for id in ids]
        else:
            every = self._folder.runs()
            runs = [one for one in every if key and one.set == key and one.state == "complete"]
        if not runs:
            raise PageError(404, "Not found", "no complete runs are chosen")
        if len(runs) > MOST_SYSTEMS:
            text = f"these are {len(runs)} runs; choose at most {MOST_SYSTEMS} in the list"
            raise PageError(422, "Too many runs", text)
        return runs


def _complete(run: ViewedRun) -> ViewedRun:
    if run.state != "complete":
        raise PageError(422, "Not possible", run.problem or f"{run.name} is {run.state}")
    return run
