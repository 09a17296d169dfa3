"""Measure the scheduler, or run it.

python -m examples.scheduler claim-template 5000pods_500nodes    against a fake API server in a process of its own
python -m examples.scheduler --server http://127.0.0.1:8001      on the cluster behind `kubectl proxy`
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from examples.scheduler.client import Client
from examples.scheduler.scheduler import Scheduler
from examples.scheduler.workload import read_workload

SCHEDULER = "dra-example"


class Counter:
    """Counts pods, and tells when there are enough."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def add(self, _key: str) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait_for(self, count: int, timeout: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.count >= count, timeout):
                raise SystemExit(f"only {self.count} of {count} pods were bound within {timeout:.0f} s")


def create(client: Client, objects: Iterable[dict[str, object]]) -> None:
    """Create objects, several at a time."""
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(client.create, objects):
            pass


def measure(url: str, name: str, size_name: str, timeout: float = 600.0) -> float:
    """Run a workload on an empty server; gives the pods bound per second in the measured part."""
    workload = read_workload(name)
    if size_name not in workload.sizes:
        raise SystemExit(f"there is no size {size_name!r}; there are {', '.join(workload.sizes)}")
    size = workload.sizes[size_name]
    client = Client(url)
    create(client, workload.cluster(size.nodes))
    counter = Counter()
    scheduler = Scheduler(client, name=SCHEDULER, on_bound=counter.add)
    thread = threading.Thread(target=scheduler.run, daemon=True)
    thread.start()
    create(client, workload.pods(0, size.init_pods, SCHEDULER))
    counter.wait_for(size.init_pods, timeout)
    start = time.perf_counter()
    create(client, workload.pods(size.init_pods, size.measure_pods, SCHEDULER))
    counter.wait_for(size.init_pods + size.measure_pods, timeout)
    rate = size.measure_pods / (time.perf_counter() - start)
    scheduler.stop()
    thread.join()
    return rate


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--server"]:
        print("scheduling pods with schedulerName", SCHEDULER)
        Scheduler(Client(arguments[1]), name=SCHEDULER, on_bound=lambda key: print("bound", key)).run()
        return
    name, size = arguments if len(arguments) == 2 else ("claim-template", "small")
    server = subprocess.Popen(
        [sys.executable, "-m", "examples.scheduler.fakeserver"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        rate = measure(url, name, size)
        print(f"{name} {size}: {rate:.0f} pods/s")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
