"""The inner loops over pending pods: what of a pod decides about waking it, and what its claims demand."""

cimport cython
from cpython.ref cimport PyObject

from sys import intern

from dra_alloc._fields cimport Field, field_of, read

from dra_alloc.api import (
    Container,
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    PodSpec,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceRequirements,
)

#: The annotation of a claim made from a template that says which claim of the pod it is.
CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject*)

cdef str _GROUP_API = "scheduling.k8s.io"
cdef object _Claim = ResourceClaim

cdef Field POD_METADATA = field_of(Pod, "metadata")
cdef Field POD_SPEC = field_of(Pod, "spec")
cdef Field POD_STATUS = field_of(Pod, "status")
cdef Field NAME = field_of(ObjectMeta, "name")
cdef Field NAMESPACE = field_of(ObjectMeta, "namespace")
cdef Field DELETION = field_of(ObjectMeta, "deletion_timestamp")
cdef Field RESOURCE_CLAIMS = field_of(PodSpec, "resource_claims")
cdef Field SCHEDULING_GROUP = field_of(PodSpec, "scheduling_group")
cdef Field NODE_SELECTOR = field_of(PodSpec, "node_selector")
cdef Field AFFINITY = field_of(PodSpec, "affinity")
cdef Field CONTAINERS = field_of(PodSpec, "containers")
cdef Field INIT_CONTAINERS = field_of(PodSpec, "init_containers")
cdef Field CONTAINER_RESOURCES = field_of(Container, "resources")
cdef Field REQUESTS = field_of(ResourceRequirements, "requests")
cdef Field LIMITS = field_of(ResourceRequirements, "limits")
cdef Field ENTRY_NAME = field_of(PodResourceClaim, "name")
cdef Field ENTRY_CLAIM = field_of(PodResourceClaim, "resource_claim_name")
cdef Field ENTRY_TEMPLATE = field_of(PodResourceClaim, "resource_claim_template_name")
cdef Field CLAIM_METADATA = field_of(ResourceClaim, "metadata")
cdef Field CLAIM_SPEC = field_of(ResourceClaim, "spec")
cdef Field CLAIM_STATUS = field_of(ResourceClaim, "status")
cdef Field DEVICES = field_of(ResourceClaimSpec, "devices")
cdef Field DEVICE_REQUESTS = field_of(DeviceClaim, "requests")
cdef Field REQUEST_NAME = field_of(DeviceRequest, "name")
cdef Field EXACTLY = field_of(DeviceRequest, "exactly")
cdef Field FIRST_AVAILABLE = field_of(DeviceRequest, "first_available")
cdef Field CLASS_NAME = field_of(ExactDeviceRequest, "device_class_name")
cdef Field MODE = field_of(ExactDeviceRequest, "allocation_mode")
cdef Field ADMIN_ACCESS = field_of(ExactDeviceRequest, "admin_access")
cdef Field TOLERATIONS = field_of(ExactDeviceRequest, "tolerations")
cdef Field DERIVED = field_of(ExactDeviceRequest, "derived_attributes")
cdef Field CAPACITY = field_of(ExactDeviceRequest, "capacity")
cdef Field SELECTORS = field_of(ExactDeviceRequest, "selectors")
cdef Field CEL = field_of(DeviceSelector, "cel")
cdef Field EXPRESSION = field_of(CELDeviceSelector, "expression")


