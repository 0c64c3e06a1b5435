"""Holds a finished page to its promise: nothing from outside, no script, nothing that only some readers can read."""

import base64
import re
from html.parser import HTMLParser

LIMIT = 5_000_000
"""Bytes."""

LOADING = {"src", "srcset", "data", "poster", "background", "action", "formaction", "manifest", "ping", "codebase"}
FORBIDDEN = {"script", "iframe", "object", "embed", "base", "frame", "form", "audio", "video", "applet"}
OUTSIDE_IN_CSS = re.compile(r"@import|url\(\s*['\"]?(?!data:|#|['\"]?\))|image-set|expression\(", re.IGNORECASE)


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.ids, self.links, self.css = [], [], [], None

    def handle_starttag(self, tag, pairs):
        attributes = dict(pairs)
        if tag in FORBIDDEN:
            self.found.append(f"<{tag}> on the page")
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.css = "" if tag == "style" else None
        if tag == "img":
            if not (attributes.get("alt") or "").strip():
                self.found.append("a picture without a text alternative")
            self._picture(attributes.get("src") or "")
        for name, value in attributes.items():
            self._attribute(tag, name, value or "")

    def _attribute(self, tag, name, value):
        if name.startswith("on"):
            self.found.append(f"<{tag}> with the script {name}")
        elif name == "style" and OUTSIDE_IN_CSS.search(value):
            self.found.append(f"<{tag}> whose style loads something: {value[:60]}")
        elif name in LOADING and not value.startswith("data:"):
            self.found.append(f'<{tag}> that loads {name}="{value[:60]}"')
        elif name in ("href", "xlink:href"):
            if tag in ("a", "area") and value.startswith("#"):
                self.links.append(value[1:])
            elif re.match(r"\s*(https?:|ftp:|//|javascript:|file:)", value, re.IGNORECASE):
                self.found.append(f"<{tag}> that leads outside: {value[:60]}")
            elif tag not in ("a", "area") and not value.startswith(("data:", "#")):
                self.found.append(f'<{tag}> that loads href="{value[:60]}"')

    def _picture(self, source):
        """A picture as data can itself load something, or run a script."""
        if source.startswith("data:image/svg+xml;base64,"):
            text = base64.b64decode(source.partition(",")[2]).decode(errors="replace")
            if re.search(r"<script|\son\w+=|@import|<foreignObject", text, re.IGNORECASE):
                self.found.append("a picture with a script in it")
            if re.search(r"(?:href|src)=['\"](?!#|data:)", text) or OUTSIDE_IN_CSS.search(text):
                self.found.append("a picture that loads something")

    def handle_data(self, text):
        if self.css is not None:
            self.css += text

    def handle_endtag(self, tag):
        if tag == "style" and self.css is not None:
            if OUTSIDE_IN_CSS.search(self.css):
                self.found.append("a style that loads something")
            self.css = None


def problems(text, limit=LIMIT):
    """Find what breaks the promise.

    Parameters
    ----------
    text : str
        The page's HTML.
    limit : int
        The page's greatest size in bytes.

    Returns
    -------
    list of str
        Empty for a good page.
    """
    reader = _Reader()
    reader.feed(text)
    reader.close()
    found = list(dict.fromkeys(reader.found))
    twice = sorted({one for one in reader.ids if reader.ids.count(one) > 1})
    lost = sorted(set(reader.links) - set(reader.ids))
    size = len(text.encode())
    if twice:
        found.append(f"ids that occur twice: {', '.join(twice[:5])}")
    if lost:
        found.append(f"links to places that are not there: {', '.join(lost[:5])}")
    if size > limit:
        found.append(f"the page has {size:,} bytes, more than {limit:,}")
    return found
