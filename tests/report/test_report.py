"""The report: complete in itself, and usable in a real browser by keyboard, with thousands of nodes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import dra_alloc as dra
from dra_alloc import api
from dra_alloc.report import render_report
from tests.cli.conftest import Run, run  # noqa: F401
from tests.report.browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]
REASONS = ROOT / "examples" / "reasons"

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")


def of_example(code: str) -> str:
    alloc = dra.Allocator(dra.Cluster.from_objects(dra.load(REASONS / code / "objects.yaml")), dra.Features.all())
    return render_report(alloc, [alloc.explain("default/wanted")])


def large(nodes: int) -> dra.Cluster:
    """Nodes with four devices each; one device of the last node is tainted."""
    objects: list[object] = []
    for number in range(nodes):
        name = f"node-{number:04}"
        devices = [api.Device(name=f"gpu-{place}") for place in range(4)]
        if number == nodes - 1:
            taint = api.DeviceTaint(key="example.com/broken", effect="NoSchedule")
            devices[0] = api.Device(name="gpu-0", taints=(taint,))
        pool = api.ResourcePool(name=name, generation=1, resource_slice_count=1)
        spec = api.ResourceSliceSpec(driver="gpu.example.com", pool=pool, node_name=name, devices=tuple(devices))
        objects.append(api.Node(metadata=api.ObjectMeta(name=name)))
        objects.append(api.ResourceSlice(metadata=api.ObjectMeta(name=f"gpus-{name}"), spec=spec))
    return dra.Cluster.from_objects(objects)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def test_the_page_needs_nothing_else() -> None:
    page = of_example("counters")
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!\#)""", page)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_page_says_what_the_explanation_says() -> None:
    page = of_example("counters")
    assert "it needs 80Gi, 40Gi of 80Gi is left; held by claim default/other (pod other-pod)" in page
    assert '<span class="code">counters</span>' in page


def test_the_same_input_gives_the_same_page() -> None:
    assert of_example("in-use") == of_example("in-use")


def test_the_time_is_the_one_given() -> None:
    alloc = dra.Allocator(dra.Cluster())
    page = render_report(alloc, now=datetime(2026, 9, 1, 12, tzinfo=UTC), title="A & B")
    assert "2026-09-01 12:00 UTC" in page
    assert "<title>A &amp; B</title>" in page
    assert "Nothing waits for devices." in page


def test_names_cannot_break_out_of_the_page() -> None:
    device = api.Device(name="</script><script>alert(1)</script>")
    pool = api.ResourcePool(name="<!--", generation=1, resource_slice_count=1)
    spec = api.ResourceSliceSpec(driver="d.example.com", pool=pool, node_name="<i>n", devices=(device,))
    alloc = dra.Allocator(dra.Cluster.from_objects([api.ResourceSlice(metadata=api.ObjectMeta(name="s"), spec=spec)]))
    page = render_report(alloc)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<!--" not in page
    assert "<i>n" not in page


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(dra.MissingExtra, match=r'pip install "dra-alloc\[report\]"'):
        render_report(dra.Allocator(dra.Cluster()))


def test_command(run: Run, tmp_path: Path) -> None:  # noqa: F811
    target = tmp_path / "report.html"
    ran = run("report", "-f", REASONS / "in-use", "--to", target, "--now", "2026-09-01T12:00:00Z")
    assert (ran.status, ran.out, ran.err) == (0, "", f"wrote {target}\n")
    assert (
        target.read_text(encoding="utf-8")
        == run("report", "-f", REASONS / "in-use", "--to", "-", "--now", "2026-09-01T12:00:00Z").out
    )
    assert "claim default/wanted: fits on 0/1 nodes" in target.read_text(encoding="utf-8")


@in_browser
def test_map_and_details_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(of_example("counters"), encoding="utf-8")
    browser.requests.clear()
    browser.complaints.clear()
    browser.open(path.as_uri())
    assert browser.value("document.querySelector('#count').textContent") == "1 of 1 nodes"
    assert browser.value("[...document.querySelectorAll('#map .square')].map(s => s.title).join()") == (
        "half-0: in-use,half-1: free,whole: blocked"
    )
    # By keyboard: the summary takes the focus, Enter opens it.
    browser.value("document.querySelector('#map summary').focus()")
    browser.press("Enter", 13)
    browser.wait("document.querySelector('#map details table') != null")
    cells = browser.value("[...document.querySelectorAll('#map details tbody tr')].map(r => r.innerText).join('|')")
    assert "half-0\tgpu.example.com\tnode-1\t\tin-use\tdefault/other\tother-pod" in cells
    assert browser.value("document.querySelector('#map .bar').getAttribute('aria-label')") == "50 % used"
    assert "card-0/memory: 40Gi of 80Gi used" in browser.value("document.querySelector('#map details').innerText")
    assert [address for address in browser.requests if not address.startswith(("file:", "about:"))] == []
    assert browser.complaints == []


@in_browser
def test_five_thousand_nodes_are_paged_searched_and_filtered(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_report(dra.Allocator(large(5000))), encoding="utf-8")
    browser.complaints.clear()
    browser.open(path.as_uri())
    count = "document.querySelector('#count').textContent"
    first = "document.querySelector('#map tbody th').textContent"
    rows = "document.querySelectorAll('#map tbody > tr').length"
    assert (browser.value(count), browser.value(rows)) == ("5000 of 5000 nodes", 100)
    browser.value("document.querySelector('#next').focus()")
    browser.press(" ", 32)
    assert browser.value(first) == "node-0100"
    assert browser.value("document.querySelector('#page').textContent") == "page 2 of 50"
    browser.value("document.querySelector('#query').focus()")
    browser.type("node-499")
    assert (browser.value(count), browser.value(first)) == ("10 of 5000 nodes", "node-4990")
    assert browser.value("location.hash") == "#q=node-499"
    browser.open(f"{path.as_uri()}#state=tainted")
    assert (browser.value(count), browser.value(first)) == ("1 of 5000 nodes", "node-4999")
    assert browser.value("document.querySelector('#state').value") == "tainted"
    assert browser.complaints == []


@in_browser
def test_everything_has_a_name_for_screen_readers(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(of_example("in-use"), encoding="utf-8")
    browser.open(path.as_uri())
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = {
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node["ignored"] and "role" in node
    }
    for expected in (
        ("searchbox", "Search"),
        ("combobox", "State"),
        ("combobox", "Driver"),
        ("navigation", "Pages of nodes"),
        ("region", "Nodes"),
        ("region", "Pods and claims"),
        ("rowheader", "node-1"),
        ("heading", "Devices of the cluster"),
    ):
        assert expected in named
    controls = {"button", "combobox", "searchbox", "link"}
    assert not {role for role, name in named if role in controls and not name}
    assert browser.value("document.documentElement.lang") == "en"
