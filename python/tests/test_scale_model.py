"""benchmarks/scale_model.py, compared with counting, and with its measured parts."""

import importlib.util
import json
import pathlib
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).parent.parent / "benchmarks" / "scale_model.py"


@pytest.fixture(scope="module")
def model() -> Any:
    spec = importlib.util.spec_from_file_location("scale_model", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scale_model"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def parts(model: Any) -> Any:
    calls = np.sort(np.random.default_rng(0).lognormal(-7, 0.5, 501)).tolist()
    return model.Parts(1e-4, 2e-8, 2e-4, 1e-10, {"1": 1e-6, "1000": 2e-5, "1000000": 2e-2}, calls)


def test_fan_out_is_that_of_keys_thrown_at_hosts(model: Any) -> None:
    rng = np.random.default_rng(1)
    for hosts, batch in ((1, 5), (2, 1), (10, 7), (100, 100), (1000, 50)):
        counted = np.mean([len(np.unique(rng.integers(0, hosts, batch))) for _ in range(2000)])
        assert model.fan_out(hosts, batch, "key_range") == pytest.approx(counted, rel=0.02)
        assert model.fan_out(hosts, batch, "source") == hosts


def test_the_slowest_of_many_is_that_of_many_draws(model: Any) -> None:
    rng = np.random.default_rng(2)
    sample = rng.lognormal(0, 1, 5000)
    for number in (1, 10, 100):
        thrown = rng.choice(sample, (5000, number)).max(axis=1)
        made = model.slowest_of(sample, number, rng.random(5000))
        for q in (0.5, 0.9):
            assert np.quantile(made, q) == pytest.approx(np.quantile(thrown, q), rel=0.1)


def test_search_times_are_the_measured_ones_and_between(parts: Any) -> None:
    assert parts.search_time(1) == pytest.approx(1e-6) and parts.search_time(1000) == pytest.approx(2e-5)
    assert 1e-6 < parts.search_time(30) < 2e-5
    assert parts.search_time(2_000_000) == pytest.approx(4e-2) and parts.search_time(0) == 0


def test_one_quiet_host_takes_the_sum_of_the_parts(model: Any, parts: Any) -> None:
    found = model.predict(parts, 1, 1000, load=0)
    size = parts.key_bytes + parts.answer_bytes
    fixed = parts.client_fixed + 1000 * parts.client_query + parts.client_call + 2000 * size * parts.network_byte
    fixed += parts.search_time(1000) + 1000 * size * parts.byte + parts.network_trip
    assert found.quiet[0] == pytest.approx(fixed + np.median(parts.calls), rel=0.02)
    assert found.quiet == pytest.approx(found.loaded, rel=0.05)
    assert found.fan_out == 1


def test_more_hosts_answer_more_and_have_longer_tails(model: Any, parts: Any) -> None:
    few, many = model.predict(parts, 10, 100_000), model.predict(parts, 1000, 100_000)
    assert many.host_rate >= few.host_rate and many.quiet[0] > 0 and many.fan_out > few.fan_out
    single = [model.predict(parts, hosts, 1) for hosts in (10, 1000)]
    # A single key reaches one host, however many there are.
    assert single[0].quiet[0] == pytest.approx(single[1].quiet[0], rel=0.05)
    assert single[1].host_rate == pytest.approx(100 * single[0].host_rate)
    busy = [model.predict(parts, 100, 100_000, load=load).loaded[1] for load in (0.0, 0.5, 0.9)]
    assert busy == sorted(busy)
    # Sharded by source, capacity grows with the number of hosts, but throughput does not.
    sources = [model.predict(parts, hosts, 1000, mode="source").host_rate for hosts in (10, 1000)]
    assert sources[0] == pytest.approx(sources[1])
    for bad in ({"hosts": 0}, {"batch": 0}, {"load": 1.0}, {"mode": "other"}):
        with pytest.raises(ValueError, match="expected"):
            model.predict(parts, **({"hosts": 1, "batch": 1} | bad))


def test_the_program_prints_a_table(parts: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "parts.json").write_text(json.dumps(asdict(parts)))
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM), "predict", str(tmp_path / "parts.json"), "--hosts=10,1000"], check=True, capture_output=True, text=True
    )
    assert len(done.stdout.splitlines()) == 2 + 2 * 4 and done.stdout.startswith("| hosts | batch |")
