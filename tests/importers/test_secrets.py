"""Secrets of a source reach no output: not the folder, not the terminal, not an error."""

from __future__ import annotations

import json
import string
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.importers.scanned_files import files_with
from tests.importers.sources import database, files, imported

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.cli.app import invoke
from mnemoscope.importers.secret_scan import mask, shown

_RANDOM = Random(7)
_LETTERS, _HEX = string.ascii_letters + string.digits, "0123456789abcdef"


def _drawn(count: int, of: str = _LETTERS) -> str:
    return "".join(_RANDOM.choices(of, k=count))


# Made here, because scanners of repositories look for whole ones.
SECRETS = {
    "AWS access key": f"AKIA{_drawn(16, string.ascii_uppercase + string.digits)}",
    "AWS secret key": f"aws_secret_access_key = {_drawn(40)}",
    "GitHub token": f"ghp_{_drawn(36)}",
    "GitHub fine-grained token": f"github_pat_{_drawn(22)}_{_drawn(59)}",
    "GitLab token": f"glpat-{_drawn(20)}",
    "Slack token": f"xoxb-{_drawn(12, string.digits)}-{_drawn(12, string.digits)}-{_drawn(24)}",
    "Slack webhook": f"https://hooks.slack.com/services/T{_drawn(8)}/B{_drawn(8)}/{_drawn(24)}",
    "Stripe key": f"sk_live_{_drawn(32)}",
    "OpenAI key": f"sk-proj-{_drawn(40)}",
    "Anthropic key": f"sk-ant-api03-{_drawn(80)}",
    "Google key": f"AIza{_drawn(35)}",
    "Hugging Face token": f"hf_{_drawn(34)}",
    "npm token": f"npm_{_drawn(36)}",
    "PyPI token": f"pypi-AgEIcHlwaS5vcmc{_drawn(80)}",
    "SendGrid key": f"SG.{_drawn(22)}.{_drawn(43)}",
    "Twilio key": f"SK{_drawn(32, _HEX)}",
    "Discord token": f"M{_drawn(23)}.{_drawn(6)}.{_drawn(27)}",
    "Telegram token": f"{_drawn(9, '123456789')}:{_drawn(35)}",
    "JSON Web Token": f"eyJ{_drawn(30)}.eyJ{_drawn(30)}.{_drawn(43)}",
    "password in an address": f"postgres://ann:{_drawn(12)}@db.example.org/x",
    "private key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{_drawn(64)}\n{_drawn(64)}\n"
    "-----END OPENSSH PRIVATE KEY-----",
    "private key without its end": f"-----BEGIN RSA PRIVATE KEY-----\n{_drawn(64)}\n{_drawn(64)}",
    "password after a colon": f"Password: {_drawn(10)}",
    "password in a sentence": f"the wifi password is {_drawn(8)}7!",
    "bearer token": f"Authorization: Bearer {_drawn(40)}",
    "Azure key": f"AccountKey={_drawn(86)}==",
    "Mailchimp key": f"{_drawn(32, _HEX)}-us12",
    "Shopify token": f"shpat_{_drawn(32, _HEX)}",
    "payment card": "4111 1111 1111 1111",
    "bank account": "DE89 3704 0044 0532 0130 00",
}


def parts(kind: str, secret: str) -> list[str]:
    """The pieces of a secret that must not be found anywhere."""
    if kind in ("payment card", "bank account"):
        return [secret]
    words = secret.replace("=", " ").replace("/", " ").replace(":", " ").replace("@", " ").split()
    words = [word for one in words for word in one.split(".")]
    return [word for word in words if len(word) >= 8 and any(map(str.isdigit, word))] or [secret]


VALUES = [part for kind, secret in SECRETS.items() for part in parts(kind, secret)]


