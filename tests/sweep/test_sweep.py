"""Sweeps: what a scenario means, and that it does not matter where it is played."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import dra_alloc as dra
from bench import workloads
from dra_alloc.api import ObjectMeta, Pod, PodResourceClaim, PodSpec
from dra_alloc.sweeps import Outcome, Placement, Scenario, sweep, table

ROOT = Path(__file__).parents[2]


def cluster(nodes: int = 3) -> dra.Cluster:
    """Nodes of 8 GPUs and 4 NICs, all free."""
    return dra.Cluster.from_objects(
        [*workloads.CLASSES, *(item for number in range(nodes) for item in workloads.gpu_node(f"node-{number}"))]
    )


def gpus(name: str, count: int, **more: Any) -> Any:
    return workloads.claim(name, [workloads.request("gpu", "gpu", count, **more)])


def pod(name: str, claim: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(resource_claims=(PodResourceClaim(name="gpu", resource_claim_name=claim),)),
    )


def scenarios(count: int = 40) -> Iterator[Scenario]:
    """Workloads of growing size on clusters that lose a node now and then."""
    for number in range(count):
        yield Scenario(
            name=f"scenario-{number}",
            labels={"size": number % 7, "odd": "yes" if number % 2 else "no"},
            workload=[gpus(f"c-{each}", 1 + (number + each) % 5) for each in range(number % 7)],
            delete=[("Node", f"node-{number % 3}")] if number % 4 == 0 else (),
        )


def played(executor: Any = None, count: int = 40, **options: Any) -> list[Outcome]:
    return list(sweep(scenarios(count), executor, cluster=cluster(), **options))


EXPECTED = played()


def test_a_scenario_changes_the_cluster_and_places_its_workload_in_order() -> None:
    base = cluster(2)
    scenario = Scenario(
        name="one",
        labels={"drained": "node-0"},
        delete=[("Node", "node-0")],
        workload=[gpus("of-pod", 3), pod("user", "of-pod"), gpus("alone", 4), gpus("late", 2)],
    )
    (outcome,) = sweep([scenario], cluster=base)
    assert outcome == Outcome(
        name="one",
        labels={"drained": "node-0"},
        placements=(
            Placement("pod default/user", "node-1", devices=3),
            Placement("claim default/alone", "node-1", devices=4),
            Placement("claim default/late", None, "does-not-fit"),
        ),
        devices={workloads.GPU: 7},
    )
    assert (outcome.placed, outcome.unplaced, outcome.nodes, outcome.fits) == (2, 1, 1, False)
    assert outcome.reason == "does-not-fit"
    assert base.claims() == []
    assert base.get("Node", "node-0") is not None


def test_upserted_objects_replace_those_of_the_cluster() -> None:
    less = workloads.pool_slice(workloads.GPU, "node-0", [], on="node-0")
    (outcome,) = sweep([Scenario(name="x", upsert=[less], workload=[gpus("c", 1)])], cluster=cluster(1))
    assert outcome.unplaced == 1


def test_features_are_those_of_the_scenario_or_the_sweep() -> None:
    shared = workloads.shares(2, 1)
    one = Scenario(name="as given", workload=shared.claims)
    other = Scenario(name="off", workload=shared.claims, features=dra.Features.none())
    given, off = sweep([one, other], cluster=dra.Cluster.from_objects(shared.objects))
    assert given.fits
    assert off.reason == "unsupported"
    (none,) = sweep([one], cluster=dra.Cluster.from_objects(shared.objects), features=dra.Features.none())
    assert none.reason == "unsupported"


def test_reasons_are_explained_on_request() -> None:
    scenario = Scenario(name="x", workload=[gpus("a", 8), gpus("b", 1)])
    assert [found.reason for found in sweep([scenario], cluster=cluster(1), explain=True)] == ["in-use"]


def test_errors_of_one_claim_do_not_stop_the_others() -> None:
    lost = workloads.claim("lost", [workloads.request("x", "no-such-class")])
    hard = workloads.trap(14)
    (outcome,) = sweep([Scenario(name="x", workload=[lost, gpus("fine", 1)])], cluster=cluster(1))
    assert [placement.reason for placement in outcome.placements] == ["class-not-found", ""]
    (short,) = sweep(
        [Scenario(name="x", workload=hard.claims)],
        cluster=dra.Cluster.from_objects(hard.objects),
        budget=dra.Budget(max_steps=10),
    )
    assert short.reason == "budget-exceeded"


def test_a_scenario_that_cannot_be_played_says_so() -> None:
    wrong = Scenario(name="wrong", delete=[("Node", "nowhere")])
    right = Scenario(name="right", workload=[gpus("c", 1)])
    first, second = sweep([wrong, right], cluster=cluster(1))
    assert first.error == "there is no Node nowhere to delete"
    assert not first.fits
    assert second.fits


def test_what_is_no_object_is_refused_when_the_scenario_is_made() -> None:
    with pytest.raises(dra.DecodeError):
        Scenario(name="x", workload=[{"kind": "Nonsense"}])


@pytest.mark.parametrize(
    ("scenarios", "message"),
    [
        ([5], r"scenarios\[0\]: a Scenario is needed, .*, not int"),
        ([Scenario(name="fine"), {"name": "x"}], r"scenarios\[1\]: a Scenario is needed, .*, not dict"),
        (5, "scenarios: a Plan or an iterable of Scenario is needed, not int"),
        (Scenario(name="alone"), "an iterable of Scenario is needed, not Scenario"),
    ],
)
def test_what_is_no_scenario_is_refused(scenarios: Any, message: str) -> None:
    with pytest.raises(dra.DraError, match=message):
        list(sweep(scenarios, cluster=cluster(1)))


def executors() -> dict[str, Any]:
    return {
        "one thread": lambda: ThreadPoolExecutor(1),
        "four threads": lambda: ThreadPoolExecutor(4),
        "two processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
    }


@pytest.mark.parametrize("make", executors().values(), ids=executors())
def test_outcomes_are_the_same_on_every_executor(make: Any) -> None:
    with make() as executor:
        assert played(executor, chunk=3) == EXPECTED
        assert played(executor, chunk=50) == EXPECTED, "the executor lives on and takes another sweep"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_number_starts_processes(workers: int) -> None:
    assert played(workers, chunk=4) == EXPECTED


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
@pytest.mark.parametrize("threads", [0, 1])
def test_processes_are_forked_where_there_are_no_threads(threads: int) -> None:
    """In a process of its own: this one may have threads, of the test runner. A fork needs no file with the cluster."""
    program = f"""
