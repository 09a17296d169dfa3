"""The pytest plugin, used as authors of drivers use it: in a test run of its own."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dra_alloc

pytest_plugins = ["pytester"]

# A run inside of this one forgets the modules that it imported. Those of the library must stay what they are.
for _module in pkgutil.walk_packages(dra_alloc.__path__, "dra_alloc."):
    if not _module.name.endswith("__main__"):
        import_module(_module.name)

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "driver-tests"

CLUSTER = """
kind: Node
apiVersion: v1
metadata: {name: node-1}
---
kind: DeviceClass
apiVersion: resource.k8s.io/v1
metadata: {name: gpu}
---
kind: ResourceSlice
apiVersion: resource.k8s.io/v1
metadata: {name: node-1-gpu}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, allowMultipleAllocations: true, capacity: {memory: {value: 8Gi}}}, {name: gpu-1}]
---
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: one, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: three, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 3}}]}}
---
kind: Pod
apiVersion: v1
metadata: {name: user, namespace: default}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: one}]
  containers: [{name: main, resources: {claims: [{name: gpu}]}}]
"""


def run(pytester: pytest.Pytester, source: str, *, files: dict[str, str] | None = None) -> pytest.RunResult:
    """Run a test module `test_it.py` with these files beside it."""
    pytester.makepyfile(test_it=source)
    for name, text in ({"test_it.yaml": CLUSTER} if files is None else files).items():
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return pytester.runpytest_inprocess("-p", "no:benchmark", "-p", "no:cacheprovider", "--strict-markers")


def test_the_example_passes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.parametrize("name", ["test_it.yaml", "test_it.yml", "test_it/cluster.yaml"])
def test_files_with_the_name_of_the_module_are_found(pytester: pytest.Pytester, name: str) -> None:
    source = "def test(assert_allocates):\n    assert_allocates('default/one', node='node-1', devices=['gpu-0'])"
    run(pytester, source, files={name: CLUSTER}).assert_outcomes(passed=1)


def test_each_test_has_a_cluster_of_its_own(pytester: pytest.Pytester) -> None:
    source = """
        import pytest

        @pytest.mark.parametrize("turn", [1, 2])
        def test(turn, dra_cluster, assert_allocates, assert_not_allocates):
            dra_cluster.delete("ResourceSlice", "node-1-gpu")
            assert_not_allocates("default/one", reason="no-devices")
    """
    run(pytester, source).assert_outcomes(passed=2)


def test_markers_name_files_and_features_and_the_nearest_wins(pytester: pytest.Pytester) -> None:
    source = """
        import pytest
        import dra_alloc as dra

        pytestmark = pytest.mark.dra_cluster("other.yaml", features="none")

        def test_module(dra_allocator):
            assert dra_allocator.features == dra.Features.none()
            assert dra_allocator.cluster.node_names() == ("node-1",)

        @pytest.mark.dra_cluster(features="all")
        def test_all(dra_allocator):
            assert dra_allocator.features == dra.Features.all()
            assert dra_allocator.cluster.node_names() == ("node-1",)

        @pytest.mark.dra_cluster(version="1.34")
        def test_version(dra_allocator):
            assert dra_allocator.features == dra.Features.for_version("1.34")

        @pytest.mark.dra_cluster(features=dra.Features(DRAAdminAccess=False))
        def test_object(dra_allocator):
            assert dra_allocator.features == dra.Features(DRAAdminAccess=False)
    """
    run(pytester, source, files={"other.yaml": CLUSTER}).assert_outcomes(passed=4)


def test_answers_are_the_same_in_every_run(pytester: pytest.Pytester) -> None:
    source = """
        def test(assert_allocates):
            (found,) = assert_allocates("default/one", devices="gpu.example.com/node-1/gpu-0")
            assert found.devices.results[0].share_id == "00000000-0000-4000-8000-000000000001"
    """
    run(pytester, source).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("devices", "fits"),
    [
        ("['gpu-0']", True),
        ("['gpu-1']", False),
        ("['gpu-0', 'gpu-1']", False),
        ("['node-1/gpu-0']", True),
        ("['node-2/gpu-0']", False),
        ("{'gpu-0'}", True),
        ("{'gpu.example.com/node-1/gpu-0'}", True),
        ("set()", False),
        ("{'gpu': 'gpu-0'}", True),
        ("{'gpu': {'gpu-0'}}", True),
        ("{'gpu': 'gpu-1'}", False),
        ("{'nic': 'gpu-0'}", False),
        ("{}", False),
    ],
)
def test_devices_are_compared_by_name_order_and_request(pytester: pytest.Pytester, devices: str, fits: bool) -> None:
    result = run(pytester, f"def test(assert_allocates):\n    assert_allocates('default/one', devices={devices})")
    result.assert_outcomes(passed=int(fits), failed=int(not fits))
    if not fits:
        result.stdout.fnmatch_lines(["*claim default/one on node node-1 should get other devices*", "*expected: *"])


def test_a_failure_shows_the_explanation_and_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    source = "def test(assert_allocates):\n    assert_allocates('default/three', node='node-1')"
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*assert_allocates('default/three', node='node-1')",
            "E*AssertionError: claim default/three on node node-1 should fit, but",
            "E*claim default/three*",
            "test_it.py:2: AssertionError",
        ]
    )
    assert "kit.py" not in result.stdout.str()


def test_what_fits_after_all_is_told(pytester: pytest.Pytester) -> None:
    source = "def test(assert_not_allocates):\n    assert_not_allocates('default/one')"
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*claim default/one on any node should not fit, but"])


def test_another_reason_than_the_expected_fails(pytester: pytest.Pytester) -> None:
    source = "def test(assert_not_allocates):\n    assert_not_allocates('default/three', reason='taint')"
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*should not fit for the reason taint; it is too-few*"])


def test_an_error_of_the_attempt_is_a_reason(pytester: pytest.Pytester) -> None:
    source = """
        def test(dra_cluster, assert_not_allocates):
            dra_cluster.delete("DeviceClass", "gpu")
            why = assert_not_allocates("default/one", node="node-1", reason="class-not-found")
            assert why.failure.code == "class-not-found"
            assert_not_allocates(["default/one", "default/three"], reason="class-not-found")
    """
    run(pytester, source).assert_outcomes(passed=1)


def test_an_error_where_an_answer_is_expected_is_explained(pytester: pytest.Pytester) -> None:
    source = """
        def test(dra_cluster, assert_allocates):
            dra_cluster.delete("DeviceClass", "gpu")
            assert_allocates("default/one", node="node-1")

        def test_anywhere(dra_cluster, assert_allocates):
            dra_cluster.delete("DeviceClass", "gpu")
            assert_allocates("default/one")
    """
    result = run(pytester, source)
    result.assert_outcomes(failed=2)
    assert result.stdout.str().count("E       AssertionError: claim default/one on") == 2


def test_pods_are_asked_for_too(pytester: pytest.Pytester) -> None:
    source = """
        def test(dra_cluster, assert_allocates, assert_not_allocates):
            assert_allocates(pod="default/user", devices=["gpu-0"])
            dra_cluster.delete("ResourceSlice", "node-1-gpu")
            assert_not_allocates(pod="default/user", node="node-1")

        def test_fails(dra_cluster, assert_allocates):
            dra_cluster.delete("ResourceSlice", "node-1-gpu")
            assert_allocates(pod="default/user")
    """
    result = run(pytester, source)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*pod default/user on any node should fit, but"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("assert_not_allocates('default/one', reason='tain')", "*ValueError: there is no reason 'tain'; * taint*"),
        ("assert_allocates()", "*TypeError: assertions take claims or pod=*"),
        ("assert_allocates('default/one', pod='default/user')", "*TypeError: assertions take claims or pod=*"),
        ("assert_allocates('default/none')", "*DraError: *default/none*"),
        ("assert_allocates('default/one', node='nowhere')", "*DraError: *nowhere*"),
    ],
)
def test_wrong_questions_are_no_failures_of_the_subject(pytester: pytest.Pytester, call: str, message: str) -> None:
    result = run(pytester, f"def test(assert_allocates, assert_not_allocates):\n    {call}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E{message}"])


def test_errors_of_the_question_show_the_line_of_the_test_alone(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test(assert_allocates):\n    assert_allocates(pod='default/nobody')")
    result.stdout.fnmatch_lines([">*assert_allocates(pod='default/nobody')", "E*DraError: there is no Pod *"])
    result.stdout.no_fnmatch_line("*During handling*")
    result.stdout.no_fnmatch_line("*cluster.py*")


def test_misspelt_fields_of_files_and_claims_are_warned_of(pytester: pytest.Pytester) -> None:
    source = """
        import dra_alloc, pytest

        def test(assert_allocates, dra_cluster):
            claim = dra_cluster.get("ResourceClaim", "default/one").to_dict()
            assert_allocates(claim)
            claim["spec"]["devices"]["requests"][0]["exactly"]["cuont"] = 3
            assert_allocates(claim)
    """
    result = run(pytester, source, files={"test_it.yaml": CLUSTER.replace("capacity:", "capacities:")})
    result.assert_outcomes(passed=1, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "*dra_cluster: *test_it.yaml* ResourceSlice node-1-gpu: spec.devices[[]0].capacities: unknown field *",
            "*test_it.py:7: *spec.devices.requests[[]0].exactly.cuont: unknown field *count*",
        ]
    )


@pytest.mark.parametrize(
    ("marker", "files", "message"),
    [
        ("", {}, "dra_cluster: no files for this test; write test_it.yaml beside test_it.py, *"),
        ("@pytest.mark.dra_cluster('gone.yaml')", {}, "dra_cluster: there is no *gone.yaml"),
        ("", {"test_it.yaml": "kind: ResourceClaim\nspec: 3\n"}, "dra_cluster: *test_it.yaml*"),
        ("@pytest.mark.dra_cluster(feature='all')", None, "dra_cluster: unknown argument feature; *"),
        ("@pytest.mark.dra_cluster(features='some')", None, "dra_cluster: features are *, not 'some'"),
        ("@pytest.mark.dra_cluster(features='all', version='1.37')", None, "*exclude each other"),
        ("@pytest.mark.dra_cluster(version='9.9')", None, "*no gate table for Kubernetes '9.9'*"),
    ],
)
def test_bad_set_ups_say_what_would_be_right(
    pytester: pytest.Pytester, marker: str, files: dict[str, str] | None, message: str
) -> None:
    result = run(pytester, f"import pytest\n\n{marker}\ndef test(dra_allocator):\n    pass", files=files)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


def test_a_run_that_does_not_use_the_plugin_does_not_import_the_library(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test():
            packages = ("dra_alloc", "cattrs", "celpy", "yaml")
            loaded = [name for name in sys.modules if name.partition(".")[0] in packages]
            assert {*loaded} == {"dra_alloc", "dra_alloc.errors", "dra_alloc.testing", "dra_alloc.testing.plugin"}
        """
    )
    pytester.runpytest_subprocess("-p", "no:benchmark", "-p", "no:cacheprovider").assert_outcomes(passed=1)
