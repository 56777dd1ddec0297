// PointLookup/<index>/<key>/n:<log2 n>/<row_id|position>[/<variant>][/threads:<t>]: batches of 2^22
// keys. Without a variant, queries are random keys of the index, and its n keys are uniform and
// distinct. Variants:
//   miss        absent keys, each just above a key of the index;
//   zipf        a few keys are frequent (theta 0.99);
//   sorted      queries in ascending order;
//   clustered   the keys are dense in a thousand places;
//   duplicates  sixteen entries per key.
// Counter limit_ns: the time of a random read of one line in memory as large as the run, or as the
// structure if that is larger; measured in the same process.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "index/machine/prefetch.h"
#include "tools/bench/cpu_fast/baselines.h"
#include "tools/bench/cpu_fast/line_tree.h"
#include "tools/bench/data.h"
#include "tools/bench/limit.h"
#include "tools/bench/zipf.h"

namespace cairn::bench::point_lookup {
namespace {

constexpr size_t kBatch = size_t{1} << 22;
constexpr size_t kBatches = 3;  // used in turn

enum class Answer : uint8_t { kRowId, kPosition };
enum class Variant : uint8_t { kHits, kMiss, kZipf, kSorted, kClustered, kDuplicates };

constexpr const char* kVariantNames[] = {"",        "/miss",      "/zipf",
                                         "/sorted", "/clustered", "/duplicates"};

// A run of `n` entries of the variant.
template <typename Key>
SortedRun MakeRunOf(Variant variant, size_t n) {
  if (variant == Variant::kClustered) {
    // Disjoint: each cluster is in a separate thousandth of the key space.
    constexpr size_t kClusters = 1000;
    const Key space = static_cast<Key>(~Key{0} / kClusters);
    Random random(kSeed);
    std::vector<Key> keys;
    for (size_t c = 0; c < kClusters; ++c) {
      const size_t size = n * (c + 1) / kClusters - n * c / kClusters;
      Key key = static_cast<Key>(space * c + random.Below(space - 2 * size));
      for (size_t i = 0; i < size; ++i) keys.push_back(key += 1 + random.Below(2));
    }
    return MakeRun(keys);
  }
  if (variant == Variant::kDuplicates) {
    const std::vector<Key>& distinct = UniformKeys<Key>(n / 16);
    std::vector<Key> keys(n);
    std::vector<RowId> rows(n);
    for (size_t i = 0; i < n; ++i) keys[i] = distinct[i / 16], rows[i] = static_cast<RowId>(i);
    return *SortedRun::FromSorted(absl::MakeConstSpan(keys), rows);
  }
  return MakeRun(UniformKeys<Key>(n));
}

// Batches of queries with the positions of their lower bounds, and whether the keys are present.
template <typename Key>
class Queries {
 public:
  Queries(absl::Span<const Key> keys, Variant variant)
      : keys_(kBatches * kBatch), positions_(keys_.size()), there_(variant != Variant::kMiss) {
    Random random(kSeed + 1);
    const Zipf zipf(variant == Variant::kZipf ? keys.size() : 2);
    for (size_t i = 0; i < keys_.size(); ++i) {
      size_t p = random.Below(keys.size());
      // Scattered over the run.
      if (variant == Variant::kZipf) p = zipf.Rank(random()) * 0x9E3779B97F4A7C15ull % keys.size();
      if (variant == Variant::kDuplicates) p -= p % 16;
      while (!there_ && p + 1 < keys.size() && keys[p] + 1 == keys[p + 1]) ++p;
      positions_[i] = static_cast<Position>(p);
    }
    for (size_t b = 0; b < kBatches && variant == Variant::kSorted; ++b) {
      std::sort(positions_.begin() + static_cast<ptrdiff_t>(b * kBatch),
                positions_.begin() + static_cast<ptrdiff_t>((b + 1) * kBatch));
    }
    for (size_t i = 0; i < keys_.size(); ++i) {
      keys_[i] = keys[positions_[i]] + (there_ ? 0 : 1);
      if (!there_) ++positions_[i];
    }
  }
  absl::Span<const Key> Next() { return Batch(next_++); }
  absl::Span<const Key> Batch(size_t b) const {
    return absl::MakeConstSpan(keys_).subspan(b % kBatches * kBatch, kBatch);
  }
  // The expected result for query i of batch b.
  uint32_t Expected(const SortedRun& run, Answer answer, size_t b, size_t i) const {
    const Position p = positions_[b % kBatches * kBatch + i];
    return answer == Answer::kPosition ? p : there_ ? run.row_ids()[p] : kNoRow;
  }