import tempfile, threading
from tests.sweep import test_sweep
stop, made = threading.Event(), []
for _ in range({threads}):
    threading.Thread(target=stop.wait).start()
make = tempfile.mkstemp
tempfile.mkstemp = lambda *args, **options: made.append(1) or make(*args, **options)
try:
    assert test_sweep.played(2, chunk=4) == test_sweep.EXPECTED
    assert len(made) == {threads}, made
finally:
    stop.set()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_outcomes_are_the_same_on_dask() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `sweep` is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as local,
        distributed.Client(local) as client,
    ):
        client.run(_count_loads)
        assert played(client, chunk=3) == EXPECTED
        assert played(client.get_executor(), chunk=7) == EXPECTED
        loads = client.run(_loads).values()
        # Which worker plays what is up to Dask: where tasks come slowly, one worker may play all of them.
        assert max(loads) <= 2, "in each sweep, a worker reads the cluster once"
        assert sum(loads) >= 2


def _count_loads() -> None:
    """Runs in a worker: from now on, count how often a cluster is read."""
    from dra_alloc.sweeps import workers

    real = workers._Snapshot.load

    def load(snapshot: Any, pickled: bytes | None) -> dra.Cluster:
        workers._loads += 1
        return real(snapshot, pickled)

    workers._loads = 0
    workers._Snapshot.load = load


def _loads() -> int:
    from dra_alloc.sweeps import workers

    return workers._loads


def test_each_worker_reads_the_cluster_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dra_alloc.sweeps import workers

    reads = []
    real = pickle.loads
    monkeypatch.setattr(workers.pickle, "loads", lambda data: reads.append(len(data)) or real(data))
    assert played(InlineExecutor(), chunk=2) == EXPECTED
    assert len(reads) == 1


