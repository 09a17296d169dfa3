"""`make demo` tells what happens, in order, from any folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo" / "demo.py"


def test_the_demo_tells_what_each_pod_gets(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DEMO], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    told = [
        (found[1], number) for number, line in enumerate(lines) if (found := re.fullmatch(r"\d+\. (\S+/\S+)", line))
    ]
    outcome = {pod: next(line for line in lines[number:] if re.match("[✔✘]", line)) for pod, number in told}
    assert outcome == {
        "default/trainer-0": "✔ on node-1:",
        "default/trainer-1": "✔ on node-2:",
        "default/trainer-2": "✘ it fits on no node, and waits",
        "default/memory-test": "✔ on node-2:",
        "default/inference-0": "✔ on node-3:",
        "default/inference-1": "✔ on node-3:",
        "default/notebook-0": "✔ on node-3:",
        "default/notebook-1": "✔ on node-3:",
        "default/inference-2": "✘ it fits on no node, and waits",
        "ops/monitor": "✔ on node-1:",
    }
    assert "8 of 10 pods have got all their devices. To go on:" in lines
    left = [line.split() for line in lines if " of " in line and line.startswith("node-")]
    assert left == [
        ["node-3", "card-0", "memory", "0", "of", "80Gi"],
        ["node-3", "card-0", "compute", "2", "of", "7"],
        ["node-3", "card-1", "memory", "0", "of", "80Gi"],
        ["node-3", "card-1", "compute", "0", "of", "7"],
        ["node-3", "nic-0", "bandwidth", "50G", "of", "100G"],
    ]