 private:
  std::vector<Key> keys_;
  std::vector<Position> positions_;
  bool there_;
  size_t next_ = 0;
};

// A way to answer a batch, and its bytes without the run.
template <typename Key>
struct Contender {
  std::function<void(absl::Span<const Key>, uint32_t*)> search;
  uint64_t bytes = 0;
  std::string error;
};

// A second pass maps lower bounds to row ids, as a caller would write it.
template <typename Key>
void RowsAt(const SortedRun& run, absl::Span<const Key> queries, uint32_t* out) {
  const absl::Span<const Key> keys = run.keys<Key>();
  constexpr size_t kAhead = 32;
  for (size_t i = 0; i < queries.size(); ++i) {
    if (i + kAhead < queries.size()) {
      Prefetch(run.row_ids().data() + out[i + kAhead]);
      Prefetch(keys.data() + out[i + kAhead]);
    }
    const Position p = out[i];
    out[i] = p < run.size() && keys[p] == queries[i] ? run.row_ids()[p] : kNoRow;
  }
}

template <typename Key>
Contender<Key> MakeContender(const std::string& name, const SortedRun& run, Answer answer,
                             int threads) {
  const absl::Span<const Key> keys = run.keys<Key>();
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
  if (name == "baseline:line_tree") {
    if (!LineTree<Key>::Supported()) return {nullptr, 0, "this processor has no AVX-512"};
    auto tree = std::make_shared<LineTree<Key>>(keys);
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
  const Parallelism parallelism{threads};
  return {[=](absl::Span<const Key> queries, uint32_t* out) {
            const absl::Span<uint32_t> answers(out, queries.size());
            const Batch batch =
                rows ? Batch::FindFirst(queries, answers) : Batch::LowerBound(queries, answers);
            if (!cairn::Execute(*index, batch, parallelism).ok()) std::abort();
          },
          index->memory_bytes(), ""};
}

struct Case {
  std::string index;
  int log2_n;
  Answer answer = Answer::kRowId;
  Variant variant = Variant::kHits;
  int threads = 1;
};

template <typename Key>
void PointLookup(benchmark::State& state, const Case& c) {
  const SortedRun run = MakeRunOf<Key>(c.variant, size_t{1} << c.log2_n);
  Contender<Key> contender = MakeContender<Key>(c.index, run, c.answer, c.threads);
  if (contender.search == nullptr) return state.SkipWithError(contender.error.c_str());
  Queries<Key> queries(run.keys<Key>(), c.variant);
  std::vector<uint32_t> out(kBatch);
  for (auto _ : state) {
    contender.search(queries.Next(), out.data());
    benchmark::ClobberMemory();
  }
  for (size_t b = 0; b < kBatches; ++b) {
    contender.search(queries.Batch(b), out.data());
    for (size_t i = 0; i < kBatch; ++i) {
      if (out[i] != queries.Expected(run, c.answer, b, i)) {
        return state.SkipWithError("wrong answer");
      }
    }
  }
  SetQueryCounters(state, kBatch);
  const uint64_t columns =
      run.memory_bytes() - (c.answer == Answer::kPosition ? run.size() * sizeof(RowId) : 0);
  state.counters["bytes_per_key"] =
      static_cast<double>(contender.bytes) / static_cast<double>(run.size());
  state.counters["limit_ns"] = RandomLineNs(std::max(columns, contender.bytes));
}

template <typename Key>
void Register(const char* key_name, const Case& c) {
  std::string name = absl::StrFormat("PointLookup/%s/%s/n:%d/%s%s", c.index, key_name, c.log2_n,
                                     c.answer == Answer::kRowId ? "row_id" : "position",
                                     kVariantNames[static_cast<size_t>(c.variant)]);
  if (c.threads > 1) absl::StrAppendFormat(&name, "/threads:%d", c.threads);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { PointLookup<Key>(state, c); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void Register(const Case& c) {
  Register<uint32_t>("u32", c);
  Register<uint64_t>("u64", c);
}

const bool registered = [] {
  for (int log2_n : {10, 12, 14, 16, 18, 20, 22, 24, 26, 28}) {
    for (const char* index :
         {"cpu:auto", "cpu:fast", "cpu:fast,page=4k", "cpu:fast,page=2m", "cpu:fast,simd=sse4",
          "cpu:fast,simd=avx2", "cpu:fast,simd=scalar", "cpu:packed", "cpu:packed,directory=tree",
          "cpu:packed,simd=sse4", "cpu:packed,simd=avx2", "cpu:packed,simd=scalar",
          "cpu:sorted_array", "baseline:line_tree", "baseline:lower_bound", "baseline:eytzinger",
          "baseline:absl_btree"}) {
      for (Answer answer : {Answer::kRowId, Answer::kPosition}) Register({index, log2_n, answer});
    }
    for (Variant variant : {Variant::kMiss, Variant::kZipf, Variant::kSorted, Variant::kClustered,
                            Variant::kDuplicates}) {
      if (log2_n >= 20) Register({"cpu:auto", log2_n, Answer::kRowId, variant});
    }
    if (log2_n >= 20) Register({"cpu:auto", log2_n, Answer::kRowId, Variant::kHits, 2});
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::point_lookup
