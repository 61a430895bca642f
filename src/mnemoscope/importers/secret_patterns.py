"""Patterns of secrets: our own, and those of detect-secrets that find a secret as a whole."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

_WORDS = (
    r"pass(?:word|wd|phrase|code)|passwort|kennwort|contraseña|mot de passe|pwd|pin|secret|token"
    r"|api[ _-]?key|access[ _-]?key|client[ _-]?secret|auth[ _-]?token"
)
_QUOTE = r"[ \t]{0,8}[\\\"'`*]{0,4}[ \t]{0,8}"
_VALUE = r"[^\s\"'`<>|]"
_PHRASE = r"(?P<quote>[\"'])(?P<phrase>[^\s\"']+(?: [^\s\"']+){2,12})(?P=quote)"

# A pattern begins with a literal where it can, because that is ten times as fast. Repetitions that
# something must follow are bounded: their time would grow with the square of a hostile text. The
# names `value`, `phrase` and `said` are the secret, if it is not the whole match.
_OWN = (
    (
        "private key",
        r"-----BEGIN[ A-Z0-9]*PRIVATE KEY[ A-Z]*-----"
        r"(?:.{0,8000}?-----END[ A-Z0-9]*PRIVATE KEY[ A-Z]*-----"
        r"|(?:\s*(?:Proc-Type|DEK-Info): [^\n]*)*(?:[\s>#*]*[A-Za-z0-9+/=]{16,})*)",
    ),
    ("private key", r"PuTTY-User-Key-File-\d.*?(?:Private-MAC: \S+|\Z)"),
    ("private key", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    ("wallet key", r"(?<![0-9A-Za-z])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![0-9A-Za-z])"),
    (
        "wallet key",
        r"(?i:seed|recovery|mnemonic)(?i:[ _-]?(?:phrase|words))?\W{1,4}"
        r"(?P<value>(?:[a-z]{3,8}[ ,\n]{1,3}){11,23}[a-z]{3,8})",
    ),
    ("JSON Web Token", r"eyJ[\w-]{8,4096}\.[\w-]{4,}(?:\.[\w-]+)?"),
    ("Anthropic key", r"sk-ant-[\w-]{16,}"),
    ("OpenAI key", r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    ("GitHub token", r"gh[oprsu]_[A-Za-z0-9]{20,}"),
    ("GitHub token", r"github_pat_\w{20,}"),
    ("Google API key", r"AIza[\w-]{30,}"),
    ("Google OAuth token", r"ya29\.[\w.-]{20,}"),
    ("Google OAuth token", r"GOCSPX-[\w-]{20,}"),
    ("Hugging Face token", r"hf_[A-Za-z0-9]{20,}"),
    ("npm token", r"npm_[A-Za-z0-9]{30,}"),
    ("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{40,}"),
    ("Shopify token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{24,}"),
    ("Stripe key", r"(?:[rs]k_(?:live|test)|whsec)_[0-9A-Za-z]{16,}"),
    ("Slack token", r"xox[a-z](?:-[0-9A-Za-z]+){2,}"),
    ("Slack token", r"xapp-[\w-]{20,}"),
    ("Databricks token", r"dapi[0-9a-f]{32}"),
    ("Vault token", r"hv[sbr]\.[\w-]{20,}"),
    ("Notion or Linear key", r"(?:lin_api|ntn|secret)_[A-Za-z0-9]{32,}"),
    (
        "AWS secret key",
        r"(?i:aws|secret)\w{0,40}[_ -]?(?i:key)\W{1,6}"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    (
        "AWS secret key",
        r"AKIA[0-9A-Z]{16}\W{1,10}(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    ("Telegram Bot Token", r"(?<!\d)\d{8,10}:AA[\w-]{30,}"),
    ("Discord Bot Token", r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}"),
    ("authorization header", r"(?:Bearer|Basic)\s+(?P<value>[\w.~+/=-]{16,})"),
    ("password in an address", r"://[^\s:/@]*:(?P<value>[^\s/@]+)@"),
    ("password in an address", r"(?i:%3A%2F%2F)[^\s%]{0,80}(?i:%3A)(?P<value>[^\s@]{1,200}?)%40"),
    (
        "password in an address",
        r"[?&][\w-]{0,40}(?i:token|sig|signature|secret|key|auth)=(?P<value>[^\s&#\"'<>]{16,})",
    ),
    ("password", r"(?:\s-u|--user)[ =][\"']?[^\s:\"']{1,80}:(?P<value>(?!\d+\b)[^\s\"']{4,})"),
    ("password", r"_(?i:pass)[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<value>[^\s\"'<>]{6,})"),
    ("password", r"(?<![A-Za-z])(?i:pin|passcode)[ \t]{0,4}[:=][ \t]{0,4}(?P<value>\d{4,8})(?!\w)"),
    (
        "password",
        rf"(?<![A-Za-z])(?i:{_WORDS})[\\\"'`*]{{0,4}}[ \t]{{0,8}}(?:(?:[:=：]|:=|=>)"
        rf"(?:[ \t]{{0,8}}{_PHRASE}|{_QUOTE}(?P<value>{_VALUE}{{6,}}))"
        r"|(?:(?i:is|was|ist|lautet|es|est):?"
        rf"|[:=][ \t]{{0,8}}[|>]?-?\n|[ \t]->?|[–→| ]){_QUOTE}(?P<said>{_VALUE}{{4,}}))",
    ),
    ("payment card", r"(?<![\w.,/#-])[3-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}(?!\w|[.,-]\d)"),
    (
        "bank account",
        r"(?<![A-Z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?![A-Z0-9])",
    ),
)
WHOLE = frozenset({"private key", "wallet key", "password", "password in an address"}) | {
    "payment card",
    "bank account",
}
"""Kinds whose pattern matches all of the secret; of a token it may know the beginning only."""

_NOT_USED = {
    "ArtifactoryDetector",  # matches names such as APACHE2HANDLER
    "IPPublicDetector",
    "BasicAuthDetector",  # the rest find a part of what ours find
    "PrivateKeyDetector",
    "JwtTokenDetector",
    "OpenAIDetector",
    "GitHubTokenDetector",
    "NpmDetector",
}
_ASSIGNED = {"CloudantDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector"}
LONG_WORD = re.compile(r"[\w-]{24,}")


class SecretPattern(NamedTuple):
    """A pattern, and the kind of secret it finds."""

    kind: str
    pattern: re.Pattern[str]
    values: tuple[str, ...] = ()
    """The names of the groups that are the secret; none if the whole match is it."""
    needs_long_word: bool = False
    """Whether it finds something only in texts with a word of 24 characters."""


@cache
def secret_patterns() -> tuple[SecretPattern, ...]:
    # Imports requests: only an import of memories needs it.
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector

    compiled = [(kind, re.compile(pattern, re.DOTALL)) for kind, pattern in _OWN]
    own = [SecretPattern(kind, one, tuple(one.groupindex)) for kind, one in compiled]
    theirs = [
        # These take most of the time.
        SecretPattern(kind, pattern, needs_long_word=detector.__name__ in _ASSIGNED)
        for kind, detector in sorted(get_mapping_from_secret_type_to_class().items())
        if issubclass(detector, RegexBasedDetector) and detector.__name__ not in _NOT_USED
        for pattern in detector().denylist
    ]
    return (*own, *theirs)


_SAID = re.compile(r"(?=.*[0-9])|(?=.*[^\w\s.,;:()\[\]{}/…-])", re.DOTALL)
"""A word after `the password is` that is more than an ordinary word."""
_STAND_IN = re.compile(
    r"[\w.]+\(|\$[A-Z_{(]|[%{\[(<]|\.\.|[xX*•…_.-]{4,}$|process\.env|os\.environ|https?://"
    r"|/[\w.-]*(?:/|$)"
    r"|(?i:password|passwd|secret|token|string|required|optional|none|null|false|true|your|example"
    r"|stored|changed|unknown|same)\b(?!\S*\d)"
)
"""What stands for a password in documentation, and in notes that only mention one."""


def is_likely(kind: str, found: re.Match[str]) -> bool:
    """Whether a match is a secret, where its form alone does not decide."""
    if kind == "password":
        groups = found.groupdict()
        said = groups.get("said")
        if _STAND_IN.match(said or groups["value"] or groups["phrase"]):
            return False
        return said is None or bool(_SAID.match(said))
    if kind == "payment card":
        digits = [int(one) for one in found[0] if one.isdigit()]
        doubled = [sum(divmod(2 * one, 10)) for one in digits[-2::-2]]
        return 13 <= len(digits) <= 19 and (sum(doubled) + sum(digits[-1::-2])) % 10 == 0
    if kind == "bank account":
        plain = found[0].replace(" ", "")
        if not 15 <= len(plain) <= 34:
            return False
        return int("".join(str(int(one, 36)) for one in plain[4:] + plain[:4])) % 97 == 1
    before = found.string[found.start() - 1 : found.start()]
    # `sk-` and `hf_` are also ends of words.
    return not (kind[0].isupper() and found[0][0].islower() and before.isalnum())