@pytest.mark.parametrize("kind", SECRETS)
def test_every_kind_of_secret_is_masked_as_a_whole(kind: str) -> None:
    secret = SECRETS[kind]
    for before, after in (("", ""), ("my note: ", " and more"), ("`", "`"), ('{"k": "', '"}')):
        masked = mask(f"first line\n{before}{secret}{after}\nlast line")
        assert [one.line for one in masked.secrets] == [2], before
        for part in parts(kind, secret):
            assert part not in masked.text
        assert masked.text.startswith("first line\n")
        assert masked.text.endswith("\nlast line")
        assert masked.text.count("\n") == 2 + secret.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "The password is required. Passwords are stored in the vault, and a secret is a secret.",
        "password: ${PASSWORD} token=os.environ['TOKEN'] api_key: <your key> secret: ********",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b of task-abcdefghijklmnopqrstuvwxyz",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "see https://example.org/a:b/c and 550e8400-e29b-41d4-a716-446655440000",
        "call +49 30 1234567 on 2024-05-01 10:00:00, invoice 1234567890123456",
        "APACHE2HANDLER and SKELETONS, risk-assessment-of-the-new-building-plan",
    ],
)
def test_plain_notes_are_not_masked(text: str) -> None:
    assert mask(text) == (text, ())


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    masked = mask(text)
    if not masked.secrets:
        assert shown(masked.text) == text.replace("\ue000", "").replace("\ue001", "")


def planted(folder: Path) -> dict[str, Path]:
    """Sources with every secret in every field that becomes a part of a memory."""
    notes = {
        f"{number}.md": f"---\ntags: [x]\nabout: '{secret.splitlines()[0]}'\n---\n# Note {number}\n"
        f"plain words before\n{secret}\nplain words after\n" + "filler words here\n\n" * 200
        for number, secret in enumerate(SECRETS.values())
    }
    token = SECRETS["GitHub token"]
    notes[f"{token}.md"] = "a name can be a secret"
    notes[f"{SECRETS['npm token']}/inner.png"] = "left out, and its place is told"
    rows = [
        {
            "id": f"{number} {secret}",
            "text": f"row {number}: {secret} end",
            "session": secret,
            "speaker": secret,
            "tags": [secret],
            "category": secret,
            "expanded_keywords": secret,
            "importance": 0.5,
        }
        for number, secret in enumerate(SECRETS.values())
    ]
    lines = "\n".join(map(json.dumps, rows))
    graph = [
        {"type": "entity", "name": secret, "entityType": secret, "observations": [secret, "x"]}
        for secret in SECRETS.values()
    ]
    titled = [
        {
            "uuid": f"c{number}",
            "name": secret,
            "chat_messages": [{"uuid": f"m{number}", "sender": "human", "text": secret}],
        }
        for number, secret in enumerate(SECRETS.values())
    ]
    files(folder / "notes", notes)
    files(
        folder,
        {
            "rows.jsonl": lines,
            "memory.jsonl": "\n".join(map(json.dumps, graph)),
            "conversations.json": json.dumps(titled),
        },
    )
    values = [(row["id"], row["text"], row["session"]) for row in rows]
    store = database(
        folder / "store.db",
        "CREATE TABLE notes (id TEXT, content TEXT, session TEXT)",
        rows={"notes": values},
    )
    names = ("notes", "rows.jsonl", "memory.jsonl", "conversations.json")
    return {**{name: folder / name for name in names}, "store.db": store}


@pytest.mark.parametrize("policy", ["mask", "withhold"])
def test_planted_secrets_reach_no_file_and_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], policy: str
) -> None:
    out = tmp_path / "out"
    for name, source in planted(tmp_path / "in").items():
        command = ["import", str(source), "--out", str(out / name), "--secrets", policy]
        code = invoke(command)
        said = capfd.readouterr()
        everything = said.out + said.err
        if code:  # all memories of this source are withheld
            assert (policy, code) == ("withhold", 1)
            assert "contains a secret" in said.err
        else:
            assert "line " in everything or "row " in everything
            assert f"secrets {'masked' if policy == 'mask' else 'withheld'}" in said.out
        for value in VALUES:
            assert value not in everything, name
    assert files_with(out, VALUES) == {}
    texts = (out / "notes" / "corpus.jsonl").read_text()
    assert ("plain words before" in texts) == (policy == "mask")
    assert "filler words here" in texts
    told = [json.loads(line) for line in (out / "notes" / "left-out.jsonl").open()]
    places = {line["place"] for line in told if "secret" in line}
    assert {"0.md, line 3", "0.md, line 7"} <= places


