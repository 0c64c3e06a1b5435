"""The Python packages that a user might take in place of this one, each doing the same jobs on the same file.

Run as ``python -m photonlab.systems.experiments.peer_packages NAME``: one process for each package, which reads a job
as a line of JSON and answers with what it took and with facts that must be the same for everybody who states them.
"""

import datetime
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np

DATE = datetime.date(2019, 12, 30)
BOOKS, BBO, PARQUET, MESSAGES, DEPTH, SYMBOL = (
    "books, no table", "best prices, all changes", "best prices to Parquet", "order messages as a table",
    "depth of 10 levels", "best prices of one symbol",
)  # fmt: skip
JOBS = (BOOKS, BBO, PARQUET, MESSAGES, DEPTH, SYMBOL)
ORDERS = "AFECXDU"
WORDS = 1 << 64


def best_prices(rows) -> int:
    """Return a number that depends on symbol, best bid and offer and their shares of every row; in any order.

    Parameters
    ----------
    rows : iterable of (str, int, int, int, int)
        0 where a side is empty.
    """
    total = 0
    for symbol, *touch in rows:
        state = int.from_bytes(symbol.encode().ljust(8), "big")
        for word in touch:
            state = (state * 0x9E3779B97F4A7C15 + int(word) + 1) % WORDS
        total = (total + (state ^ (state >> 31))) % WORDS
    return total


def last_rows(locates, names, columns):
    """Yield name and columns of the last row of each instrument."""
    order = np.argsort(locates, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(locates[order]), 1))
    for at in order[ends]:
        yield names[int(locates[at])], *(int(column[at]) for column in columns)


class Photonlab:
    """The package that this is part of."""

    package, jobs = "photonlab", JOBS

    def __init__(self):
        import photonlab

        self.replay, self.tables = photonlab.replay, photonlab.tables

    def _books(self, path, symbol, out):
        return self.replay(path)

    def _books_facts(self, found):
        frame = found.bbo()[["bid", "bid_shares", "ask", "ask_shares"]].fillna(0)
        return {
            "messages": found.messages, "live orders": found.live_orders,
            "best prices": best_prices(frame.itertuples(name=None)),
        }  # fmt: skip

    def _bbo(self, path, symbol, out):
        return self.tables(path, bbo=True)

    def _bbo_facts(self, found):
        return {"rows": found.arrow("bbo").num_rows, "best prices": self._books_facts(found.replay)["best prices"]}

    def _parquet(self, path, symbol, out):
        return self.tables(path, bbo=True, out=out, date=DATE, compression="zstd")  # itch-book knows no other

    def _parquet_facts(self, found):
        return {"rows": found.summary["rows"]["bbo"] if "rows" in found.summary else found.arrow("bbo").num_rows}

    def _messages(self, path, symbol, out):
        return self.tables(path, messages=ORDERS)

    def _messages_facts(self, found):
        shares = sum(int(np.sum(found.arrow(kind)["shares"].to_numpy(), dtype=np.uint64)) for kind in "AF")
        return {"rows": sum(found.arrow(name).num_rows for name in found), "shares added": shares}

    def _depth(self, path, symbol, out):
        return self.tables(path, depth=10)

    def _depth_facts(self, found):
        return {"rows": found.arrow("depth").num_rows}

    def _symbol(self, path, symbol, out):
        return self.tables(path, bbo=True, symbols=symbol)

    def _symbol_facts(self, found):
        last = found.bbo.iloc[-1][["bid", "bid_shares", "ask", "ask_shares"]].fillna(0)
        return {"rows": len(found.bbo), "last": [int(word) for word in last]}


class ItchBook:
    """itch-book: books in C++, tables as NumPy arrays, Parquet by its command."""

    package, jobs = "itch-book", JOBS

    def __init__(self):
        import itch_book

        self.open = itch_book.open

    def _all(self, path, tables, **options):
        feed = self.open(str(path), date=DATE, price_type="fixed")
        return list(feed.batches(tables=tables, **options)), feed.stats

    def _books(self, path, symbol, out):
        return self._all(path, ("symbols",))

    def _books_facts(self, found):
        return {"messages": found[1]["messages"], "live orders": found[1]["live_orders"]}

    def _bbo(self, path, symbol, out):
        return self._all(path, ("bbo", "symbols"))

    def _bbo_facts(self, found):
        batches = found[0]
        table = {name: np.concatenate([one.bbo[name] for one in batches]) for name in batches[0].bbo}
        names = {place: name for one in batches for place, name in
                 zip(one.symbols["locate"], one.symbols["symbol"], strict=True)}  # fmt: skip
        columns = [table[name] for name in ("bid_px", "bid_sz", "ask_px", "ask_sz")]
        rows = [row for row in last_rows(table["locate"], names, columns) if any(row[1:])]
        return {"rows": len(table["locate"]), "best prices": best_prices(rows)}

    def _parquet(self, path, symbol, out):
        from itch_book import cli

        named = Path(out, f"{DATE:%m%d%Y}.NASDAQ_ITCH50")
        os.symlink(Path(path).absolute(), named)
        arguments, sys.argv = sys.argv, ["itch2parquet", "convert", str(named), str(out), "--tables", "bbo",
                                         "--price-type", "fixed"]  # fmt: skip
        try:
            cli.main()
        except SystemExit as ended:
            if ended.code:
                raise
        finally:
            sys.argv = arguments
        return next(Path(out).rglob("bbo.parquet"))

    def _parquet_facts(self, found):
        import pyarrow.parquet as pq

        return {"rows": pq.read_metadata(found).num_rows}

    def _messages(self, path, symbol, out):
        return self._all(path, ("messages",))

    def _messages_facts(self, found):
        kinds = np.concatenate([one.messages["type"] for one in found[0]])
        sizes = np.concatenate([one.messages["size"] for one in found[0]])
        added = sizes[(kinds == b"A") | (kinds == b"F")]
        return {"rows": len(kinds), "shares added": int(added.sum(dtype=np.uint64))}

    def _depth(self, path, symbol, out):
        return self._all(path, ("depth",), depth=10)

    def _depth_facts(self, found):
        return {"rows": sum(len(one.depth["seq"]) for one in found[0])}

    def _symbol(self, path, symbol, out):
        return self._all(path, ("bbo",), symbols=symbol)

    def _symbol_facts(self, found):
        table = {name: np.concatenate([one.bbo[name] for one in found[0]]) for name in found[0][0].bbo}
        last = [int(table[name][-1]) for name in ("bid_px", "bid_sz", "ask_px", "ask_sz")]
        return {"rows": len(table["bid_px"]), "last": last}


