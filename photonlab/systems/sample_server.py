"""Days from an exchange's public sample server: what it lists, and a download that survives broken connections.

A server like this shows a folder as a page of links and serves files over HTTP. A download goes to ``NAME.part`` and is
renamed when it is whole: right size, and right checksum where the server publishes one beside the file. What was got so
far is kept, and gone on with where it broke off, if the server still has the same file.
"""

import contextlib
import fcntl
import hashlib
import html.parser
import http.client
import json
import os
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from photonlab.errors import UserError

ADDRESS = "https://emi.nasdaq.com/ITCH/Nasdaq%20ITCH/"
"""NASDAQ's samples of TotalView-ITCH; another one by option or by PHOTONLAB_SAMPLES."""

CHUNK = 1 << 18
_HASHES = {"md5": "md5", "md5sum": "md5", "sha1": "sha1", "sha256": "sha256", "sha256sum": "sha256"}
_BROKEN = (http.client.HTTPException, ConnectionError, TimeoutError, urllib.error.URLError)


@dataclass(frozen=True)
class Offer:
    """A file that a server offers.

    Attributes
    ----------
    name : str
    url : str
    size : int or None
        Bytes, where the server says so.
    """

    name: str
    url: str
    size: int | None = None


class _Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        target = dict(attrs).get("href") if tag == "a" else None
        if target:
            self.found.append(target)


def listing(address=None, sizes=False, timeout=30.0) -> list[Offer]:
    """Return the files that a server's folder links to, in its order.

    Parameters
    ----------
    address : str, optional
        Of the folder; default `ADDRESS`, or PHOTONLAB_SAMPLES from the environment.
    sizes : bool
        Ask for the size of each, one request a file.
    timeout : float
        Seconds for an answer.

    Raises
    ------
    UserError
        If the folder cannot be had.
    """
    address = address_of(address)
    with _asked(address, timeout) as answer:
        links = _Links()
        links.feed(answer.read(1 << 24).decode("utf-8", "replace"))
        base = answer.geturl()
    offers = {}
    for link in links.found:
        url = urllib.parse.urljoin(base, link)
        parts = urllib.parse.urlsplit(url)
        name = urllib.parse.unquote(parts.path.rsplit("/", 1)[-1])
        if name and not parts.query and parts.scheme in ("http", "https"):
            offers.setdefault(name, Offer(name, url, _size_of(url, timeout) if sizes else None))
    return list(offers.values())


def address_of(address=None) -> str:
    """Return a folder's address, checked, with a slash at its end."""
    address = address or os.environ.get("PHOTONLAB_SAMPLES") or ADDRESS
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise UserError(f"{address}: expected an address that begins with http:// or https://")
    return address if address.endswith("/") else address + "/"


def fetch(name, folder=".", address=None, *, progress=None, attempts=8, timeout=30.0, pause=1.0) -> Path:
    """Download one file, or go on with it.

    Parameters
    ----------
    name : str
        As the server lists it.
    folder : path-like
        Where it goes.
    address : str, optional
        See `listing`.
    progress : callable, optional
        Called with (bytes there, bytes in all or 0).
    attempts : int
        Connections in a row that may break off without a byte gained.
    timeout, pause : float
        Seconds for an answer, and between the first two attempts (then twice as long each time, 30 at most).

    Returns
    -------
    Path
        Whole: its size is the one that the server gave, its checksum is right if there is one to compare with.

    Raises
    ------
    UserError
        If it is not offered, does not fit, cannot be had in so many attempts (what came is kept), or came damaged.
    """
    offers = {offer.name: offer for offer in listing(address, timeout=timeout)}
    if name not in offers:
        raise UserError(f"{address_of(address)}: offers no {name!r}; it lists {len(offers):,} files (photonlab fetch)")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    whole, part = folder / name, folder / f"{name}.part"
    if whole.exists():
        return whole
    with part.open("ab") as file, _alone(part, file):
        state = _State(part)
        _download(offers[name].url, file, state, progress, attempts, timeout, pause)
        _check(whole.name, part, offers, state, timeout)
        part.rename(whole)
        state.forget()
    return whole


