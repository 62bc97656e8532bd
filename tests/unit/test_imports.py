"""Imports point in one direction: no file or folder imports what imports it, however indirectly.

Of each folder, its children are looked at: the files and folders in it. A circle of files is one of
the children of the folder that they have in common.
"""

from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise

import grimp
import pytest


def circle_in(*packages):
    """The imports that close a circle: each from a child of a folder to the child before it."""
    graph = grimp.build_graph(*packages, cache_dir=None)  # with imports in functions and for types
    imports = defaultdict(lambda: defaultdict(set))
    for importing in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importing):
            child, other = children(importing, imported)
            imports[child][other].add(f"{importing} imports {imported}")
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [min(imports[child][other]) for other, child in pairwise(error.args[1])]
    return []


def children(*files):
    """The children of the folder that two files have in common, in which they are."""
    one, two = (f"{each}.__init__".split(".") for each in files)
    depth = next(at for at, (own, other) in enumerate(zip(one, two, strict=False)) if own != other)
    return tuple(one[: depth + 1]), tuple(two[: depth + 1])


def namesakes_in_sight(*packages):
    """Pairs of files of one name, of which one imports the other, or which one file imports."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    found = set()
    for module in graph.modules:
        seen = sorted({module, *graph.find_modules_directly_imported_by(module)})
        files = [each for each in seen if not graph.find_children(each)]
        found |= {pair for pair in combinations(files, 2) if len(set(map(last_part, pair))) == 1}
    return sorted(found)


def last_part(module):
    return module.rpartition(".")[2]


def test_no_two_files_of_one_name_are_in_sight_of_each_other():
    assert namesakes_in_sight("replan", "replan_local") == []


def test_no_file_or_folder_imports_one_that_imports_it():
    circle = circle_in("replan", "replan_local")
    assert not circle, ", ".join(circle)


@pytest.fixture
def inround(tmp_path, monkeypatch):
    """Makes the package of this name, of files given by their paths."""

    def make(files):
        for path, text in files.items():
            file = tmp_path / "inround" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        monkeypatch.syspath_prepend(tmp_path)

    return make


@pytest.mark.parametrize(
    "back",
    [
        "from inround.one import ONE\n",
        "def late():\n    from inround.one import ONE\n    return ONE\n",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import inround.one\n",
    ],
    ids=["at the top", "in a function", "for types alone"],
)
def test_a_circle_is_found_wherever_its_imports_are(inround, back):
    inround(
        {
            "__init__.py": "",
            "one.py": "from inround import two\n\nONE = two.TWO\n",
            "two.py": "from inround.three import THREE as TWO\n",
            "three.py": f"{back}\nTHREE = 3\n",
        }
    )
    assert sorted(circle_in("inround")) == [
        "inround.one imports inround.two",
        "inround.three imports inround.one",
        "inround.two imports inround.three",
    ]


@pytest.mark.parametrize(
    "importing",
    [
        "from inround.a import names\nfrom inround.b import names as more\n",
        "import inround.b.names\n",
    ],
    ids=["by another file", "by the other one"],
)
def test_files_of_one_name_are_found_if_they_are_imported_together(inround, importing):
    together = "both.py" if "more" in importing else "a/names.py"
    files = {"a/names.py": "", "b/names.py": "", together: importing}
    inround({"__init__.py": "", "a/__init__.py": "", "b/__init__.py": "", **files})
    assert namesakes_in_sight("inround") == [("inround.a.names", "inround.b.names")]