class ItchCpp:
    """itchcpp: books and message objects from C++."""

    package, jobs = "itchcpp", (BOOKS, MESSAGES)

    def __init__(self):
        from itchcpp.book import BookManager
        from itchcpp.parser import MessageParser

        self.manager, self.parser = BookManager, MessageParser

    def _books(self, path, symbol, out):
        manager = self.manager()
        manager.process_stream(Path(path).read_bytes())
        return manager

    def _books_facts(self, found):
        return {"books": found.book_count()}

    def _messages(self, path, symbol, out):
        rows = shares = 0
        for message in self.parser(ORDERS.encode()).parse_stream(Path(path).read_bytes()):
            rows += 1
            if message.message_type in b"AF":
                shares += message.shares
        return {"rows": rows, "shares added": shares}

    def _messages_facts(self, found):
        return found


class ItchFeed(ItchCpp):
    """itchfeed in its own Python, without its other half in C++."""

    package, jobs = "itchfeed", (MESSAGES,)

    def __init__(self):
        os.environ["ITCH_NO_CPP"] = "1"
        self.parser = importlib.import_module("itch.parser").MessageParser


class MeatPy:
    """MeatPy: message objects, and the book of one symbol, in Python."""

    package, jobs = "meatpy", (MESSAGES, SYMBOL)

    def __init__(self):
        from meatpy.itch50 import ITCH50MarketProcessor, ITCH50MessageReader

        self.reader, self.processor = ITCH50MessageReader, ITCH50MarketProcessor

    def _messages(self, path, symbol, out):
        rows = shares = 0
        for message in self.reader().read_file(path):
            if message.type in b"AFECXDU":
                rows += 1
                if message.type in b"AF":
                    shares += message.shares
        return {"rows": rows, "shares added": shares}

    def _messages_facts(self, found):
        return found

    def _symbol(self, path, symbol, out):
        midnight = datetime.datetime.combine(DATE, datetime.time())
        processor, rows, last = self.processor(symbol, midnight), 0, [0, 0, 0, 0]
        for message in self.reader().read_file(path):
            processor.process_message(message, new_snapshot=False)
            book = processor.current_lob
            if book is not None:
                touch = []
                for levels in (book.bid_levels, book.ask_levels):
                    touch += [levels[0].price, levels[0].volume] if levels else [0, 0]
                rows += touch != last
                last = touch
        return {"rows": rows, "last": last}

    def _symbol_facts(self, found):
        return found


PEERS = {one.package: one for one in (Photonlab, ItchBook, ItchCpp, ItchFeed, MeatPy)}
MODULES = {"itch-book": "itch_book", "itchcpp": "itchcpp", "itchfeed": "itch", "meatpy": "meatpy"}
METHODS = {BOOKS: "books", BBO: "bbo", PARQUET: "parquet", MESSAGES: "messages", DEPTH: "depth", SYMBOL: "symbol"}


def version(package) -> str:
    """Return a peer's version; empty if it is not installed."""
    if package in MODULES and importlib.util.find_spec(MODULES[package]) is None:
        return ""
    return metadata.version(package)


def do(peer, job, path, symbol) -> dict:
    """Do one job once; return its seconds and its facts."""
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        found = getattr(peer, f"_{METHODS[job]}")(path, symbol, out)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "facts": getattr(peer, f"_{METHODS[job]}_facts")(found)}


def main():
    """Serve jobs from standard input; nothing else may reach standard output."""
    answers, sys.stdout = sys.stdout, sys.stderr
    peer = PEERS[sys.argv[1]]()
    for line in sys.stdin:
        try:
            answer = do(peer, *json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
