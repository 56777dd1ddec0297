"""The actors that serve an index, for one client."""

import contextlib
import time
from typing import Any

import ray
from cairn.errors import FailedPrecondition, Unavailable
from cairn.ray import _common
from cairn.ray._host import Host, Layout
from ray.exceptions import ActorDiedError, GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


def _name(directory: str, number: int) -> str:
    return f"{directory}#{number}"


def layout_of(directory: str, timeout: float) -> Layout | None:
    """The layout in which an index is served; None if it is not served."""
    try:
        actor = ray.get_actor(_name(directory, 0), namespace=_common.NAMESPACE)
    except ValueError:
        return None
    deadline = time.monotonic() + timeout
    while True:
        try:
            described: Any = ray.get(actor.describe.remote(), timeout=max(0.1, deadline - time.monotonic()))
            layout: Layout = described["layout"]
            return layout
        except (RayActorError, GetTimeoutError) as error:
            if time.monotonic() > deadline:
                raise Unavailable(f"host 0 of '{directory}' does not answer: {error}") from error
            time.sleep(0.1)


class Hosts:
    """Starts missing actors, and restarts those that Ray has given up. Thread-safe."""

    def __init__(self, directory: str, layout: Layout, timeout: float, poll: float, actor_options: dict[str, Any], options: dict[str, Any]) -> None:
        self._directory, self._layout, self._timeout, self._poll = directory, layout, timeout, poll
        self._actor_options, self._options = actor_options, options
        nodes = _common.alive_nodes()
        self._places = [nodes[i % len(nodes)] for i in range(layout.hosts)]
        self.actors = [self._start(i) for i in range(layout.hosts)]

    def _start(self, number: int) -> Any:
        return (
            ray.remote(Host)
            .options(
                name=_name(self._directory, number),
                namespace=_common.NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                max_restarts=-1,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(self._places[number], soft=True),
                **self._actor_options,
            )
            .remote(self._directory, number, self._layout, self._poll, self._options)
        )

    def actor(self, number: int) -> Any:
        return self.actors[number]

    def restart(self, number: int) -> None:
        """Restarts a host that Ray has given up."""
        with contextlib.suppress(RayError, ValueError):
            self.actors[number] = self._start(number)

    def check_versions(self) -> None:
        for description in self.ask_all("describe"):
            if description is not None and description["version"] != _common.VERSION:
                raise FailedPrecondition(
                    f"host {description['number']} ('{description['node']}') has cairn {description['version']}, and this client "
                    f"{_common.VERSION}: install one version on all hosts, and shut the index down"
                )

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """The results of a method on each host; None for hosts that do not answer in time."""
        deadline = time.monotonic() + self._timeout
        results: dict[int, Any] = {}
        while True:
            calls = {i: getattr(self.actor(i), method).remote(*arguments) for i in range(self._layout.hosts) if i not in results}
            for i, call in calls.items():
                try:
                    results[i] = ray.get(call, timeout=max(0.1, deadline - time.monotonic()))
                except RayTaskError as error:
                    raise _common.cause_of(error) from None
                except ActorDiedError:
                    self.restart(i)
                except RayError:
                    pass
            if len(results) == self._layout.hosts or time.monotonic() > deadline:
                return [results.get(i) for i in range(self._layout.hosts)]
            time.sleep(0.1)

    def shutdown(self) -> None:
        for actor in self.actors:
            ray.kill(actor, no_restart=True)
