"""Counters of hosts in the text format that Prometheus scrapes (version 0.0.4)."""

from typing import Any

_METRICS = [
    # name, type, help text, field of a host's record
    ("cairn_shard_up", "gauge", "Whether a host has the shard open.", "up"),
    ("cairn_shard_generation", "gauge", "The newest generation of the index that a host has open.", "generation"),
    ("cairn_shard_entries", "gauge", "Entries of the shard.", "entries"),
    ("cairn_shard_sequence", "gauge", "The sequence number of the database's state that the shard represents.", "sequence"),
    ("cairn_shard_batches_total", "counter", "Parts of batches that the shard executed.", "batches"),
    ("cairn_shard_queries_total", "counter", "Queries in these parts.", "queries"),
    ("cairn_shard_seconds_total", "counter", "Seconds spent executing them.", "seconds"),
    ("cairn_shard_failures_total", "counter", "Parts that failed.", "failures"),
]
_CLIENT = [
    ("cairn_client_batches_total", "Batches of this client.", "batches"),
    ("cairn_client_retried_total", "Parts of batches that were sent again because a host died.", "retried"),
    ("cairn_client_repeated_total", "Batches that were repeated on a newer generation.", "repeated"),
]


def text(directory: str, hosts: list[list[dict[str, Any]] | None], client: dict[str, int]) -> str:
    """Samples per shard and host, labeled with index, host, node and shard. A host that does not answer has only cairn_host_up."""
    index = _label(directory)
    lines = ["# HELP cairn_host_up Whether a host answers.", "# TYPE cairn_host_up gauge"]
    lines += [f'cairn_host_up{{index="{index}",host="{i}"}} {int(records is not None)}' for i, records in enumerate(hosts)]
    for name, kind, help_text, field in _METRICS:
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        for records in hosts:
            for record in records or []:
                labels = f'index="{index}",host="{record["host"]}",node="{_label(record["node"])}",shard="{record["shard"]}"'
                value = record[field]
                lines.append(f"{name}{{{labels}}} {value if isinstance(value, float) else int(value)}")
    for name, help_text, field in _CLIENT:
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} counter", f'{name}{{index="{index}"}} {client[field]}']
    return "\n".join(lines) + "\n"


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
