"""Which strings would break a page that took them for anything but text?"""

from __future__ import annotations

LOUD = "alert(1)"  # a dialog, which the tests listen for
HOSTILE = (
    # the end of the element that they stand in
    f"</script><script>{LOUD}</script>", "</SCRIPT >", "</script\n>", "<script>", "</style>",
    "</title>", "</textarea>", "</noscript><script>alert(1)</script>", "</bdi></span></div>",
    "</iframe>", "</svg>", "<!--", "-->", "--!>", "<!--<script>", "<![CDATA[", "]]>", "<?xml?>",
    "<!DOCTYPE html>", "</body></html>", "<plaintext>", "<base href=https://example.org/>",
    # elements that act by themselves
    f"<img src=x onerror={LOUD}>", f"<svg/onload={LOUD}>", f"<svg><animate onbegin={LOUD}>",
    f"<details open ontoggle={LOUD}>", f"<body onload={LOUD}>", f"<iframe srcdoc='{LOUD}'>",
    "<iframe src=https://example.org>", "<link rel=stylesheet href=https://example.org/a.css>",
    "<meta http-equiv=refresh content=0;url=https://example.org>", "<object data=x>",
    "<form id=data>",
    f"<math><mi//xlink:href=\"data:x,<script>{LOUD}</script>\">",
    f"<a href=javascript:{LOUD}>x</a>",
    "<style>*{display:none}</style>", f"javascript:{LOUD}",
    f"data:text/html,<script>{LOUD}</script>",
    # the end of an attribute, of a string, of a template
    f"\" onmouseover=\"{LOUD}", f"' onfocus='{LOUD}' autofocus='", "`", f"\"]}};{LOUD}//", "\\\"",
    "\\", "\\u003cscript\\u003e", f"'-{LOUD}-'", f"${{{LOUD}}}",
    f"{{{{constructor.constructor('{LOUD}')()}}}}",
    "{% raw %}", "{{ 7 * 7 }}", "#{7*7}", "<%= 7*7 %>", "&lt;img src=x&gt;", "&#x3c;b&#x3e;",
    "&amp;amp;",
    # styles and addresses
    "url(https://example.org/x.png)", "}*{background:url(//example.org/x)}", "expression(alert(1))",
    "@import 'https://example.org/a.css';", "//example.org/x.js", "../../etc/passwd",
    "%00%3Cscript%3E",
    "xlink:href", "#data", "';--",
    # names that objects have already
    "__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "document",
    "data", "length", "null", "undefined", "NaN", "-0", "true",
    # characters that end lines, vanish, or turn round what follows
    "\u2028", "\u2029", "\ud800", "\udc00", "\udfff\ud800", "\x00", "a\x00b", "\x08\x1b[31m", "\n",
    "\r\n", "\t", "\x7f", "\x85", "\xa0", "\xad", "", "   ", "\u3000", "\u200b", "\ufeff", "\u2060",
    "\u202edcba", "\u202a", "\u2066x", "\u2069", "\u061c", "\u200e\u200f", "\u034f", "\ufffe",
    "\uffff",
    "\U000e0041", "\U0010ffff",
    # writing
    "e\u0301", "\u0301", "Z" + "\u0351\u0338\u0324" * 20, "👩‍👩‍👧", "👍🏽", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\ufe0f",
    "עִבְרִית", "العربية",
    "ﷺ", "中文", "か゚", "ภาษาไทย", "ﬁ", "İ", "ß", "\U0001d573", "𓀀",
    # size
    "a" * 2000, "W" * 300, "word " * 100, "<" * 200,
)  # fmt: skip
