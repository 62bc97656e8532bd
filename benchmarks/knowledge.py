"""What a search in a folder takes, and how often it finds the right text.

A thousand files with twenty passages each, cut from the sources of the standard library, are
indexed and searched; one file changes. Recall: 500 docstrings of the standard library without their
first sentences, one file each, are asked for by these sentences; found is what is among the best 5.
"""

import ast
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from replan import FolderRetriever, SearchRequest

_FIRST = re.compile(r"(?<=[.!?])\s|\n\n")
_FILES, _EACH, _DOCSTRINGS, _ASKED = 1_000, 20, 500, 100
_SENTENCE, _REST = 30, 150  # characters at least
_LEFT_OUT = {"site-packages", "test", "tests", "idlelib", "lib2to3"}
_BLOCK = range(200, 900)


def sources(*, all_of_them: bool = False) -> Iterator[str]:
    """The texts of the standard library's modules, with those of its tests or without."""
    left_out = {"site-packages"} if all_of_them else _LEFT_OUT
    for path in sorted(Path(ast.__file__).parent.rglob("*.py")):
        if not left_out & {*path.parts}:
            yield path.read_text(encoding="utf-8", errors="replace")


def shuffle(texts: list[Any]) -> None:
    """Mix texts, in the same way on every run."""
    random.Random(1).shuffle(texts)  # noqa: S311 - nothing secret


def docstrings() -> list[tuple[str, str, str]]:
    """The names, the first sentences and the rest of long docstrings, one of each name."""
    found: dict[str, tuple[str, str, str]] = {}
    for text in sources():
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                said = (ast.get_docstring(node) or "").strip()
                end = _FIRST.search(said)
                if end and end.start() > _SENTENCE and len(said) - end.end() > _REST:
                    found[node.name] = (node.name, said[: end.start()], said[end.end() :].strip())
    chosen = list(found.values())
    shuffle(chosen)
    return chosen[:_DOCSTRINGS]


def milliseconds(work: Callable[[], object]) -> float:
    """The CPU time of some work."""
    started = time.process_time()
    work()
    return 1_000 * (time.process_time() - started)


def recall(folder: Path, cache: Path) -> float:
    """The share of docstrings that are found by their first sentences."""
    asked = docstrings()
    folder.mkdir()
    for name, _, rest in asked:
        (folder / f"{name}.md").write_text(f"# {name}\n\n{rest}\n", encoding="utf-8")
    retriever = FolderRetriever(folder, cache=cache)

    def is_found(name: str, first: str) -> bool:
        found = retriever.search(SearchRequest(query=first, top_k=5)).chunks
        return f"{name}.md" in [each.source for each in found]

    return sum(is_found(name, first) for name, first, _ in asked) / len(asked)


def speed(folder: Path, cache: Path) -> dict[str, float]:
    """What indexing, searching and a change take."""
    folder.mkdir()
    # A line of code that begins with # would be a heading.
    texts = (text.replace("#", "") for text in sources(all_of_them=True))
    blocks = [each for text in texts for each in text.split("\n\n") if len(each) in _BLOCK]
    shuffle(blocks)
    for number in range(_FILES):
        own = blocks[number * _EACH : (number + 1) * _EACH]
        text = "\n\n".join(f"## {number}.{at}\n\n{block}" for at, block in enumerate(own))
        (folder / f"{number}.md").write_text(text, encoding="utf-8")
    retriever = FolderRetriever(folder, cache=cache)
    indexing = milliseconds(retriever.looked_through)
    # What changed just now is looked at again.
    time.sleep(2.1)
    retriever.looked_through()
    queries = [first for _, first, _ in docstrings()[:_ASKED]]
    searching = [
        milliseconds(lambda query=query: retriever.search(SearchRequest(query=query)))
        for query in queries
    ]
    (folder / "7.md").write_text("## Zebras\n\nA zebra is striped.\n", encoding="utf-8")
    zebra = SearchRequest(query="striped zebra")
    changing = milliseconds(lambda: retriever.search(zebra))
    return {
        "passages": retriever.looked_through()[1],
        "index of all, ms of CPU": round(indexing),
        "a query, median, ms of CPU": round(median(searching), 1),
        "a query after one file of 1,000 changed, ms of CPU": round(changing, 1),
    }


def main() -> None:
    """Measure, and print a table, or JSON with --json."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        measured = speed(root / "large", root / "cache")
        measured["recall at 5 of 500"] = round(recall(root / "docstrings", root / "cache"), 3)
    if "--json" in sys.argv:
        print(json.dumps(measured))
        return
    print("| | |\n|---|---|")
    for name, value in measured.items():
        print(f"| {name} | {value:,} |")


if __name__ == "__main__":
    main()
