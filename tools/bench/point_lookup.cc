// PointLookup/<index>/<key>/n:<log2 n>/<row_id|position>: batches of 2^20 random keys that are
// there, uniform over n uniform keys. Counter limit_ns: a random read of one line among as much
// memory as the run and the index take, measured in the same process.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/baselines.h"
#include "tools/bench/data.h"
#include "tools/bench/limit.h"

namespace cairn::bench {
namespace {

constexpr size_t kBatch = size_t{1} << 20;
constexpr size_t kBatches = 8;  // asked in turn

enum class Answer : uint8_t { kRowId, kPosition };

template <typename Key>
KeyBatch AsBatch(absl::Span<const Key> keys) {
  if constexpr (sizeof(Key) == 4) {
    return KeyBatch::U32(keys);
  } else {
    return KeyBatch::U64(keys);
  }
}

template <typename Key>
absl::Span<const Key> KeysOf(const SortedRun& run) {
  if constexpr (sizeof(Key) == 4) {
    return run.u32();
  } else {
    return run.u64();
  }
}

// Batches of queries with their positions in the run.
template <typename Key>
class Queries {
 public:
  explicit Queries(absl::Span<const Key> keys)
      : keys_(kBatches * kBatch), positions_(keys_.size()) {
    Random random(kSeed + 1);
    for (size_t i = 0; i < keys_.size(); ++i) {
      positions_[i] = static_cast<Position>(random.Below(keys.size()));
      keys_[i] = keys[positions_[i]];
    }
  }
  absl::Span<const Key> Next() { return Batch(next_++); }
  absl::Span<const Key> Batch(size_t b) const {
    return absl::MakeConstSpan(keys_).subspan(b % kBatches * kBatch, kBatch);
  }
  absl::Span<const Position> Positions(size_t b) const {
    return absl::MakeConstSpan(positions_).subspan(b % kBatches * kBatch, kBatch);
  }

