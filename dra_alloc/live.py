"""Reading the objects of a running cluster through its API server. Only lists are asked for; nothing is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from dra_alloc.errors import DraError, MissingExtra

if TYPE_CHECKING:
    from dra_alloc.codec import Loaded

__all__ = ["fetch"]

#: Objects in one answer of the server.
_PAGE: Final = 500

#: Of the core API: plural and the method of the client that lists it everywhere.
_CORE: Final = (("nodes", "list_node"), ("namespaces", "list_namespace"), ("pods", "list_pod_for_all_namespaces"))

#: Group, plural, and the versions in which it may be served, the preferred one first.
_GROUPS: Final = (
    ("resource.k8s.io", "deviceclasses", ("v1", "v1beta2", "v1beta1")),
    ("resource.k8s.io", "resourceslices", ("v1", "v1beta2", "v1beta1")),
    ("resource.k8s.io", "resourceclaims", ("v1", "v1beta2", "v1beta1")),
    ("resource.k8s.io", "resourceclaimtemplates", ("v1", "v1beta2", "v1beta1")),
    ("resource.k8s.io", "devicetaintrules", ("v1", "v1beta2", "v1alpha3")),
    ("scheduling.k8s.io", "podgroups", ("v1beta1", "v1alpha3")),
    ("scheduling.k8s.io", "workloads", ("v1beta1", "v1alpha3")),
)


def fetch(context: str | None = None, *, client: Any = None, strict: bool = False) -> Loaded:
    """All objects that the library reads, from the cluster of a kubeconfig context, or of a `kubernetes` ApiClient.

    context: default is the current one; inside of a pod without kubeconfig its service account is used. Kinds that the
    server does not serve are left out. strict: as of `dra_alloc.load`.

    Raises MissingExtra without the extra `live`, DraError if the server cannot be reached or refuses a list: the
    message names the resource, for which the verb `list` is needed.
    """
    from dra_alloc.codec import load

    return load(list(_objects(client if client is not None else _client(context))), strict=strict)


def _client(context: str | None) -> Any:
    try:
        from kubernetes import client, config
    except ModuleNotFoundError:
        raise MissingExtra(
            'a running cluster is read with the package kubernetes; install it with: pip install "dra-alloc[live]"'
        ) from None
    configure: Any = config
    settings = client.Configuration()
    # Where the kubeconfig is, is asked of the environment now: the client does so once, when it is imported.
    path = os.environ.get("KUBECONFIG") or None
    try:
        try:
            configure.load_kube_config(config_file=path, context=context, client_configuration=settings)
        except configure.ConfigException:
            if context is not None or "KUBERNETES_SERVICE_HOST" not in os.environ:
                raise
            configure.load_incluster_config(client_configuration=settings)
    except (configure.ConfigException, OSError) as error:
        reason = str(error).rstrip(".")
        raise DraError(f"no cluster to read: {reason}; give a context of your kubeconfig, or files with -f") from None
    return client.ApiClient(settings)


def _objects(client: Any) -> Iterator[dict[str, Any]]:
    from kubernetes.client import CoreV1Api, CustomObjectsApi

    core = CoreV1Api(client)
    for plural, method in _CORE:
        found = _list(plural, getattr(core, method))
        yield from found or ()
    custom = CustomObjectsApi(client)
    for group, plural, versions in _GROUPS:
        for version in versions:

            def ask(version: str = version, group: str = group, plural: str = plural, **options: Any) -> Any:
                return custom.list_cluster_custom_object(group, version, plural, **options)

            found = _list(f"{plural}.{group}", ask)
            if found is not None:
                yield from found
                break


def _list(what: str, ask: Callable[..., Any]) -> list[dict[str, Any]] | None:
    """All pages of a list; None if the server does not serve it."""
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    found: list[dict[str, Any]] = []
    token: str | None = None
    while True:
        options = {"limit": _PAGE, "_preload_content": False, **({"_continue": token} if token else {})}
        try:
            page = json.loads(ask(**options).data)
        except ApiException as error:
            if error.status == 404:
                return None
            if error.status == 410 and token:
                # The continuation has expired: the list is asked for anew.
                found, token = [], None
                continue
            needed = "; the verb list is needed for it" if error.status in (401, 403) else ""
            raise DraError(f"the server refuses to list {what}: {error.status} {error.reason}{needed}") from None
        except HTTPError as error:
            raise DraError(f"the server cannot be reached for {what}: {error}") from None
        except ValueError as error:
            raise DraError(f"the answer of the server for {what} is no JSON: {error}") from None
        found += _completed(page)
        token = page.get("metadata", {}).get("continue")
        if not token:
            return found


def _completed(page: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The items of a list, which have kind and version of the list."""
    kind = str(page.get("kind", "")).removesuffix("List")
    for item in page.get("items") or ():
        yield {"apiVersion": page.get("apiVersion"), "kind": kind, **item}