def test_fail_names_the_place_and_writes_nothing(tmp_path: Path) -> None:
    source = files(tmp_path / "in", {"a.md": "fine\n\n" + SECRETS["Google key"]})
    with pytest.raises(MnemoscopeError, match=r"a\.md, line 3: contains a secret") as caught:
        imported(source, tmp_path / "out", secrets="fail")
    assert SECRETS["Google key"] not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_key_that_is_longer_than_a_section_is_masked_before_the_note_is_split(
    tmp_path: Path,
) -> None:
    body = "\n\n".join(_drawn(64) for _ in range(10))
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    source = files(tmp_path / "in", {"a.md": f"# A\n{key}\n# B\nafter"})
    imported(source, tmp_path / "out", section_above=100)
    assert files_with(tmp_path / "out", body.split()) == {}


def test_a_value_that_cannot_be_read_is_not_repeated_by_the_error(tmp_path: Path) -> None:
    secret = SECRETS["Stripe key"]
    source = files(tmp_path, {"x.csv": f"text,when\na,{secret}\n"}) / "x.csv"
    with pytest.raises(MnemoscopeError, match="line 2") as caught:
        imported(source, tmp_path / "out", time="when")
    assert secret not in str(caught.value)


def test_marks_in_a_source_do_not_look_like_masked_secrets(tmp_path: Path) -> None:
    source = files(tmp_path / "in", {"a.md": "a \ue000password\ue001 b"})
    done, rows = imported(source, tmp_path / "out", secrets="withhold")
    assert rows[0]["content"] == "a password b"
    assert not done.record.secrets


_HIDDEN = "Hunter2!pw"
_TOKEN = SECRETS["GitHub token"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(json.dumps({"password": _HIDDEN})),
        f"password:\n  {_HIDDEN}",
        f"```yaml\npassword: |\n  {_HIDDEN}\n```",
        f"| password | {_HIDDEN} |",
        f"password - {_HIDDEN}",
        f"password：{_HIDDEN}",
        f"password → {_HIDDEN}",
        f"tool --password {_HIDDEN}",
        f"DB_PASS={_HIDDEN}",
        f"curl -u me:{_HIDDEN} https://example.org",
        f"password: /{_HIDDEN}",
        f"password: ${_HIDDEN.lower()}",
        f"password: True.{_HIDDEN}",
        f'passphrase: "correct horse {_HIDDEN} staple"',
        f"postgres%3A%2F%2Fme%3A{_HIDDEN}%40db",
        f"https://example.org/file?sig=0123456789{_HIDDEN}",
        f"pin: 4921 {_TOKEN}",
        f"{_TOKEN[:9]}\u200b{_TOKEN[9:]}",
        "seed phrase: " + " ".join(["abandon"] * 12),
    ],
)
def test_other_ways_of_writing_a_secret_are_found(text: str) -> None:
    masked = shown(mask(text).text)
    for part in (_HIDDEN[-6:], "horse", "4921", _TOKEN[9:], "abandon"):
        assert part not in masked


@pytest.mark.parametrize(
    "text",
    [
        "The token count of a page is 900.",
        "A secret of the trade, and a password manager's advice.",
        "HPKP pin-sha256 is a header.",
        "password: $DB_PASSWORD, or /run/secrets/db",
        "run it as docker run -u 1000:1000",
    ],
)
def test_words_that_only_mention_secrets_stay(text: str) -> None:
    assert mask(text).text == text
