"""The XML of an SBE schema as a tree: nothing but elements, and inclusions from the schema's own folder.

A document type is refused, and with it every entity that could be expanded or fetched.
"""

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from photonlab.errors import UserError

MOST_INCLUSIONS = 64
LARGEST = 16 << 20


class SbeError(UserError):
    """A schema or a message that cannot be worked with; says where, and what was expected."""


@dataclass
class Element:
    """One element without its namespace's prefix.

    Attributes
    ----------
    tag : str
    attributes : dict of str to str
        Those without a namespace.
    line : int
    where : str
        File of the element.
    """

    tag: str
    attributes: dict
    line: int
    where: str
    children: list = field(default_factory=list)
    text: str = ""

    def get(self, name, default=None):
        """Return an attribute."""
        return self.attributes.get(name, default)

    def number(self, name, default=None, most=(1 << 32) - 1):
        """Return an attribute that is an integer from 0, or say why it is none."""
        text = self.attributes.get(name)
        if text is None:
            return default
        if not text.strip().isascii() or not text.strip().isdigit() or int(text) > most:
            raise self.wrong(f"{name} must be an integer from 0 to {most}, not {text!r}")
        return int(text)

    def named(self):
        """Return the name, which must be there."""
        if not self.get("name"):
            raise self.wrong(f"<{self.tag}> has no name")
        return self.get("name")

    def wrong(self, what):
        """Return an error that says where."""
        return SbeError(f"{self.where}, line {self.line}: {what}")


def read(path) -> Element:
    """Read a schema with what it includes.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Element
        The root; inclusions stand replaced by the children of what they include.

    Raises
    ------
    SbeError
        For what cannot be read or is not well-formed, for a document type, and for an inclusion that leads out of
        the schema's folder, to a network, or in a circle.
    """
    path = Path(path)
    return _read(path, path.resolve().parent, [])


def _read(path, home, within):
    if path.resolve() in within:
        raise SbeError(f"{path}: includes itself")
    if len(within) > MOST_INCLUSIONS:
        raise SbeError(f"{path}: more than {MOST_INCLUSIONS} inclusions within each other")
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise SbeError(f"{path}: cannot be read ({error.strerror})") from None
    if len(text) > LARGEST:
        raise SbeError(f"{path}: larger than the {LARGEST >> 20} MiB that a schema may have")
    root = _parse(text, str(path))
    _include(root, path, home, [*within, path.resolve()])
    return root


def _parse(text, where) -> Element:
    parser = expat.ParserCreate(namespace_separator="}")
    stack = [Element("", {}, 0, where)]

    def start(tag, attributes):
        plain = {name: value for name, value in attributes.items() if "}" not in name}
        one = Element(tag.rpartition("}")[2], plain, parser.CurrentLineNumber, where)
        stack[-1].children.append(one)
        stack.append(one)

    def refuse(*_):
        raise SbeError(f"{where}, line {parser.CurrentLineNumber}: a schema may not have a document type")

    def characters(data):
        stack[-1].text += data

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise SbeError(f"{where}: not XML: {error}") from None
    except (LookupError, ValueError) as error:  # an encoding that is not known
        raise SbeError(f"{where}: not XML that can be read: {error}") from None
    return stack[0].children[0]


def _include(element, path, home, within):
    """Put the children of what it names in place of each inclusion."""
    children = []
    for child in element.children:
        if child.tag != "include":
            _include(child, path, home, within)
            children.append(child)
            continue
        href = child.get("href", "")
        target = path.parent / href
        if not href or "://" in href or not target.resolve().is_relative_to(home):
            raise child.wrong(f"includes {href!r}: only files in the schema's own folder may be included")
        included = _read(target, home, within)
        children += [included] if included.tag == "types" else included.children
    element.children = children