class InlineExecutor(Executor):
    """Any executor of `concurrent.futures` will do: this one works in the caller's thread."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        from concurrent.futures import Future

        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_workers_start_before_the_cluster_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dra_alloc.sweeps import workers

    monkeypatch.setattr(workers.tempfile, "tempdir", str(tmp_path))
    there: list[int] = []

    class Watching(InlineExecutor):
        _max_workers = 3

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            there.append(len(list(tmp_path.iterdir())))
            return super().submit(fn, *args, **kwargs)

    assert played(Watching(), chunk=20) == EXPECTED
    assert there == [0, 0, 0, 1, 1]


def test_results_are_streamed_and_an_endless_sweep_may_be_left() -> None:
    read = []

    def endless() -> Iterator[Scenario]:
        for number in itertools.count():
            read.append(number)
            yield Scenario(name=str(number), workload=[gpus("c", 1)])

    with ThreadPoolExecutor(2) as executor:
        found = sweep(endless(), executor, cluster=cluster(1), chunk=2)
        assert [next(found).name for _ in range(5)] == ["0", "1", "2", "3", "4"]
        assert len(read) < 50
        found.close()
    found = sweep(endless(), cluster=cluster(1))
    read.clear()
    next(found)
    assert read == [0], "without an executor nothing is done ahead"


def test_progress_is_told() -> None:
    told: list[tuple[int, int | None]] = []
    list(sweep(list(scenarios(3)), cluster=cluster(), progress=lambda *each: told.append(each)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    told.clear()
    list(sweep(scenarios(2), cluster=cluster(), progress=lambda *each: told.append(each)))
    assert told == [(1, None), (2, None)]


@pytest.mark.parametrize(
    ("executor", "error", "message"),
    [(0, ValueError, "at least one process"), ("many", TypeError, "a number of processes"), (-1, ValueError, "not -1")],
)
def test_what_is_no_executor_is_refused(executor: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        played(executor)


def test_chunks_are_positive() -> None:
    with pytest.raises(ValueError, match="chunk is at least 1"):
        sweep([], chunk=0)


def test_the_temporary_file_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dra_alloc.sweeps import workers

    monkeypatch.setattr(workers.tempfile, "tempdir", str(tmp_path))
    found = sweep(scenarios(), InlineExecutor(), cluster=cluster(), chunk=1)
    next(found)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    found.close()
    assert list(tmp_path.iterdir()) == []


# Going on after a crash


def test_a_sweep_goes_on_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "sweep.jsonl"
    broken = sweep(scenarios(), cluster=cluster(), resume=file)
    first = list(itertools.islice(broken, 11))
    broken.close()
    assert len(file.read_text(encoding="utf-8").splitlines()) == 12

    done: list[int] = []
    with ThreadPoolExecutor(2) as executor:
        again = played(executor, chunk=4, resume=file, progress=lambda number, _: done.append(number))
    assert again == EXPECTED
    assert again[:11] == first
    assert done[-1] == 40
    assert len(file.read_text(encoding="utf-8").splitlines()) == 41
    content = file.read_bytes()
    assert played(resume=file) == EXPECTED
    assert file.read_bytes() == content, "nothing was played again"


@pytest.mark.parametrize("cut", [1, 7, 90])
def test_a_line_that_a_crash_cut_off_is_played_again(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "sweep.jsonl"
    list(sweep(scenarios(9), cluster=cluster(), resume=file))
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    assert played(resume=file, count=9) == EXPECTED[:9]
    assert file.read_bytes() == whole


def test_changed_scenarios_are_played_anew(tmp_path: Path) -> None:
    file = tmp_path / "sweep.jsonl"
    one = Scenario(name="x", workload=[gpus("c", 1)])
    more = Scenario(name="x", workload=[gpus("c", 9)])
    assert [found.fits for found in sweep([one], cluster=cluster(), resume=file)] == [True]
    assert [found.fits for found in sweep([more, one], cluster=cluster(), resume=file)] == [False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format":"something"}\n', "is no file of a sweep"),
        ("[]\n", "is no file of a sweep"),
        ("kind: Node\n", "is damaged"),
        ('{"format":"dra-alloc sweep 1","cluster":"x","rules":"y"}\n', "another cluster"),
    ],
)
def test_files_of_something_else_are_left_alone(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "sweep.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(dra.DraError, match=message):
        played(resume=file)
    assert file.read_text(encoding="utf-8") == content


def test_a_file_belongs_to_one_cluster_and_one_set_of_rules(tmp_path: Path) -> None:
    file = tmp_path / "sweep.jsonl"
    list(sweep(scenarios(2), cluster=cluster(), resume=file))
    with pytest.raises(dra.DraError, match="another cluster"):
        list(sweep(scenarios(2), cluster=cluster(2), resume=file))
    with pytest.raises(dra.DraError, match="other features, budget or `explain`"):
        list(sweep(scenarios(2), cluster=cluster(), resume=file, explain=True))
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([lines[0], '{"scenario": 3}', lines[1]]) + "\n", encoding="utf-8")
    with pytest.raises(dra.DraError, match="is damaged"):
        list(sweep(scenarios(2), cluster=cluster(), resume=file))


# Tables


def test_outcomes_are_data() -> None:
    for outcome in EXPECTED:
        assert Outcome.from_dict(outcome.to_dict()) == outcome
        assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_outcomes_make_a_table() -> None:
    found = table(EXPECTED[:3])
    assert found.columns == (
        "name",
        "size",
        "odd",
        "placed",
        "unplaced",
        "nodes_used",
        "devices_used",
        "reason",
        "error",
    )
    assert list(found.rows())[2] == ("scenario-2", 2, "no", 2, 0, 1, 7, "", "")
    mixed = table([Outcome(name="a", labels={"x": 1}), Outcome(name="b", labels={"x": "many", "y": True})])
    assert mixed.to_csv().splitlines()[1:] == ["a,1,,0,0,0,0,,", "b,many,True,0,0,0,0,,"]
    clash = table([Outcome(name="a", labels={"placed": 3, "nodes": 4})])
    assert clash.to_dicts()[0] == {
        "name": "a",
        "label_placed": 3,
        "nodes": 4,
        "placed": 0,
        "unplaced": 0,
        "nodes_used": 0,
        "devices_used": 0,
        "reason": "",
        "error": "",
    }
    assert table([]).columns == ("name", "placed", "unplaced", "nodes_used", "devices_used", "reason", "error")
