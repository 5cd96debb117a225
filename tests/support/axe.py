"""Deque's axe: what keeps people out of a page, by the rules of WCAG 2.2 AA and good practice."""
import pathlib

import pytest

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def bring(context):
    """Pages of the context have axe from here on. The test is skipped where PyPI's axe is not."""
    package = pytest.importorskip("axe_playwright_python", reason="PyPI's axe is not here (tools/page_tests)")
    context.add_init_script(path=pathlib.Path(package.__file__).with_name("axe.min.js"))


def faults(page, name):
    """{"NAME: rule": what it is about} of what axe finds now."""
    answer = page.evaluate("tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", TAGS)
    assert len(answer["passes"]) > 10, "axe looked at the page"
    return {f"{name}: {fault['id']}": [node["html"][:200] + " — " + node["failureSummary"][:300] for node in fault["nodes"][:3]] for fault in answer["violations"]}
