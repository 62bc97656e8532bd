"""What a search in a folder takes, and how often it finds the right text.

A thousand files with twenty passages each, cut from the sources of the standard library, are
indexed and searched; one file changes. Recall: 500 docstrings of the standard library without their
first sentences, one file each, are asked for by these sentences; found is what is among the best 5:
by words, by meaning, and by both.

    python benchmarks/knowledge.py --embeddings module:object

takes the meaning from that object, an Embeddings of LangChain. Without it, vectors of 384 numbers
are made of the hashes of words: enough for the times, while their recall says little.
"""

import ast
import importlib
import json
import random
import re
import tempfile
import time
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.embeddings import Embeddings

from replan.adapters.knowledge.embedding import Embedding
from replan.adapters.knowledge.index import opened
from replan.adapters.knowledge.vectors import Vectors
from replan.knowledge import FolderRetriever, SearchRequest

_FIRST = re.compile(r"(?<=[.!?])\s|\n\n")
_FILES, _EACH, _DOCSTRINGS, _ASKED = 1_000, 20, 500, 100
_SENTENCE, _REST = 30, 150  # characters at least
_LEFT_OUT = {"site-packages", "test", "tests", "idlelib", "lib2to3"}
_BLOCK = range(200, 900)
_WIDTH = 384


class Hashes(Embeddings):
    """Vectors of the hashes of words."""

    model = "hashed words"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Give a vector for each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Count each word at the place of its hash."""
        vector = [0.0] * _WIDTH
        for word in re.findall(r"\w+", text.casefold()):
            vector[zlib.crc32(word.encode()) % _WIDTH] += 1
        return vector


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


def recall(folder: Path, cache: Path, model: Embeddings) -> dict[str, float]:
    """The share of docstrings that are found by their first sentences."""
    asked = docstrings()
    folder.mkdir()
    for name, _, rest in asked:
        (folder / f"{name}.md").write_text(f"# {name}\n\n{rest}\n", encoding="utf-8")
    words = FolderRetriever(folder, cache=cache)
    both = FolderRetriever(folder, cache=cache, embeddings=model)
    both.prepare()
    (place,) = [each for each in cache.glob("*.db") if _is_of(each, f"{asked[0][0]}.md")]

    def by(retriever: FolderRetriever) -> Callable[[str], list[str]]:
        return lambda first: [
            each.source for each in retriever.search(SearchRequest(query=first, top_k=5)).chunks
        ]

    def by_meaning(first: str) -> list[str]:
        with opened(place) as index:
            near = Vectors(place, index.connection, Embedding(model)).nearest(first, 5)
            return [each.file for each in index.passages(near).values()]

    def share(found_by: Callable[[str], list[str]]) -> float:
        found = sum(f"{name}.md" in found_by(first) for name, first, _ in asked)
        return round(found / len(asked), 3)

    called = getattr(model, "model", type(model).__name__)
    return {
        "recall at 5 of 500, by words": share(by(words)),
        f"recall at 5 of 500, by meaning ({called})": share(by_meaning),
        "recall at 5 of 500, by both": share(by(both)),
    }


def _is_of(index: Path, file: str) -> bool:
    with opened(index) as known:
        asked = "SELECT count(*) FROM files WHERE name = ?"
        return known.connection.execute(asked, (file,)).fetchone()[0] > 0


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
    meaning = FolderRetriever(folder, cache=cache, embeddings=Hashes())
    embedding = milliseconds(meaning.prepare)
    searching_both = [
        milliseconds(lambda query=query: meaning.search(SearchRequest(query=query)))
        for query in queries
    ]
    (folder / "8.md").write_text("## Okapis\n\nAn okapi is striped.\n", encoding="utf-8")
    okapi = SearchRequest(query="striped okapi")
    changing_both = milliseconds(lambda: meaning.search(okapi))
    return {
        "passages": retriever.looked_through()[1],
        "index of all, ms of CPU": round(indexing),
        "a query, median, ms of CPU": round(median(searching), 1),
        "a query after one file of 1,000 changed, ms of CPU": round(changing, 1),
        "vectors of all, of 384 numbers, ms of CPU": round(embedding),
        "a query by words and vectors, median, ms of CPU": round(median(searching_both), 1),
        "the same after one file of 1,000 changed, ms of CPU": round(changing_both, 1),
    }


def main() -> None:
    """Measure, and print a table, or JSON with --json."""
    parser = ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--embeddings", help="module:object")
    given = parser.parse_args()
    model: Embeddings = Hashes()
    if given.embeddings:
        module, _, name = given.embeddings.partition(":")
        model = getattr(importlib.import_module(module), name)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        measured = speed(root / "large", root / "cache")
        measured |= recall(root / "docstrings", root / "cache", model)
    if given.json:
        print(json.dumps(measured))
        return
    print("| | |\n|---|---|")
    for name, value in measured.items():
        print(f"| {name} | {value:,} |")


if __name__ == "__main__":
    main()
