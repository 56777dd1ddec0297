// A base of 10M rows (CAIRN_BENCH_ROWS) with 16-byte primary keys, one entry each, and a delta.
//
//   Delta/apply/<key>/<primary keys>/batch:<rows>[/<variant>]: updates of random rows, each with a
//     new random key, until 1% of the base's rows are changed, one thread. Primary keys are
//     `digits` (decimal numbers) or `random`. Variants: `same` (the key stays), `insert` (new
//     rows), `again` (the rows are in the delta already).
//
//   Delta/<operation>/<key>/commit:<rows>/batch:<queries>/keys:<keys>: a base with 1% of its rows
//     changed, in updates of <rows> rows, compared with the base without a delta (base_ns, and
//     `ratio`, the median of adjacent ratios). `first`, `contains` and `find` search keys of the
//     index, `count` and `scan` ranges of about 100 entries. Queries repeat <keys> distinct keys:
//     the data of 2^15 keys stays in the caches, that of 2^21 does not.
//     The version soon has its compact form (engine/delta/compact_delta.h).
//
//   Delta/compact/<key>/commit:<rows>: making the compact form of the same version; `bytes` is its
//     size.
//
// Counters: ns_per_query (per row for apply, per changed entry for compact); segments.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "engine/delta/compact_delta.h"
#include "engine/delta/delta_writer.h"
#include "engine/version/versioned_search.h"
#include "index/query/physical_key.h"
#include "index/sort/sort.h"
#include "tools/bench/data.h"
#include "tools/bench/database.h"
#include "tools/bench/engine/memory_row_table.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench::delta {
namespace {

constexpr uint64_t kRows = 10'000'000;

std::string PrimaryKey(bool digits, uint64_t i) {
  if (digits) return absl::StrFormat("%016d", i);
  Random random(i);
  const uint64_t words[2] = {random(), random()};
  return {reinterpret_cast<const char*>(words), sizeof words};
}

RowTable MakeRowTable(const std::vector<std::string>& primary_keys) {
  auto memory = std::make_shared<MemorySink>();
  WriteRowTable(primary_keys, memory.get());
  return OrThrow(RowTable::Wrap(memory->Spans(), "bench", 1, memory));
}

// The base of n rows whose keys are random.
template <typename Key>
struct BaseData {
  SortedRun run;
  RowTable rows;
  std::vector<std::string> primary_keys;  // ascending
  std::unique_ptr<OrderedIndex> index;    // cpu:auto
};

template <typename Key>
const BaseData<Key>& GetBase(bool digits) {
  static std::unique_ptr<BaseData<Key>> bases[2];
  std::unique_ptr<BaseData<Key>>& base = bases[digits ? 1 : 0];
  if (base != nullptr) return *base;
  bases[digits ? 0 : 1] = nullptr;
  base = std::make_unique<BaseData<Key>>();
  const uint64_t n = BenchRows(kRows);
  for (uint64_t i = 0; i < n; ++i) base->primary_keys.push_back(PrimaryKey(digits, 2 * i));
  std::sort(base->primary_keys.begin(), base->primary_keys.end());
  base->rows = MakeRowTable(base->primary_keys);

  using Entry = std::conditional_t<sizeof(Key) == 4, Entry32, Entry64>;
  Random random(kSeed);
  std::vector<Entry> entries(n);
  for (uint64_t i = 0; i < n; ++i) {
    entries[i] = Entry::Make(static_cast<Key>(random()), static_cast<RowId>(i));
  }
  SortEntries(absl::MakeSpan(entries), 2);
  std::vector<Key> keys(n);
  std::vector<RowId> row_ids(n);
  for (uint64_t i = 0; i < n; ++i) {
    keys[i] = entries[i].key();
    row_ids[i] = entries[i].row_id();
  }
  base->run = *SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids);
  base->index = *MakeOrderedIndex("cpu:auto", base->run);
  return *base;
}

enum class Change : uint8_t { kNewKey, kSameKey, kNewRow };

// The key of a row in the base.
template <typename Key>
std::vector<Key> KeysByRow(const BaseData<Key>& base) {
  std::vector<Key> keys(base.run.size());
  const auto column = ColumnOf<Key>(base.run);
  for (size_t p = 0; p < keys.size(); ++p) keys[base.run.row_ids()[p]] = column[p];
  return keys;
}

// Updates of `rows` random rows, in batches.
template <typename Key>
std::vector<RowUpdates> MakeUpdates(const BaseData<Key>& base, bool digits, Change change,
                                    uint64_t rows, uint64_t batch, uint64_t seed) {
  Random random(seed);
  std::vector<Key> same;
  if (change == Change::kSameKey) same = KeysByRow(base);
  // Distinct rows: an odd multiplier permutes the numbers below a power of two.
  uint64_t mask = 1;
  while (mask < base.primary_keys.size()) mask *= 2;
  std::vector<RowUpdates> updates;
  uint64_t made = 0;
  for (uint64_t i = seed; made < rows; ++i) {
    const uint64_t row = i * 0x9E3779B97F4A7C15ull & (mask - 1);
    if (row >= base.primary_keys.size()) continue;
    if (made++ % batch == 0) updates.emplace_back(kKindOf<Key>);
    RowUpdates& to = updates.back();
    AppendKey(change == Change::kSameKey ? same[row] : static_cast<Key>(random()), &to.keys);
    to.EndRow(change == Change::kNewRow ? PrimaryKey(digits, 2 * row + 1)
                                        : std::string_view(base.primary_keys[row]));
  }
  return updates;
}

