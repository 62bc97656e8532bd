"""The mark by which a report of our own is told from the texts that people wrote."""

REPORT_MARK = "<!-- written by replan -->"


def is_report(text: str) -> bool:
    """Whether a text is a report of our own, which is no source for another one."""
    return text.rstrip().endswith(REPORT_MARK)