class _State:
    """What tells whether the server still has the file whose beginning lies here."""

    def __init__(self, part):
        self.path = part.with_name(f"{part.name}.json")
        self.tag, self.size = "", None
        with contextlib.suppress(OSError, ValueError, AttributeError):
            known = json.loads(self.path.read_text())
            self.tag, self.size = str(known.get("tag", "")), known.get("size")

    def keep(self, tag, size):
        self.tag, self.size = tag, size
        self.path.write_text(json.dumps({"tag": tag, "size": size}))

    def forget(self):
        self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(part, file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UserError(f"{part}: another process is downloading it") from None
    yield


def _download(url, file, state, progress, attempts, timeout, pause):
    """Append to `file` until it has the size that the server gives."""
    failed = 0
    while True:
        before = file.seek(0, os.SEEK_END)
        if state.size is not None and before == state.size:
            return
        try:
            _go_on(url, file, state, progress, timeout)
            why = "the connection was closed early"
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 429):
                raise UserError(f"{url}: {error.code} {error.reason}") from None
            why = f"{error.code} {error.reason}"
        except _BROKEN as error:
            why = str(getattr(error, "reason", error)) or type(error).__name__
        there = file.seek(0, os.SEEK_END)
        if there == state.size:
            return
        failed = 0 if there > before else failed + 1
        if failed >= attempts:
            kept = f"{there:,} of {state.size or 0:,} bytes are kept in {file.name}"
            raise UserError(f"{url}: {why}, {attempts} times in a row; {kept}")
        time.sleep(min(pause * 2 ** max(failed - 1, 0), 30.0))


def _go_on(url, file, state, progress, timeout):
    """Make one request for what is missing, and append what comes."""
    there = file.seek(0, os.SEEK_END)
    request = urllib.request.Request(url)
    if there and state.tag:
        request.add_header("Range", f"bytes={there}-")
        request.add_header("If-Range", state.tag)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        headers = answer.headers
        tag = headers.get("ETag") or headers.get("Last-Modified") or ""
        if tag.startswith("W/"):  # a weak one does not vouch for every byte
            tag = headers.get("Last-Modified") or ""
        if answer.status == 206:
            match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range", ""))
            if not match or int(match[1]) != there:
                raise UserError(f"{url}: asked for bytes from {there}, got {headers.get('Content-Range')!r}")
            size = int(match[2])
        else:  # the whole of it: the server knows no ranges, or has another file by now
            file.truncate(0)
            there = 0
            size = int(headers["Content-Length"]) if headers.get("Content-Length") else None
        if size is None:
            raise UserError(f"{url}: the server does not say how long it is: nothing could tell when it is whole")
        _check_room(file, size - there)
        state.keep(tag, size)
        while there < size and (chunk := answer.read1(min(CHUNK, size - there))):
            file.write(chunk)
            there += len(chunk)
            if progress:
                progress(there, size)
        file.flush()


def _check_room(file, needed):
    free = shutil.disk_usage(Path(file.name).parent).free
    if needed > free:
        raise UserError(f"{file.name}: {needed:,} bytes are still to come, {free:,} are free there")


def _check(name, part, offers, state, timeout):
    """Compare with a checksum that lies beside the file on the server, such as NAME.md5; throw away what is damaged."""
    for offer in offers.values():
        method = _HASHES.get(offer.name.removeprefix(name)[1:].lower()) if offer.name.startswith(f"{name}.") else None
        if method is None:
            continue
        with _asked(offer.url, timeout) as answer:
            text = answer.read(1 << 16).decode("ascii", "replace")
        digits = hashlib.new(method).digest_size * 2
        wanted = re.search(rf"\b[0-9a-fA-F]{{{digits}}}\b", text)
        if wanted is None:
            raise UserError(f"{offer.url}: no {method} in it; {part} is kept")
        with part.open("rb") as file:
            found = hashlib.file_digest(file, method).hexdigest()
        if found != wanted[0].lower():
            part.unlink()
            state.forget()
            raise UserError(f"{name}: came damaged: its {method} is {found}, {offer.name} says {wanted[0].lower()}")


def _size_of(url, timeout):
    with contextlib.suppress(UserError, KeyError, ValueError), _asked(url, timeout, method="HEAD") as answer:
        return int(answer.headers["Content-Length"])
    return None


@contextlib.contextmanager
def _asked(url, timeout, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=timeout) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        raise UserError(f"{url}: {error.code} {error.reason}") from None
    except _BROKEN as error:
        raise UserError(f"{url}: cannot be reached: {getattr(error, 'reason', error)}") from None
