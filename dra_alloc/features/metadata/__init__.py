"""Metadata of devices in containers (KEP-5304): the files that drivers write, and reading them.

No gate: drivers opt in. The protocol is in the path, the content and read-only access; how files get into a container
is up to the driver, here by CDI.
"""

from __future__ import annotations

from dra_alloc.features.metadata.objects import (
    CONTAINER_ROOT,
    POD_CLAIM_NAME,
    VERSIONS,
    DeviceMetadata,
    MetadataDevice,
    MetadataFile,
    MetadataRequest,
    container_files,
    container_path,
    encode_stream,
    pod_claim_name,
    published_devices,
    published_metadata,
)
from dra_alloc.features.metadata.reading import merge, read_claim, read_file, read_stream, read_template_claim
from dra_alloc.features.metadata.rules import metadata_problems
from dra_alloc.features.metadata.writing import CDI_DIR, CDI_VERSION, MetadataWriter, cdi_id, cdi_spec

__all__ = [
    "CDI_DIR",
    "CDI_VERSION",
    "CONTAINER_ROOT",
    "POD_CLAIM_NAME",
    "VERSIONS",
    "DeviceMetadata",
    "MetadataDevice",
    "MetadataFile",
    "MetadataRequest",
    "MetadataWriter",
    "cdi_id",
    "cdi_spec",
    "container_files",
    "container_path",
    "encode_stream",
    "merge",
    "metadata_problems",
    "pod_claim_name",
    "published_devices",
    "published_metadata",
    "read_claim",
    "read_file",
    "read_stream",
    "read_template_claim",
]
