"""Writing metadata files and the CDI specifications that mount them: the part of a driver on a node (KEP-5304)."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from dra_alloc.api import ObjectMeta, ResourceClaim
from dra_alloc.codec.validation import Problem
from dra_alloc.codec.validation import _formats as formats
from dra_alloc.codec.validation._problems import at
from dra_alloc.errors import DecodeError, ValidationError
from dra_alloc.features._objects import refused
from dra_alloc.features.metadata.objects import (
    POD_CLAIM_NAME,
    VERSIONS,
    DeviceMetadata,
    MetadataDevice,
    MetadataRequest,
    base_request,
    container_path,
    encode_stream,
    pod_claim_name,
)
from dra_alloc.features.metadata.reading import read_file

__all__ = ["CDI_DIR", "CDI_VERSION", "MetadataWriter", "cdi_id", "cdi_spec"]

#: Where container runtimes look for CDI specifications.
CDI_DIR = Path("/var/run/cdi")
#: The version of the CDI specification that is written: the first in which names of devices may begin with a digit.
CDI_VERSION = "0.5.0"

_FOLDER = "dra-device-metadata"
_FILE = "metadata.json"

#: What CDI allows as vendor, the domain of a kind.
_CDI_VENDOR = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
#: A UID as a part of names of files and CDI devices, in which `_` ends it.
_UID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


def cdi_id(driver: str, claim_uid: str, request: str) -> str:
    """The CDI device that mounts the file of a request (base name); it goes with the first device of the request."""
    return f"{driver}/metadata={claim_uid}_{request}"


def cdi_spec(driver: str, claim_uid: str, request: str, host_path: Path, target: PurePosixPath) -> dict[str, Any]:
    """The CDI specification with one device that mounts the file read-only at `target` in the container."""
    mount = {"hostPath": str(host_path), "containerPath": str(target), "options": ["ro", "bind"]}
    return {
        "cdiVersion": CDI_VERSION,
        "kind": f"{driver}/metadata",
        "devices": [{"name": f"{claim_uid}_{request}", "containerEdits": {"mounts": [mount]}}],
    }


def _absolute(path: str | Path) -> Path:
    """CDI takes no other paths, since the container runtime has a folder of its own."""
    return Path(path).absolute()


def _as_tuple(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(versions)


@attrs.frozen
class MetadataWriter:
    """Writes the metadata of one driver's devices on one node.

    driver: its name. data_dir: the folder of its plugin (`<kubelet>/plugins/<driver>`). versions: what each file
    contains, newest first by convention, of `VERSIONS`; there is no default, since the readers in containers decide.
    cdi_dir: where the container runtime looks for CDI specifications.

    Raises ValidationError for a driver name that CDI cannot hold, and for no or unknown versions. Methods raise OSError
    where the file system does.
    """

    driver: str
    data_dir: Path = attrs.field(converter=_absolute)
    versions: tuple[str, ...] = attrs.field(converter=_as_tuple)
    cdi_dir: Path = attrs.field(default=CDI_DIR, converter=Path)

    def __attrs_post_init__(self) -> None:
        problems = list(at("driver", formats.driver_name(self.driver)))
        if not problems and not _CDI_VENDOR.fullmatch(self.driver):
            problems.append(Problem("driver", f"{self.driver!r} is no CDI vendor", "it must begin with a letter"))
        hint = f"some of {', '.join(VERSIONS)}"
        if not self.versions:
            problems.append(Problem("versions", "there is none", hint))
        problems += [
            Problem(f"versions[{index}]", f"{version!r} is not known", hint)
            for index, version in enumerate(self.versions)
            if version not in VERSIONS
        ]
        _raise_for(problems)

    def host_path(self, namespace: str, claim: str, request: str) -> Path:
        """Where the file of a request is on the node."""
        return self._folder(namespace, claim) / base_request(request) / _FILE

    def prepare(self, claim: ResourceClaim, devices: Mapping[str, Sequence[MetadataDevice]]) -> dict[str, str]:
        """Write the files for a claim that is being prepared.

        devices: by `request` or `request/subrequest`, as in the allocation results; requests without devices get no
        file. Returns the CDI id by base request, to be returned with the first device of each.

        A new file appears whole, with generation 1. Prepared again (the kubelet or the driver restarted), a file of
        the same claim is kept as it is or, if the devices changed, updated in place with the next generation.
        Should anything fail, what this call created is removed, and the exception goes on: the driver may still
        prepare the claim, only without metadata. Raises ValidationError for names that make no path.
        """
        self._check(claim, devices)
        ids: dict[str, str] = {}
        created: list[Path] = []
        try:
            for request, items in devices.items():
                if items:
                    ids[base_request(request)] = self._prepare_request(claim, request, items, created)
        except BaseException:
            for path in reversed(created):
                path.unlink(missing_ok=True)
            raise
        return ids

    def update(
        self, namespace: str, claim: str, claim_uid: str, request: str, devices: Sequence[MetadataDevice]
    ) -> DeviceMetadata:
        """Give a request of a prepared claim new devices data (say, addresses that are known only now).

        The file is rewritten in place, since a container has this very file mounted; its generation grows by one.
        Returns what it holds now. Raises ValidationError if the request was not prepared, or for another claim of that
        name.
        """
        self._check_parts({"namespace": namespace, "name": claim, "uid": claim_uid}, [request])
        path = self.host_path(namespace, claim, request)
        old = self._stored(path)
        if old is None or old.metadata.uid != claim_uid:
            raise refused(
                f"ResourceClaim {namespace}/{claim}",
                f"request {request!r} is not found in the prepared claim",
                "prepare it before it is updated",
            )
        return self._rewrite(path, old, request, devices)

    def cleanup(self, namespace: str, claim: str, claim_uid: str) -> None:
        """Remove all files of a claim after it was unprepared; files that are gone already are no error."""
        self._check_parts({"namespace": namespace, "name": claim, "uid": claim_uid})
        folder = self._folder(namespace, claim)
        if folder.exists():
            shutil.rmtree(folder)
        prefix = f"{self.driver}_metadata_{claim_uid}_"
        if self.cdi_dir.is_dir():
            for path in sorted(self.cdi_dir.iterdir()):
                if path.name.startswith(prefix) and path.suffix == ".json":
                    path.unlink(missing_ok=True)

    def _folder(self, namespace: str, claim: str) -> Path:
        return self.data_dir / _FOLDER / f"{namespace}_{claim}"

    def _prepare_request(
        self, claim: ResourceClaim, request: str, devices: Sequence[MetadataDevice], created: list[Path]
    ) -> str:
        meta, base = claim.metadata, base_request(request)
        uid = meta.uid or ""
        path = self.host_path(meta.namespace, meta.name, base)
        old = self._stored(path)
        if old is None or old.metadata.uid != uid:
            fresh = DeviceMetadata(
                metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=uid, generation=1),
                pod_claim_name=pod_claim_name(claim),
                requests=(MetadataRequest(name=request, devices=tuple(devices)),),
            )
            _write_new(path, encode_stream(fresh, self.versions))
            created.append(path)
        elif old.requests != (MetadataRequest(name=request, devices=tuple(devices)),):
            self._rewrite(path, old, request, devices)
        spec = cdi_spec(self.driver, uid, base, path, container_path(claim, base, self.driver))
        target = self.cdi_dir / f"{self.driver}_metadata_{uid}_{base}.json"
        _write_new(target, json.dumps(spec, indent=2).encode() + b"\n")
        created.append(target)
        return cdi_id(self.driver, uid, base)

    def _rewrite(
        self, path: Path, old: DeviceMetadata, request: str, devices: Sequence[MetadataDevice]
    ) -> DeviceMetadata:
        known = next((item.name for item in old.requests), request)
        name = request if "/" in request else known
        new = attrs.evolve(
            old,
            metadata=attrs.evolve(old.metadata, generation=(old.metadata.generation or 0) + 1),
            requests=(MetadataRequest(name=name, devices=tuple(devices)),),
        )
        _write_in_place(path, encode_stream(new, self.versions))
        return new

    def _stored(self, path: Path) -> DeviceMetadata | None:
        """What a file holds now; None if there is none or what is there was not written by this."""
        if not path.exists():
            return None
        try:
            return read_file(path)
        except DecodeError:
            return None

    def _check(self, claim: ResourceClaim, devices: Iterable[str]) -> None:
        meta = claim.metadata
        self._check_parts({"namespace": meta.namespace, "name": meta.name, "uid": meta.uid or ""}, devices)
        if name := pod_claim_name(claim):
            _raise_for(at(f"metadata.annotations[{POD_CLAIM_NAME}]", formats.label(name)))

    def _check_parts(self, parts: Mapping[str, str], requests: Iterable[str] = ()) -> None:
        """Names become parts of paths and of a CDI name: nothing else may get there."""
        problems = [
            *at("metadata.namespace", formats.label(parts["namespace"])),
            *at("metadata.name", formats.subdomain(parts["name"])),
        ]
        if not _UID.fullmatch(parts["uid"]):
            problems.append(Problem("metadata.uid", f"{parts['uid'][:60]!r} is no UID", "the UID of the claim"))
        seen: set[str] = set()
        for request in requests:
            base = base_request(request)
            problems += at(f"devices[{request}]", formats.label(base))
            if base in seen:
                problems.append(Problem(f"devices[{request}]", f"request {base!r} is there twice", "one alternative"))
            seen.add(base)
        _raise_for(problems)


def _raise_for(problems: Iterable[Problem]) -> None:
    if found := tuple(problems):
        raise ValidationError(found)


def _write_new(path: Path, data: bytes) -> None:
    """A file that appears whole or not at all, readable by everyone."""
    _make_folder(path.parent)
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write_in_place(path: Path, data: bytes) -> None:
    """New content in the same inode, which a container has mounted: renaming would leave it with the old one.

    The content goes in with one write, padded with blank lines up to the old length, and only then the file is cut, so
    that a reader never sees the rest of the old content behind the new: blank lines mean nothing in a stream of JSON.
    """
    with path.open("r+b", buffering=0) as file:
        padded = data.ljust(os.fstat(file.fileno()).st_size, b"\n")
        written = 0
        while written < len(padded):
            written += file.write(padded[written:]) or 0
    os.truncate(path, len(data))


def _make_folder(path: Path) -> None:
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
