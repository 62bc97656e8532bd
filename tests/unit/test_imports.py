"""Files import in one direction: none imports what imports it, directly or through others."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def circle_in(*packages):
    """A circle of files; each is imported by the next one. Imports for types count, too."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_file_imports_one_that_imports_it():
    circle = circle_in("replan", "replan_local")
    assert not circle, " is imported by ".join(circle)


@pytest.mark.parametrize(
    "back",
    [
        "from inround.one import ONE\n",
        "def late():\n    from inround.one import ONE\n    return ONE\n",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import inround.one\n",
    ],
    ids=["at the top", "in a function", "for types alone"],
)
def test_a_circle_is_found_wherever_its_imports_are(tmp_path, monkeypatch, back):
    files = {
        "__init__": "",
        "one": "from inround import two\n\nONE = two.TWO\n",
        "two": "from inround.three import THREE as TWO\n",
        "three": f"{back}\nTHREE = 3\n",
    }
    (tmp_path / "inround").mkdir()
    for name, text in files.items():
        (tmp_path / "inround" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert set(circle_in("inround")) == {"inround.one", "inround.two", "inround.three"}
