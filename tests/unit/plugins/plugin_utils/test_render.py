"""The four forms of the report say the same, whatever a host put into its text."""

from __future__ import annotations

import html.parser
import json
import typing as t
from xml.etree import ElementTree

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import text_columns
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import checklist_item, clean_text, evidence, host_result, title
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import render, render_html

META: render.Meta = {
    "finished": "2026-12-01T10:00:00+0800",
    "cluster": "hpc",
    "slurm": "22.05.8",
    "collection": "0.1.0",
    "check_mode": False,
    "hosts": ["k8s-master-01", "k8s-node-01"],
}
EVIL = "</script><script>alert(1)</script>\" onmouseover='x' {{ 7*7 }} {% raw %} ]]> & 中文"


def items() -> list[render.Item]:
    """One item of each verdict; the failing one is hostile."""
    return [
        checklist_item(1, title("健康检查参数已生效", "settings in force"), {"k8s-master-01": host_result("pass", "as wanted")}),
        checklist_item(
            2,
            title("配置已分发", "distributed"),
            {
                "k8s-node-01": host_result("fail", EVIL, [evidence("scontrol " + EVIL, "\x1b[31m" + EVIL)], "scontrol reconfigure " + EVIL),
                "k8s-node-02": host_result("pass", "same"),
                EVIL: host_result("fail", EVIL, [], "x"),
            },
        ),
        checklist_item(13, title("崩溃恢复测试", "crash test"), "switched off (verify_crash_test)"),
    ]


def plain(word: str, verdict: str) -> str:
    return word


# --- terminal -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("中文", 4), ("a中b", 4), ("，。", 4), ("e\u0301", 1), ("ｆｕｌｌ", 8), ("…", 1)]
)
def test_a_chinese_character_takes_two_columns(text: str, columns: int) -> None:
    assert text_columns.width_of(text) == columns


@pytest.mark.parametrize("text", ["", "abc", "中文字", "a中b文c字", "x" * 50, "中" * 50])
@pytest.mark.parametrize("columns", [1, 2, 5, 6, 20])
def test_a_cell_has_exactly_its_columns(text: str, columns: int) -> None:
    """A character that would stand half in the cell is left out."""
    assert text_columns.width_of(text_columns.fit(text, columns)) == columns


@pytest.mark.parametrize("text", ["one two three four", "健康检查 参数 已生效", "/a/very/long/path/without/any/blank/in/it", "中" * 30])
@pytest.mark.parametrize("columns", [4, 7, 20])
def test_wrapped_text_loses_nothing_and_fits(text: str, columns: int) -> None:
    lines = text_columns.wrap(text, columns)
    assert all(text_columns.width_of(line) <= columns for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("columns", [79, 100, 120, 200])
def test_the_columns_of_the_table_stand_below_each_other(columns: int) -> None:
    lines = render.table(items(), columns, plain)
    heads = [line for line in lines if line[:3].strip().isdigit()]
    # where no host was looked at there is nothing to count
    ratios = [len(head) - 1 if head.endswith("-") else head.index("/") for head in heads]
    assert heads[-1].endswith(" -") and "0/0" not in heads[-1]
    assert [head.split()[:2] for head in heads] == [["1", "PASS"], ["2", "FAIL"], ["13", "SKIP"]]
    assert len({text_columns.width_of(head[:at]) for head, at in zip(heads, ratios, strict=True)}) == 1
    assert all(text_columns.width_of(line) <= columns for line in lines)


def test_the_table_says_which_host_why_and_what_to_do() -> None:
    text = "\n".join(render.table(items(), 200, plain))
    assert "1/3" in text and "k8s-node-01: " in text and "> scontrol reconfigure" in text
    assert "switched off (verify_crash_test)" in text
    assert "k8s-node-02" not in text


def test_many_hosts_with_the_same_fault_are_told_once() -> None:
    hosts = {f"n{number:03}": host_result("fail", "no script", [], "deploy") for number in range(500)}
    lines = render.table([checklist_item(3, title("三", "three"), hosts)], 100, plain)
    assert len(lines) < 10
    assert "and 490 more: no script" in " ".join(lines)


def test_colours_do_not_move_columns() -> None:
    plain_lines = render.table(items(), 120, plain)
    painted = render.table(items(), 120, lambda word, verdict: f"\x1b[31m{word}\x1b[0m")
    assert [clean_text(line) for line in painted] == plain_lines


def test_the_summary_counts_in_both_languages() -> None:
    assert render.summary(items()) == "1 of 3 passed, 1 failed, 1 skipped / 3 项中通过 1，失败 1，跳过 1"


# --- machines -----------------------------------------------------------------------------------


def test_json_keeps_everything() -> None:
    read = json.loads(render.to_json(items(), META))
    assert read["items"] == items()
    assert read["summary"] == {"pass": 1, "fail": 1, "skip": 1}
    assert read["cluster"] == "hpc"


def test_junit_is_well_formed_and_counts_each_host() -> None:
    root = ElementTree.fromstring(render.junit(items(), META))
    [suite] = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped"), suite.get("errors")) == ("5", "2", "1", "0")
    cases = {case.get("name"): case for case in suite}
    assert len(cases) == 5
    [failure] = cases["02 distributed / 配置已分发 [k8s-node-01]"]
    assert failure.get("message") == EVIL
    assert "remedy: scontrol reconfigure" in (failure.text or "")
    [skipped] = cases["13 crash test / 崩溃恢复测试"]
    assert skipped.get("message") == "switched off (verify_crash_test)"


# --- HTML ---------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Tags, attributes and text of the page, and whether every tag was closed."""

    VOID = ("meta", "link", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    page = Page(render_html.page(items(), META))
    assert page.open == []
    assert "script" not in page.tags
    assert not [name for name, _value in page.attributes if name.startswith("on")]
    assert page.text.count(EVIL) >= 5
    assert "49" not in page.text


def test_the_page_needs_nothing_from_outside() -> None:
    text = render_html.page(items(), META)
    page = Page(text)
    assert not {"link", "img", "script", "iframe", "object"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href")]
    assert "url(" not in text and "@import" not in text and "http://" not in text and "https://" not in text
    assert "default-src 'none'" in text


def test_the_page_shows_each_item_with_hosts_evidence_and_remedy() -> None:
    page = Page(render_html.page(items(), META))
    for words in ("健康检查参数已生效", "settings in force", "as wanted", "1/3", "SKIP", "switched off (verify_crash_test)", "22.05.8"):
        assert words in page.text
    assert page.tags.count("details") == 3
    assert [value for name, value in page.attributes if name == "open"] == [None]  # the failing one is unfolded


def test_a_run_in_check_mode_says_so() -> None:
    assert "check mode" in render_html.page(items(), {**META, "check_mode": True})
    assert "check mode" not in render_html.page(items(), META)


@pytest.mark.parametrize("form", [render.to_json, render.junit, render_html.page])
def test_every_form_is_text_that_can_be_written_as_utf_8(form: t.Callable[[list[render.Item], render.Meta], str]) -> None:
    form(items(), META).encode("utf-8")