 private:
  std::vector<Key> keys_;
  std::vector<Position> positions_;
  size_t next_ = 0;
};

// A way to answer a batch, and the bytes that it takes beyond the run.
template <typename Key>
struct Contender {
  std::function<void(absl::Span<const Key>, uint32_t*)> search;
  uint64_t bytes = 0;
  std::string error;
};

// Lower bounds become row ids by a second pass, as a caller would write it.
template <typename Key>
void RowsAt(const SortedRun& run, absl::Span<const Key> queries, uint32_t* out) {
  const absl::Span<const Key> keys = KeysOf<Key>(run);
  constexpr size_t kAhead = 32;
  for (size_t i = 0; i < queries.size(); ++i) {
    if (i + kAhead < queries.size()) {
      __builtin_prefetch(run.row_ids().data() + out[i + kAhead]);
      __builtin_prefetch(keys.data() + out[i + kAhead]);
    }
    const Position p = out[i];
    out[i] = p < run.size() && keys[p] == queries[i] ? run.row_ids()[p] : kNoRow;
  }
}

template <typename Key>
Contender<Key> MakeContender(const std::string& name, const SortedRun& run, Answer answer) {
  const absl::Span<const Key> keys = KeysOf<Key>(run);
  const bool rows = answer == Answer::kRowId;
  if (name == "baseline:lower_bound") {
    return {[=](absl::Span<const Key> queries, uint32_t* out) {
              for (size_t i = 0; i < queries.size(); ++i) {
                const auto at = std::lower_bound(keys.begin(), keys.end(), queries[i]);
                const auto p = static_cast<Position>(at - keys.begin());
                out[i] = !rows                                     ? p
                         : p < run.size() && keys[p] == queries[i] ? run.row_ids()[p]
                                                                   : kNoRow;
              }
            },
            0, ""};
  }
  if (name == "baseline:eytzinger") {
    auto tree = std::make_shared<Eytzinger<Key>>(keys);
    return {[=](absl::Span<const Key> queries, uint32_t* out) {
              tree->LowerBound(queries, out);
              if (rows) RowsAt(run, queries, out);
            },
            tree->memory_bytes(), ""};
  }
  if (name == "baseline:absl_btree") {
    std::vector<RowId> values(keys.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = rows ? run.row_ids()[i] : static_cast<Position>(i);
    }
    auto map = std::make_shared<absl::btree_map<Key, RowId>>(MakeBtree<Key>(keys, values));
    const auto n = static_cast<Position>(run.size());
    return {[=](absl::Span<const Key> queries, uint32_t* out) {
              for (size_t i = 0; i < queries.size(); ++i) {
                const auto at = map->lower_bound(queries[i]);
                const bool found = at != map->end() && at->first == queries[i];
                out[i] = found ? at->second : rows ? kNoRow : n;
              }
            },
            run.size() * (sizeof(Key) + sizeof(RowId)), ""};
  }
  auto made = MakeOrderedIndex(name, run);
  if (!made.ok()) return {nullptr, 0, std::string(made.status().message())};
  std::shared_ptr<OrderedIndex> index = *std::move(made);
  return {[=](absl::Span<const Key> queries, uint32_t* out) {
            const absl::Status s = rows
                                       ? index->FindFirst(AsBatch(queries), {out, queries.size()})
                                       : index->LowerBound(AsBatch(queries), {out, queries.size()});
            if (!s.ok()) std::abort();
          },
          index->memory_bytes(), ""};
}

template <typename Key>
void PointLookup(benchmark::State& state, const std::string& name, int log2_n, Answer answer) {
  const SortedRun run = MakeRun(UniformKeys<Key>(size_t{1} << log2_n));
  Contender<Key> contender = MakeContender<Key>(name, run, answer);
  if (contender.search == nullptr) return state.SkipWithError(contender.error.c_str());
  Queries<Key> queries(KeysOf<Key>(run));
  std::vector<uint32_t> out(kBatch);
  for (auto _ : state) {
    contender.search(queries.Next(), out.data());
    benchmark::ClobberMemory();
  }
  for (size_t b = 0; b < kBatches; ++b) {
    contender.search(queries.Batch(b), out.data());
    for (size_t i = 0; i < kBatch; ++i) {
      const Position p = queries.Positions(b)[i];
      if (out[i] != (answer == Answer::kPosition ? p : run.row_ids()[p])) {
        return state.SkipWithError("wrong answer");
      }
    }
  }
  SetQueryCounters(state, kBatch);
  const auto n = static_cast<double>(run.size());
  const uint64_t footprint =
      run.memory_bytes() - (answer == Answer::kPosition ? run.size() * 4 : 0);
  state.counters["bytes_per_key"] = static_cast<double>(contender.bytes) / n;
  state.counters["limit_ns"] = RandomLineNs(footprint + contender.bytes);
}

template <typename Key>
void Register(const char* key_name, const std::string& index, int log2_n, Answer answer) {
  const std::string name = absl::StrFormat("PointLookup/%s/%s/n:%d/%s", index, key_name, log2_n,
                                           answer == Answer::kRowId ? "row_id" : "position");
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State& state) { PointLookup<Key>(state, index, log2_n, answer); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

const bool registered = [] {
  for (int log2_n : {16, 20, 24, 26}) {
    for (const char* index :
         {"cpu:fast", "cpu:fast,page=4k", "cpu:fast,page=2m", "cpu:fast,simd=sse4",
          "cpu:fast,simd=avx2", "cpu:fast,simd=scalar", "cpu:packed", "cpu:packed,directory=tree",
          "cpu:sorted_array", "baseline:lower_bound", "baseline:eytzinger",
          "baseline:absl_btree"}) {
      for (Answer answer : {Answer::kRowId, Answer::kPosition}) {
        Register<uint32_t>("u32", index, log2_n, answer);
        Register<uint64_t>("u64", index, log2_n, answer);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