@cython.final
@cython.no_gc
cdef class Waiting:
    """A pod that waits, reduced to what decides about waking it.

    key: as in the cluster. namespace: "default" for none. uid: its UID, if a claim was or will be made for it. group:
    its PodGroup or "". resources: names of its extended resources. choosy: whether labels of nodes matter to it.
    failed: whether its attempt ended with an error. blocking: see requeue/reasons.py; None if nothing is known.

    It holds nothing but strings, in tuples, so that no cycle can go through it: the collector need not know of it.
    """

    cdef readonly str key
    cdef readonly str namespace
    cdef readonly object uid
    cdef readonly object group
    cdef readonly tuple resources
    cdef readonly bint choosy
    cdef public bint failed
    cdef public object blocking
    cdef tuple _claims  # of each claim three entries: see `claims`

    def __init__(self, pod):
        metadata, spec, status = read(&POD_METADATA, pod), read(&POD_SPEC, pod), read(&POD_STATUS, pod)
        cdef list claims = []
        cdef dict made = None
        cdef bint for_pod
        cdef str key
        namespace, own_name = read(&NAMESPACE, metadata), read(&NAME, metadata)
        self.key = f"{namespace}/{own_name}" if namespace else str(own_name)
        # One object for all pods of a namespace, of a template and so on: 100,000 of them add up.
        self.namespace = intern(namespace or "default")
        special = None
        if status is not None:
            special = status.extended_resource_claim_status
            if status.resource_claim_statuses:
                made = {each.name: each.resource_claim_name for each in status.resource_claim_statuses}
        for_pod = special is not None
        for entry in read(&RESOURCE_CLAIMS, spec):
            entry_name, name = read(&ENTRY_NAME, entry), read(&ENTRY_CLAIM, entry)
            template = ""
            if not name:
                name = "" if made is None else made.get(entry_name, "")
                if name is None:  # the controller has noted that no claim is needed
                    continue
                template = intern(read(&ENTRY_TEMPLATE, entry) or "")
                for_pod = for_pod or bool(template)
            key = f"{self.namespace}/{name}" if name else ""
            claims.append(intern(entry_name))
            claims.append(key)
            claims.append(template)
        if special is not None:
            claims += ("", f"{self.namespace}/{special.resource_claim_name}", "")
        self._claims = tuple(claims)
        if claims:
            PyObject_GC_UnTrack(<PyObject*>self._claims)  # as the collector would, having looked at it
        # Who owns a claim matters to claims that were made for the pod.
        self.uid = (metadata.uid or "") if for_pod else ""
        scheduling = read(&SCHEDULING_GROUP, spec)
        self.group = "" if scheduling is None else scheduling.pod_group_name or ""
        self.resources = _extended_resources(pod, spec) if special is None else ()
        self.choosy = bool(read(&NODE_SELECTOR, spec)) or read(&AFFINITY, spec) is not None
        self.failed = False
        self.blocking = None

    @property
    def name(self):
        """Name of the pod."""
        return self.key.rpartition("/")[2]

    @property
    def claims(self):
        """Of each claim its name in the pod, its key or "", and its template or "".

        The claim of a template is empty as long as the pod does not know it.
        """
        return list(zip(self._claims[::3], self._claims[1::3], self._claims[2::3]))

    @property
    def templates(self):
        """The templates of the claims that are still to be made."""
        return [self._claims[i + 2] for i in range(0, len(self._claims), 3) if not self._claims[i + 1]]

    def is_same(self, Waiting other):
        """Whether a pod has the same claims and resources."""
        return (
            self.uid == other.uid
            and self._claims == other._claims
            and self.group == other.group
            and self.resources == other.resources
        )

    cpdef bint owns(self, claim):
        """Whether a claim was made for the pod, or for its PodGroup."""
        owner = claim_owner(claim)
        if owner is None or (claim.metadata.namespace or "default") != self.namespace:
            return False
        kind, name, uid = owner
        if kind == "PodGroup":
            return name == self.group
        return name == self.name and (not self.uid or not uid or uid == self.uid)

    def made_for(self, claim, entry):
        """Whether a claim was made for one of the claims of the pod."""
        return claim.metadata.annotations.get(CLAIM_NAME) == entry and self.owns(claim)


cpdef claim_owner(claim):
    """Kind, name and UID of the pod or PodGroup that a claim was made for."""
    for reference in claim.metadata.owner_references:
        if reference.controller:
            api = reference.api_version.partition("/")[0]
            if reference.kind == "Pod" or (reference.kind == "PodGroup" and api == _GROUP_API):
                return reference.kind, reference.name, reference.uid
            return None
    return None


cdef tuple _extended_resources(pod, spec):
    for containers in (read(&CONTAINERS, spec), read(&INIT_CONTAINERS, spec)):
        for container in containers:
            resources = read(&CONTAINER_RESOURCES, container)
            for names in (read(&REQUESTS, resources), read(&LIMITS, resources)):
                for name in names:
                    if "/" in name:
                        from dra_alloc.features.extended import totals

                        return tuple(totals(pod))
    return ()