template <typename Key>
std::unique_ptr<DeltaWriter> MakeWriter(const BaseData<Key>& base) {
  auto writer = *DeltaWriter::Create(base.run, base.rows, 2);
  // Builds the structures that a base needs once.
  RowUpdates none(kKindOf<Key>);
  OrThrow(writer->Apply(none));
  return writer;
}

template <typename Key>
void Apply(benchmark::State& state, bool digits, Change change, bool again) {
  const BaseData<Key>& base = GetBase<Key>(digits);
  const auto batch = static_cast<uint64_t>(state.range(0));
  const uint64_t rows = std::max(base.primary_keys.size() / 100, batch) / batch * batch;
  const std::vector<RowUpdates> updates = MakeUpdates(base, digits, change, rows, batch, kSeed);
  const std::vector<RowUpdates> before =
      again ? MakeUpdates(base, digits, change, rows, rows, kSeed) : std::vector<RowUpdates>();
  size_t segments = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<DeltaWriter> writer = MakeWriter(base);
    for (const RowUpdates& some : before) {
      OrThrow(writer->Apply(some));
    }
    state.ResumeTiming();
    for (const RowUpdates& some : updates) {
      OrThrow(writer->Apply(some));
    }
    state.PauseTiming();
    const DeltaStats stats = writer->delta()->Stats();
    segments = stats.segments;
    if (stats.added_entries != (change == Change::kSameKey ? 0 : rows)) {
      state.SkipWithError("wrong number of entries");
    }
    writer.reset();
    state.ResumeTiming();
  }
  SetQueryCounters(state, rows);
  state.counters["segments"] = static_cast<double>(segments);
}

// CPU time of this thread, which excludes the machine's other work.
double Seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}
double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// A base with 1% of its rows changed, in updates of `commit` rows.
template <typename Key>
struct ChangedBase {
  const BaseData<Key>* base;
  uint64_t commit;
  std::unique_ptr<DeltaWriter> writer;
  std::shared_ptr<const Delta> delta;
  std::vector<Key> now;  // by row
};

// The last one is kept.
template <typename Key>
const ChangedBase<Key>& GetChanged(uint64_t commit) {
  static std::unique_ptr<ChangedBase<Key>> kept;
  const BaseData<Key>& base = GetBase<Key>(true);
  if (kept != nullptr && kept->base == &base && kept->commit == commit) return *kept;
  kept = nullptr;
  auto changed = std::make_unique<ChangedBase<Key>>();
  changed->base = &base;
  changed->commit = commit;
  changed->writer = MakeWriter(base);
  changed->now = KeysByRow(base);
  for (const RowUpdates& some : MakeUpdates(base, true, Change::kNewKey,
                                            base.primary_keys.size() / 100, commit, kSeed + 1)) {
    OrThrow(changed->writer->Apply(some));
  }
  changed->delta = changed->writer->delta();
  for (const DeltaPart& part : changed->delta->parts) {
    for (size_t p = 0; p < part.segment->size(); ++p) {
      changed->now[part.segment->rows()[p]] = ColumnOf<Key>(part.segment->run())[p];
    }
  }
  kept = std::move(changed);
  return *kept;
}

