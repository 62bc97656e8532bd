"""Tests of the fixtures, and of what loading the package costs."""

import subprocess
import sys

import pytest

import replan.testing

pytest_plugins = ["pytester"]

SCRIPTED = """
    def test_it(scripted):
        model = scripted({"*": ["Hello."]})
        assert model.%s
"""
SERVER = """
    import urllib.request

    def test_it(openai_server):
        server = openai_server({"*": ["Hello."]})
        body = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
        if %s:
            url = f"{server.base_url}/chat/completions"
            with urllib.request.urlopen(url, data=body) as response:
                assert b"Hello." in response.read()
        assert %s
"""


@pytest.mark.parametrize(
    ("source", "outcomes"),
    [
        (SCRIPTED % 'invoke("Hi").text == "Hello."', {"passed": 1}),
        (SCRIPTED % 'left == {"*": 1}', {"passed": 1, "errors": 1}),
        (SCRIPTED % "left == {}", {"failed": 1}),
        (SERVER % (True, True), {"passed": 1}),
        (SERVER % (False, True), {"passed": 1, "errors": 1}),
        (SERVER % (False, False), {"failed": 1}),
    ],
    ids=["used", "left over", "failed", "server used", "server left over", "server failed"],
)
def test_a_script_is_checked_after_a_test_that_passed(
    pytester: pytest.Pytester, source: str, outcomes: dict[str, int]
):
    pytester.makepyfile(source)

    result = pytester.runpytest_inprocess("-p", "replan.testing.fixtures", "-p", "no:cacheprovider")

    result.assert_outcomes(**outcomes)


def test_every_public_name_can_be_had():
    for name in replan.testing.__all__:
        assert getattr(replan.testing, name) is not None
    assert list(replan.testing.__all__) == sorted(replan.testing.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        _ = replan.testing.nothing


def test_fakes_need_no_pytest():
    code = """
import sys
import replan.testing
from replan.testing import OpenAIServer, ScriptedModel
assert "pytest" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_aiohttp_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    for loaded in ("server", "answering"):
        monkeypatch.delitem(sys.modules, f"replan.testing.{loaded}", raising=False)

    with pytest.raises(ModuleNotFoundError, match=r'pip install "replan\[testing\]"') as caught:
        _ = replan.testing.OpenAIServer

    assert caught.value.name == "aiohttp"