cdef class PodReader:
    """Finds the keys of pods, with what the claims of the same form demand remembered.

    The form of a claim is what decides about its demand. The methods that are not defined here are those of
    `requeue.demands.Demands`; they are called where nothing is remembered.
    """

    cdef object _get
    cdef dict _demands  # by form of a claim
    cdef dict _shared  # by all that decides about them: keys that pods have in common

    def __init__(self, get):
        self._get = get
        self._demands = {}
        self._shared = {}

    def __len__(self):
        """How much is remembered."""
        return len(self._demands) + len(self._shared)

    def forget(self):
        """Remember nothing any more."""
        self._demands = {}
        self._shared = {}

    def keys(self, Waiting pod):
        """All that the pod is to be found by: the keys of its own, and those that other pods share."""
        cdef list own = []
        cdef list parts = []
        cdef tuple templates = ()
        cdef Py_ssize_t i
        cdef str key
        for i in range(0, len(pod._claims), 3):
            key = pod._claims[i + 1]
            if not key:
                key = f"owner {pod.namespace}/{pod.name}"
                templates = tuple(pod.templates)
            if i == 0 or key not in own:
                own.append(key)
            if parts is not None:
                source = self._source(pod, i, None)
                if source is None:
                    parts = None
                else:
                    parts.append(self._part(source))
        if pod.resources:
            key = f"owner {pod.namespace}/{pod.name}"  # of the claim made for them
            if key not in own:
                own.append(key)
        if pod.blocking is not None:
            return own, self._combine(pod, parts)
        known = (
            pod.namespace,
            pod.group,
            pod.resources,
            pod.choosy,
            pod.failed,
            templates,
            None if parts is None else tuple(parts),
        )
        shared = self._shared.get(known)
        if shared is None:
            shared = self._shared[known] = self._combine(pod, parts)
        return own, shared

    def resolve(self, Waiting pod, overlay=None):
        """The claims of a pod, or the templates that they will be made from; None if one is missing or going."""
        cdef list found = []
        cdef Py_ssize_t i
        for i in range(0, len(pod._claims), 3):
            source = self._source(pod, i, overlay)
            if source is None:
                return None
            found.append(source)
        return found

    cdef object _source(self, Waiting pod, Py_ssize_t i, overlay):
        entry, name, template = pod._claims[i], pod._claims[i + 1], pod._claims[i + 2]
        if not name:
            source = self._made(pod, entry, template, overlay)
        else:
            if overlay is not None and overlay.key == name:
                source = overlay.claim
            else:
                source = self._get("ResourceClaim", name)
            if source is not None and (template or not entry) and not pod.owns(source):
                return None
        if source is None or read(&DELETION, read(&CLAIM_METADATA, source)) is not None:
            return None
        return source

    cdef object _part(self, source):
        """What a claim or template demands; for an allocated claim the key of its place, or None."""
        spec = read(&CLAIM_SPEC, source)
        if isinstance(source, _Claim):
            status = read(&CLAIM_STATUS, source)
            if status is not None:
                allocation = status.allocation
                if allocation is not None:
                    return None if allocation.node_selector is None else self._place(allocation.node_selector)
        else:
            spec = spec.spec
        form = form_of(spec)
        demand = self._demands.get(form)
        if demand is None:
            demand = self._demands[form] = self._compile(spec)
        return demand


cdef tuple form_of(spec):
    """What decides about the wants of a claim, cheap to compare: claims made from one template are equal in it.

    It is made for every pod, so that the claims of most are no more than two tuples.
    """
    requests = read(&DEVICE_REQUESTS, read(&DEVICES, spec))
    if len(requests) == 1:
        return _form_of_request(requests[0])
    return tuple([_form_of_request(request) for request in requests])


cdef tuple _form_of_request(request):
    """The name of a request, and what its alternatives ask for."""
    name, exactly, first_available = read(&REQUEST_NAME, request), read(&EXACTLY, request), read(&FIRST_AVAILABLE, request)
    if first_available:
        return (name, *[_form_of_body(body, None) for body in first_available])
    if exactly is None:
        return (name,)
    return name, _form_of_body(exactly, read(&ADMIN_ACCESS, exactly))


cdef tuple _form_of_body(body, admin):
    capacity, selectors = read(&CAPACITY, body), read(&SELECTORS, body)
    cdef object expressions
    if len(selectors) == 1:
        expressions = _expression(selectors[0])
    else:
        expressions = tuple([_expression(selector) for selector in selectors])
    return (
        read(&CLASS_NAME, body),
        read(&MODE, body),
        admin,
        read(&TOLERATIONS, body),
        read(&DERIVED, body),
        None if capacity is None else tuple(capacity.requests.items()),
        expressions,
    )


cdef object _expression(selector):
    cel = read(&CEL, selector)
    return None if cel is None else read(&EXPRESSION, cel)
