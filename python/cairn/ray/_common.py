"""Code that the driver and the workers share."""

import os
import platform
from typing import Any

import cairn
import ray
from cairn.errors import Error, FailedPrecondition
from ray.exceptions import RayTaskError

# Both sides must have the same version: they exchange arguments and results, and share files.
VERSION: str = cairn.__version__

# The namespace of the hosts' actors.
NAMESPACE = "cairn"


def check_version(expected: str) -> None:
    """FailedPrecondition, naming this host, if it has another version than its caller."""
    if expected != cairn.__version__:
        raise FailedPrecondition(
            f"the worker on host '{platform.node()}' has cairn {cairn.__version__}, and its caller {expected}: "
            "install one version on all hosts"
        )


def cause_of(error: RayTaskError) -> BaseException:
    """The error of a task for its caller."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Error) else error


def alive_nodes() -> list[str]:
    """The ids of the cluster's nodes, in a stable order."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return sorted(node["NodeID"] for node in nodes if node["Alive"])


def cores() -> int:
    """The number of CPUs of the whole cluster."""
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(1, int(resources.get("CPU", 1)))


def memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
