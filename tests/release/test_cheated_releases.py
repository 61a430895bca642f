"""Ways to cheat a release, each of which is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.optional import missing as skip_without

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.analysis.verify import verify
from mnemoscope.cli.app import invoke
from mnemoscope.release.benchmark_report import write_report
from mnemoscope.release.checklist import Checklist, check
from mnemoscope.release.claims import ProhibitedClaim, lint
from mnemoscope.release.decide import comparisons, write_comparisons
from mnemoscope.release.notes import render as render_notes
from mnemoscope.release.notes import write_notes
from mnemoscope.release.process import ProcessVersion, add_version
from mnemoscope.release.release_facts import Facts
from mnemoscope.release.release_log import link, log_problems, record
from mnemoscope.release.signatures import circulate, lacking_signatures, sign, standings
from mnemoscope.release.start_release import amend_release, new_release, start
from mnemoscope.release.state import ROLES, Moment, Release, Role, State, moment

CITE = "Measured under the claude-memory stratified recall benchmark. "
NAMES = ("Pia", "Ada", "Stan", "Rae")
AFTER = "2025-11-18T13:00"
Releases = Callable[..., Release]


def at(time: str) -> Moment:
    return moment(f"2025-11-{time}")


def _missing(release: Release) -> str:
    """All that the checklist misses, as one text; the tag must not be allowed."""
    found: Checklist = check(Release.load(release.folder), moment(AFTER))
    assert not found.tag_allowed
    return "\n".join(what for item in found.items for what in item.missing)


def _edit(release: Release, change: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    """Edit release.yaml with an editor."""
    file = release.folder / "release.yaml"
    content = load_yaml(file)
    change(content)
    file.write_text(dump_yaml(content))


def _sign(release: Release, role: Role, name: str, **how: object) -> None:
    accepts = release.state.declarations if role == "pi" else []
    sign(release, comparisons(release), role, name, at("17T12:00"), accepts=accepts, **how)  # type: ignore[arg-type]


def test_an_honest_release_is_allowed(complete: Releases) -> None:
    """Otherwise the tests below would show nothing."""
    assert check(complete("SHIP"), moment(AFTER)).tag_allowed


# 1. Edited dates.


def test_an_edited_date_is_refused(complete: Releases) -> None:
    release = complete("SHIP")
    _edit(release, lambda state: state["circulated"]["when"].update(at="2025-11-14T09:00:00Z"))
    assert "circulated was edited after it was recorded" in _missing(release)
    # Writing the report again would hide it: its block of signatures shows the dates.
    assert invoke(["release", "report", str(release.folder)]) == 1
    assert "circulated was edited after it was recorded" in _missing(release)


@pytest.mark.parametrize("step", ["created", "drafted", "signatures", "decision", "rederived"])
def test_an_edited_date_of_any_step_is_refused(step: str, complete: Releases) -> None:
    release = complete("SHIP")

    def earlier(state: dict) -> None:  # type: ignore[type-arg]
        part = state[step][-1] if step == "signatures" else state[step]
        (part.get("when") or part)["at"] = "2025-11-15T13:00:00Z"

    _edit(release, earlier)
    assert f"{step} was edited after it was recorded" in _missing(release)


def test_an_edited_log_is_refused(complete: Releases) -> None:
    release = complete("SHIP")
    _edit(release, lambda state: state["log"][1]["when"].update(at="2025-11-15T13:00:00Z"))
    assert "the log in release.yaml was edited" in _missing(release)
    _edit(release, lambda state: state.pop("log"))
    assert "has no log" in _missing(release)


def test_a_time_before_the_step_before_it_is_refused(ready: Releases) -> None:
    release = ready("SHIP")
    with pytest.raises(UsageError, match="sign it after that"):
        sign(release, comparisons(release), "architect", "Ada", at("16T08:55"))
    with pytest.raises(UsageError, match="lies in the future"):
        sign(release, comparisons(release), "architect", "Ada", moment("2999-01-01"))


def test_a_release_started_before_its_runs_were_finished_is_refused(
    tmp_path: Path, make_world: Callable[..., Path]
) -> None:
    world = make_world(tmp_path / "runs", "SHIP")
    with pytest.raises(UsageError, match="was finished 2025-11-15 12:00:00 UTC, after that"):
        new_release(
            "v1",
            [world / "base" / "mine"],
            [world / "cand" / "mine"],
            tmp_path / "release",
            author="Ann",
            when=at("15T11:00"),
            other_base="first",
        )


# 2. A weak base.


@pytest.fixture
def second(
    complete: Releases, make_run: Callable[..., RunDirectory], tmp_path: Path
) -> Callable[..., Release]:
    """A second release; the first one was tagged with runs/cand/mine."""
    first = complete("SHIP")
    first.state.tagged = at("18T13:00")
    record(first, "tagged", at("18T13:00"))
    cand = make_run(tmp_path / "runs" / "next" / "mine", [1] * 190 + [15] * 10, "mine,version=3")

    def begin(base: Path, **given: object) -> Release:
        return new_release(
            "v0.3.0",
            [base],
            [cand.path],
            tmp_path / "second",
            author="Ann",
            when=at("19T08:00"),
            **given,  # type: ignore[arg-type]
        )

    return begin


def test_another_base_than_the_previous_release_is_refused(
    second: Callable[..., Release], make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    with pytest.raises(UsageError, match=r"not the candidate of the previous release v0\.2\.0"):
        second(runs / "base" / "mine")  # an old one
    handicapped = make_run(runs / "weak" / "mine", [15] * 200, "mine,version=cand,k=1")
    with pytest.raises(UsageError, match="--other-base REASON"):
        second(handicapped.path)
    honest = second(runs / "cand" / "mine")
    assert honest.state.base.previous == "v0.2.0"
    assert honest.state.declarations == []


def test_a_declared_base_must_be_accepted_by_the_pi_and_is_shown(
    second: Callable[..., Release], tmp_path: Path
) -> None:
    release = second(tmp_path / "runs" / "base" / "mine", other_base="v0.2.0 was withdrawn")
    assert release.state.declarations == ["base"]
    start(release)
    write_report(release, at("19T09:00"))
    line = "the base is not the previous release: v0.2.0 was withdrawn"
    assert line in release.report_path.read_text()
    assert line in render_notes(release, comparisons(release))


def test_the_base_of_a_release_that_was_overtaken_is_refused(
    second: Callable[..., Release], tmp_path: Path
) -> None:
    release = second(tmp_path / "runs" / "cand" / "mine")
    start(release)
    assert "previous release" not in _missing(release)
    other = Release(tmp_path / "third", replace(release.state, version="v0.2.5", log=[]))
    other.state.tagged = at("19T08:30")
    other.folder.mkdir()
    start(other)
    assert "not the candidate of the previous release v0.2.5" in _missing(release)


def test_the_pi_cannot_sign_without_accepting_what_is_declared(ready: Releases) -> None:
    release = ready("SHIP")
    with pytest.raises(UsageError, match="--accept base"):
        sign(release, comparisons(release), "pi", "Pia", at("17T12:00"))


# 3. A look-alike signer.


@pytest.mark.parametrize(
    "name",
    [
        "pia",
        "PIA ",
        "P i a",
        "Pia.",
        "Pía",
        "Pla",
        "P1a",
        "Pi\u0430",  # Cyrillic a
        "P\u0456a",  # Ukrainian i
        "Ρia",  # Greek rho
        "Pi\u200ba",  # zero width space
        "Pia\u0301",  # combining acute
        "Ｐｉａ",  # full width
        "Pi\u00ada",  # soft hyphen
    ],
)
def test_a_look_alike_signer_is_refused(name: str, ready: Releases) -> None:
    release = ready("SHIP")
    _sign(release, "pi", "Pia")
    with pytest.raises(UsageError, match=r"different people|not a valid name"):
        _sign(release, "architect", name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann Smith", "Smith, Ann"),
        ("Ann Smith", "A. Smith"),
        ("Ann Smith", "Ann B. Smith"),
        ("Bob Moore", "B0b M00re"),
        ("Bill Carn", "Bi11 Cam"),
    ],
)
def test_two_spellings_of_one_person_are_refused(one: str, other: str, ready: Releases) -> None:
    release = ready("SHIP")
    _sign(release, "pi", one)
    with pytest.raises(UsageError, match="write both names in full"):
        _sign(release, "architect", other)


# 4. A claim in a waiver.


@pytest.mark.parametrize(
    "reason",
    [
        "not needed: hybrid beats BM25 anyway",
        "recall@10 improved by 4 pp there",
        "state of the art already",
    ],
)
def test_a_claim_in_a_waiver_is_refused(reason: str, ready: Releases) -> None:
    release = ready("SHIP")
    with pytest.raises(ProhibitedClaim, match="--waive hipporag makes a prohibited claim"):
        amend_release(
            release, by="Ann", why="no time", when=at("17T10:00"), waived={"hipporag": reason}
        )


def test_a_claim_in_any_other_reason_is_refused(ready: Releases, tmp_path: Path) -> None:
    boast = "it finds twice as many memories"
    release = ready("SHIP")
    with pytest.raises(ProhibitedClaim, match="--why"):
        amend_release(release, by="Ann", why=boast, when=at("17T10:00"), changed=["none"])
    with pytest.raises(ProhibitedClaim, match="--quorum-exception"):
        _sign(release, "pi", "Pia", quorum_exception=boast)
    release.state.circulated = None
    with pytest.raises(ProhibitedClaim, match="--evidence"):
        circulate(release, comparisons(release), at("16T10:00"), boast)
    history = ["release", "history", "add", "--file", str(tmp_path / "H.md")]
    assert invoke([*history, "--change", boast, "--reason", "a"]) == 1
    assert invoke([*history, "--change", "a", "--reason", boast]) == 1


@pytest.mark.parametrize("field", ["internal", "external", "rationale", "notes"])
def test_a_claim_in_words_in_the_report_is_refused(field: str, complete: Releases) -> None:
    release = complete("SHIP", **{field: "It outperforms every other memory."})
    assert "comparison-in-words" in _missing(release)


# 5. A dropped metric.


def test_a_dropped_metric_is_refused(complete: Releases) -> None:
    release = complete("SHIP with caveat")
    (found,) = comparisons(release)
    write_comparisons(release, [replace(found, rows=found.rows[:1])])
    assert "comparison-strata.json is missing or differs" in _missing(release)


def test_notes_without_a_metric_are_refused(complete: Releases) -> None:
    release = complete("SHIP with caveat")
    lines = release.notes_path.read_text().splitlines(keepends=True)
    release.notes_path.write_text("".join(line for line in lines if "mrr@20:" not in line))
    assert "notes.md differs" in _missing(release)


def test_another_protocol_with_fewer_metrics_is_refused(complete: Releases) -> None:
    release = complete("SHIP")
    _edit(release, lambda state: state["protocol"].update(id="mnemoscope-retrieval-2:sound"))
    assert "protocol was edited after it was recorded" in _missing(release)


# 6. A metric chosen afterwards.


def test_a_metric_chosen_afterwards_is_refused(begin: Releases) -> None:
    facts = Facts.of(begin("SHIP with caveat"))
    text = (
        f"{CITE}precision@5 improved (95% CI [1, 2], p=0.001). recall@10, mrr@20 and others exist."
    )
    assert any("it was chosen afterwards" in one.what for one in lint(text, facts))
    row = "| metric | new [95 % CI] | p | verdict |\n|---|---|---|---|\n"
    row += "| hit@3 | 0.9 [0.8, 1.0] | 0.001 | better |"
    assert any("it was chosen afterwards" in one.what for one in lint(f"{CITE}\n\n{row}", facts))


def test_runs_of_another_protocol_cannot_be_put_in_afterwards(
    ready: Releases, make_run: Callable[..., RunDirectory], tmp_path: Path
) -> None:
    release = ready("SHIP")
    run = make_run(tmp_path / "other" / "mine", [1] * 200, "mine,version=x")
    manifest = run.manifest()
    manifest.protocol = {"id": "mnemoscope-retrieval-2:sound", "sha256": "0" * 64}
    run.save(manifest)
    with pytest.raises(Exception, match="different protocols"):
        amend_release(release, by="Ann", why="a bug", when=at("17T10:00"), cand=[run.path])


# 7. An edited run.


@pytest.mark.parametrize("name", ["metrics.json", "trials.jsonl", "manifest.json"])
def test_an_edited_run_is_refused(name: str, complete: Releases) -> None:
    release = complete("SHIP")
    file = release.run(release.state.pairs[0].cand).path / name
    file.write_bytes(file.read_bytes().replace(b"0", b"1", 1))
    assert f"{name} was edited after the release was started" in _missing(release)


def test_an_edited_run_with_edited_hashes_is_refused(complete: Releases) -> None:
    release = complete("SHIP")
    run = release.run(release.state.pairs[0].cand).path
    figures = json.loads((run / "metrics.json").read_bytes())
    figures["overall"]["recall@10"]["mean"] = 0.99
    (run / "metrics.json").write_text(json.dumps(figures))
    from mnemoscope._store.fingerprint import sha256_file

    sha256 = sha256_file(run / "metrics.json")
    _edit(release, lambda s: s["pairs"][0]["cand"]["files"].update({"metrics.json": sha256}))
    assert "pairs was edited after it was recorded" in _missing(release)


# 8. A run deleted until lucky.


def test_a_run_deleted_until_lucky_is_refused(
    ready: Releases, make_run: Callable[..., RunDirectory]
) -> None:
    release = ready("SHIP")
    path = release.run(release.state.pairs[0].cand).path
    spec = "mine,version=lucky"
    shutil.rmtree(path)
    make_run(path, [15] * 200, spec)
    shutil.rmtree(path)
    lucky = make_run(path, [1] * 200, spec)
    assert verify(lucky).failed == ["attempts"]
    amend_release(release, by="Ann", why="a fix", when=at("17T10:00"), cand=[path])
    assert f"{path} is UNVERIFIED" in _missing(release)


# 9. Missing times.


@pytest.mark.parametrize("step", ["drafted", "circulated", "signatures"])
def test_a_missing_time_does_not_count_as_done(step: str, complete: Releases) -> None:
    release = complete("SHIP")
    state = release.state
    setattr(state, step, [] if step == "signatures" else None)
    record(release, "amended", at("18T10:00"))  # with a log that agrees
    word = "signed" if step == "signatures" else step
    assert f"the release was not {word}" in _missing(release)


def test_a_run_without_a_time_does_not_count_as_done(complete: Releases) -> None:
    release = complete("SHIP")
    run = release.run(release.state.pairs[0].cand)
    manifest = run.manifest()
    manifest.finished = None
    run.save(manifest)
    with pytest.raises(UsageError, match="the time is missing"):
        amend_release(release, by="Ann", why="a fix", when=at("18T10:00"), cand=[run.path])
    assert "manifest.json was edited" in _missing(release)


# 10. A note that hides what worsened.


def test_every_metric_that_worsened_is_listed_significant_or_not(complete: Releases) -> None:
    release = complete("SHIP although a metric fell")
    (found,) = comparisons(release)
    worse = [row for row in found.rows if row.delta < 0]
    assert worse, "the pair of this test has none"
    listed = release.notes_path.read_text().split("## Regressions\n")[1].split("\n## ")[0]
    assert listed.count("\n- ") == len(worse)
    summary = release.report_path.read_text().split("Metrics that worsened")[1].split("## 1.")[0]
    assert summary.count("\n- ") == len(worse)


def test_a_note_that_hides_what_worsened_is_refused(complete: Releases) -> None:
    release = complete("SHIP although a metric fell")
    text = release.notes_path.read_text()
    head, rest = text.split("## Regressions\n")
    hidden = f"{head}## Regressions\n\nNone.\n\n## {rest.split('## ', 1)[1]}"
    release.notes_path.write_text(hidden)
    assert "notes.md differs" in _missing(release)


@pytest.mark.parametrize("text", ["No metric regressed.", "Nothing measured got worse."])
def test_a_text_that_denies_what_worsened_is_refused(text: str, complete: Releases) -> None:
    release = complete("SHIP although a metric fell")
    (release.folder / "README.md").write_text(text)
    release.state.public = ["README.md"]
    release.save()
    assert "hidden-regression" in _missing(release)


# More ways.


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[Role, Path]:
    """A key for each role, and a list of allowed signers beside them."""
    if shutil.which("ssh-keygen") is None:
        skip_without("no ssh-keygen")
    folder = tmp_path_factory.mktemp("release-keys")
    lines = []
    for role in ROLES:
        arguments = ["-q", "-t", "ed25519", "-N", "", "-C", role, "-f", str(folder / role)]
        subprocess.run(["ssh-keygen", *arguments], check=True)
        lines.append(f"{role}@example.org {(folder / f'{role}.pub').read_text()}")
    (folder / "signers").write_text("".join(lines))
    return {role: folder / role for role in ROLES}


def _sign_all(release: Release, keys: dict[Role, Path]) -> None:
    for role, name in zip(ROLES, NAMES, strict=True):
        _sign(release, role, name, key=keys[role])


def test_one_key_for_two_roles_is_refused(ready: Releases, keys: dict[Role, Path]) -> None:
    release = ready("SHIP")
    _sign(release, "pi", "Pia", key=keys["pi"])
    with pytest.raises(UsageError, match="signed with the same key"):
        _sign(release, "architect", "Ada", key=keys["pi"])


def test_dates_edited_with_all_hashes_do_not_pass_signatures_of_keys(
    ready: Releases, keys: dict[Role, Path]
) -> None:
    release = ready("SHIP")
    _sign_all(release, keys)
    write_notes(release, comparisons(release))
    signers = keys["pi"].parent / "signers"
    assert check(release, moment(AFTER), signers).tag_allowed
    state = release.state
    assert state.circulated is not None
    earlier = replace(state.circulated.when, at=at("16T08:51").at)
    state.circulated = replace(state.circulated, when=earlier)
    _rewrite_log(state)
    write_report(release, at("17T13:00"))
    assert log_problems(state) == [], "the hashes alone do not tell"
    assert set(standings(release).values()) == {"void"}
    assert "pi (void)" in _missing(release)


def _rewrite_log(state: State) -> None:
    """Recompute every hash of the log, as a cheater with a script can."""
    from mnemoscope.release.release_log import hashes

    log, before = [], ""
    for entry in state.log:
        when = state.circulated.when if entry.step == "circulated" and state.circulated else None
        entry = replace(entry, before=before, when=when or entry.when)
        if entry.step == "signed":
            entry = replace(entry, content=hashes(state))
        log.append(entry)
        before = link(entry)
    state.log = log


def test_typed_names_are_said_to_be_typed_and_fail_with_a_list_of_signers(
    complete: Releases, keys: dict[Role, Path]
) -> None:
    release = complete("SHIP")
    assert release.report_path.read_text().count("typed name only, not proven") == 4
    signers = keys["pi"].parent / "signers"
    assert "pi (not of an allowed SSH key)" in lacking_signatures(release, signers)


def test_a_signature_of_another_release_is_void(ready: Releases, keys: dict[Role, Path]) -> None:
    release = ready("SHIP")
    _sign_all(release, keys)
    signed = release.state.signatures
    release.state.signatures = [replace(signed[0], name="Mia"), *signed[1:]]
    write_report(release, at("17T13:00"))
    assert standings(release)["pi"] == "void", "the key signed another name"


def test_an_amendment_after_a_signature_voids_it(complete: Releases) -> None:
    release = complete("SHIP")
    report = release.report_path.read_text()
    waived = {"memorybank": "the suite does not run on this machine"}
    (change,) = amend_release(
        release, by="Ann", why="asked by the group", when=at("17T13:00"), waived=waived
    )
    assert change.startswith("waived.memorybank: nothing → ")
    assert release.report_path.read_text() == report, "the old report is still there"
    assert set(standings(release).values()) == {"void"}
    found = _missing(release)
    assert "pi (void)" in found
    assert "the release was not drafted" in found
    entry = Release.load(release.folder).state.amendments[0]
    assert (entry.by, entry.why) == ("Ann", "asked by the group")
    write_report(release, at("17T14:00"))
    assert "Reason: asked by the group" in release.report_path.read_text()


def test_amendments_cannot_be_removed_or_made_without_a_reason(complete: Releases) -> None:
    release = complete("SHIP")
    with pytest.raises(UsageError, match="--why"):
        amend_release(release, by="Ann", why=" ", when=at("17T13:00"), author="Amy")
    with pytest.raises(UsageError, match="changes nothing"):
        amend_release(release, by="Ann", why="x", when=at("17T13:00"), changed=["none"])
    amend_release(release, by="Ann", why="she wrote it", when=at("17T13:00"), author="Amy")
    _edit(release, lambda state: state["log"].pop())
    assert "was edited after it was recorded" in _missing(release)
    with pytest.raises(DataError, match="was edited after it was recorded"):
        amend_release(
            Release.load(release.folder), by="Ann", why="x", when=at("17T13:00"), author="Bo"
        )


@pytest.mark.parametrize("name", ["Ann", "ann", "Аnn"])
def test_the_author_cannot_be_the_statistician(name: str, ready: Releases) -> None:
    release = ready("SHIP", without="rederive")
    with pytest.raises(UsageError, match=r"cannot sign as statistician|several scripts"):
        _sign(release, "statistician", name)


def test_the_author_cannot_be_one_of_three(ready: Releases) -> None:
    release = ready("SHIP")
    _sign(release, "architect", "Ann")
    with pytest.raises(UsageError, match="the three must be others"):
        _sign(release, "pi", "Pia", quorum_exception="Rae is on leave")


def test_an_author_who_is_the_pi_does_not_accept_alone(ready: Releases) -> None:
    release = ready("SHIP")
    for role, name in zip(ROLES, ("Ann", *NAMES[1:]), strict=True):
        _sign(release, role, name)
    assert lacking_signatures(release) == [
        "base is not accepted by the PI, or only by the author of the report"
    ]


def test_a_change_that_triggers_a_benchmark_needs_its_report(
    complete: Releases, tmp_path: Path
) -> None:
    release = complete("SHIP")
    amend = {"by": "Ann", "why": "the graph changed", "when": at("17T13:00")}
    amend_release(release, **amend, changed=["graph-retrieval"])  # type: ignore[arg-type]
    assert "hipporag is mandatory, because graph-based retrieval changes" in _missing(release)
    report = tmp_path / "hipporag.md"
    report.write_text("figures")
    amend_release(release, **amend, extras={"hipporag": report})  # type: ignore[arg-type]
    assert "hipporag" not in _missing(release)
    report.write_text("other figures")
    assert "hipporag.md was edited" in _missing(release)


def test_a_release_that_does_not_say_what_changed_is_refused(complete: Releases) -> None:
    release = complete("SHIP")
    release.state.changed = []
    record(release, "amended", at("17T13:00"))
    assert "not stated whether a change triggers another benchmark" in _missing(release)


def test_a_release_under_an_old_process_is_refused(complete: Releases) -> None:
    release = complete("SHIP")
    folder = release.folder.parent
    breaking = ProcessVersion("2.0.0", "", "five signatures", breaking=True)
    with pytest.raises(UsageError, match="--approved-by"):
        add_version(folder, breaking, at("18T12:30"))
    approved = replace(breaking, approved_by="the founder", initials="F")
    with pytest.raises(UsageError, match="a higher first number"):
        add_version(folder, replace(approved, version="1.1.0"), at("18T12:30"))
    assert add_version(folder, approved, at("18T12:30")).used_the_prior == ["v0.2.0"]
    assert "2.0.0 is in force since 2025-11-18" in _missing(release)


def test_a_git_tag_from_before_the_signatures_is_refused(complete: Releases) -> None:
    release = complete("SHIP")
    early = "2025-11-17T00:00:00+0000"
    environment = {"GIT_COMMITTER_DATE": early, "GIT_AUTHOR_DATE": early, "PATH": "/usr/bin:/bin"}
    git = ["git", "-C", str(release.folder), "-c", "user.name=t", "-c", "user.email=t@t"]
    for command in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["tag", "v0.2.0"],
    ):
        subprocess.run([*git, *command], check=True, env=environment)
    assert "the git tag v0.2.0, 2025-11-17 00:00 UTC, is before signed by" in _missing(release)


def test_tag_records_the_time_only_if_the_checklist_allows_it(
    complete: Releases, ready: Releases, capsys: pytest.CaptureFixture[str]
) -> None:
    release = complete("SHIP")
    assert invoke(["release", "tag", str(release.folder), "--at", "2025-11-18T11:00"]) == 1
    assert "the tag date" in capsys.readouterr().err
    assert invoke(["release", "tag", str(release.folder), "--at", AFTER]) == 0
    assert Release.load(release.folder).state.tagged is not None
    with pytest.raises(UsageError, match="start a new release"):
        amend_release(
            Release.load(release.folder), by="Ann", why="x", when=moment(), changed=["none"]
        )
