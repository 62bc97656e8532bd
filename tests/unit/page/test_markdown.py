"""Markdown of others as HTML."""

from replan.cli.page.markdown import safe


def test_a_numbered_list_keeps_its_numbers():
    assert '<ol start="2">' in safe("Not done:\n\n- 2. The cellar: water\n")
    assert "<ol>" in safe("1. one\n")
    assert "<ol" not in safe('<ol start="7" onclick="x()"><li>a</li></ol>')