template <typename Key>
void Query(benchmark::State& state, Operation operation, uint64_t commit) {
  constexpr uint64_t kHits = 100;
  const BaseData<Key>& base = GetBase<Key>(true);
  const auto size = static_cast<size_t>(state.range(0));
  const size_t batches = static_cast<size_t>(state.range(1)) / size;
  // The number of batches timed together, since a clock reading takes as long as a small batch.
  const size_t together = std::max<size_t>(1, 1024 / size);
  const ChangedBase<Key>& changed = GetChanged<Key>(commit);
  const std::shared_ptr<const Delta> delta = changed.delta;
  const std::vector<Key>& now = changed.now;

  // Keys, and rows with these keys.
  Random random(kSeed + 2);
  std::vector<Key> keys(size * batches), upper(keys.size());
  std::vector<RowId> expected(keys.size());
  const Key width = static_cast<Key>(~Key{0} / base.run.size() * kHits);
  for (size_t i = 0; i < keys.size(); ++i) {
    expected[i] = static_cast<RowId>(random.Below(now.size()));
    keys[i] = now[expected[i]];
    upper[i] = keys[i] > ~Key{0} - width ? ~Key{0} : keys[i] + width;
  }
  const auto batch_of = [&](const std::vector<Key>& all, size_t b) {
    return KeyBatch(absl::MakeConstSpan(all).subspan(b % batches * size, size));
  };

  std::vector<RowId> rows(size);
  std::vector<uint64_t> counts(size);
  const auto found = std::make_unique<bool[]>(size);
  FindResult matches;
  const auto base_answer = [&](const Batch& batch) { return base.index->Execute(batch); };
  const auto ask = [&](size_t b, bool version) {
    const KeyBatch batch = batch_of(keys, b);
    Batch asked{operation, batch, RangeBatch::HalfOpen(batch, batch_of(upper, b))};
    asked.values = absl::MakeSpan(rows);
    asked.counts = absl::MakeSpan(counts);
    asked.found = absl::MakeSpan(found.get(), size);
    asked.matches = &matches;
    OrThrow(version ? AnswerVersion(*delta, base_answer, asked) : base_answer(asked));
  };
  const auto seconds = [&](size_t b, bool version) {
    return Seconds([&] {
             for (size_t i = 0; i < together; ++i) ask(b + i, version);
           }) /
           static_cast<double>(together);
  };
  std::vector<double> base_seconds, version_seconds, ratios;
  size_t b = 0;
  for (auto _ : state) {
    base_seconds.push_back(seconds(b + batches / 2, false));
    version_seconds.push_back(seconds(b, true));
    ratios.push_back(version_seconds.back() / base_seconds.back());
    state.SetIterationTime(version_seconds.back() * static_cast<double>(together));
    b += together;
  }
  ask(0, true);
  for (size_t i = 0; i < size && operation <= Operation::kFind; ++i) {
    if (operation == Operation::kContains) {
      if (!found[i]) state.SkipWithError("wrong answer");
      continue;
    }
    // Few 32-bit keys repeat.
    const RowId row = operation == Operation::kFindFirst ? rows[i] : matches[i][0];
    if (now[row] != keys[i]) state.SkipWithError("wrong answer");
  }
  SetQueryCounters(state, size * together);
  const double base_ns = Median(base_seconds) * 1e9 / static_cast<double>(size);
  const double version_ns = Median(version_seconds) * 1e9 / static_cast<double>(size);
  state.counters["base_ns"] = base_ns;
  state.counters["version_ns"] = version_ns;
  state.counters["ratio"] = Median(ratios);
  state.counters["segments"] = static_cast<double>(delta->parts.size());
}

template <typename Key>
void Compact(benchmark::State& state, uint64_t commit) {
  const std::shared_ptr<const Delta> delta = GetChanged<Key>(commit).delta;
  std::shared_ptr<const Delta> compact;
  for (auto _ : state) compact = *CompactDelta::Make(*delta);
  SetQueryCounters(state, delta->removed.size() + delta->added_entries());
  uint64_t bytes = compact->removed_positions->memory_bytes() + compact->filter->memory_bytes();
  for (const DeltaPart& part : compact->parts) bytes += part.segment->memory_bytes();
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["segments"] = static_cast<double>(delta->parts.size());
}

template <typename Key>
void Register(const char* key) {
  for (bool digits : {true, false}) {
    const auto add = [&](const char* variant, Change change, bool again,
                         std::initializer_list<int64_t> batches) {
      auto* b = benchmark::RegisterBenchmark(
          absl::StrFormat("Delta/apply/%s/%s%s", key, digits ? "digits" : "random", variant)
              .c_str(),
          [=](benchmark::State& state) { Apply<Key>(state, digits, change, again); });
      b->ArgName("batch")->Unit(benchmark::kMillisecond)->UseRealTime();
      for (int64_t batch : batches) b->Arg(batch);
    };
    add("", Change::kNewKey, false, {100, 1000, 1 << 16});
    add("/same", Change::kSameKey, false, {100, 1 << 16});
    add("/insert", Change::kNewRow, false, {100, 1 << 16});
    add("/again", Change::kNewKey, true, {100, 1 << 16});
  }
  // Grouped by commit size, since the base for each is kept.
  for (uint64_t commit : {1000, 1 << 20}) {
    for (const auto& [name, operation] :
         {std::pair("first", Operation::kFindFirst), std::pair("contains", Operation::kContains),
          std::pair("find", Operation::kFind), std::pair("count", Operation::kCount),
          std::pair("scan", Operation::kScan)}) {
      benchmark::RegisterBenchmark(
          absl::StrFormat("Delta/%s/%s/commit:%d", name, key, commit).c_str(),
          [=, operation = operation](benchmark::State& state) {
            Query<Key>(state, operation, commit);
          })
          ->ArgNames({"batch", "keys"})
          ->ArgsProduct({{1, 16, 256, 4096}, {1 << 15, 1 << 21}})
          ->ArgsProduct({{1 << 16}, {1 << 21}})
          ->UseManualTime();
    }
    benchmark::RegisterBenchmark(absl::StrFormat("Delta/compact/%s/commit:%d", key, commit).c_str(),
                                 [=](benchmark::State& state) { Compact<Key>(state, commit); })
        ->Unit(benchmark::kMillisecond);
  }
}

const int registered = [] {
  Register<uint32_t>("u32");
  Register<uint64_t>("u64");
  return 0;
}();

}  // namespace
}  // namespace cairn::bench::delta
