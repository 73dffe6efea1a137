"""How is a page kept from loading or running anything that is not in it?"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Mapping


def content_policy(*, style: str, script: str, framed: Collection[tuple[str, str]] = ()) -> str:
    """A content security policy under which only this style and this script take effect.

    The hashes cover the exact text between the tags; nothing is fetched, embedded or submitted.

    framed  (style, script) of pages that the script writes into frames: these inherit the policy
    """
    styles, scripts = (
        " ".join(f"'{_digest(text)}'" for text in texts)
        for texts in zip((style, script), *framed, strict=True)
    )
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


def island(data: Mapping[str, object]) -> str:
    """JSON that can stand inside a script element: no character in it can end that element.

    raises  ValueError for NaN and infinities, which JSON does not have
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(raw).decode("ascii")
