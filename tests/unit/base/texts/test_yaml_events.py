"""YAML of others is counted before anything is built of it."""

import subprocess
import sys
import time

import pytest

from replan.plan.markdown.parameters import ParametersError, read_parameters

_MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{at}: &a{at}\n  <<: [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 10)
)
_REFUSED = {
    "lists in lists": (f"a: {'[' * 90_000}", "nested deeper than 100 levels"),
    "mappings in mappings": ("{a: " * 30_000, "nested deeper than 100 levels"),
    "items in items": ("- " * 30_000, "nested deeper than 100 levels"),
    "keys in keys": ("? " * 30_000, "nested deeper than 100 levels"),
    "merges": (_MERGES, "merges mappings with '<<'"),
    "a merge with a tag": ("a: &a {x: 1}\nb: {!!merge y: *a}", "merges mappings"),
    "aliases of aliases": (_MERGES.replace("<<", "y"), "more than 20,000 values"),
    "an alias in itself": ("a: &a [*a]", "alias '*a' is used where its anchor is not known"),
    "values": (f"a: [{'1,' * 20_001}]", "more than 20,000 values"),
    "characters": (f"a: {'x' * 200_000}", "at most 200,000 are read"),
    "a long number": (f"a: {'1' * 5_000}", "5,000 digits; at most 100"),
    "a long hexadecimal number": (f"a: 0x{'f' * 5_000}", "5,002 digits; at most 100"),
    "a long number with a tag": (f"a: !!int '{'1' * 5_000}'", "5,000 digits"),
    "a long number of minutes": (f"a: 1{':1' * 5_000}", "10,001 digits"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_parameters_beyond_a_bound_are_refused_at_once(name: str) -> None:
    text, problem = _REFUSED[name]
    started = time.process_time()

    with pytest.raises(ParametersError) as caught:
        read_parameters(text)

    assert problem in caught.value.problem
    assert time.process_time() - started < 5


def test_a_plan_with_deep_parameters_is_a_mistake_and_no_crash() -> None:
    block = "```yaml\n  a: " + "[" * 30_000 + "\n  ```\n"
    # A crash would end the tests, too.
    program = (
        "import sys; from replan.plan.markdown.document import PlanDocument\n"
        "print([(m.line, m.code) for m in PlanDocument.recover(sys.stdin.read()).mistakes])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=f"- [ ] 1. x\n\n  {block}",
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (0, "[(4, 'bad_parameters')]")


def test_ordinary_yaml_is_read_as_before() -> None:
    text = "a: &x {b: [1, 2.5, true, null, 2024-01-02]}\nc: *x\n'<<': 1\nd: " + "1a" * 80

    assert read_parameters(text) == {
        "a": {"b": [1, 2.5, True, None, "2024-01-02"]},
        "c": {"b": [1, 2.5, True, None, "2024-01-02"]},
        "<<": 1,
        "d": "1a" * 80,
    }
