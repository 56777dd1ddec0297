// The compression of long keys of Kim et al., FAST (SIGMOD 2010, section 6.1), over distinct random
// keys of one size; queries are random keys of the data, 2^18 per batch, one thread.
//
// FastPaper/false_positives/values:<v>/<nccp|ccp>: its figure 9: keys of 16 bytes of v values each,
// with partial keys of non-contiguous or contiguous common prefixes. Counters: work, the full keys
// compared per query, 1 without false positives; false_positives, the share of adjacent keys within
// leaf pages; first_page_bits, of its partial keys.
//
// FastPaper/key_size/<compressed|compressed_pext|uncompressed|cpu:partial_key>/bytes:<b>: its
// figure 10: keys of ten values per byte (256 in keys of 4 bytes, since ten would give too few
// keys). compressed extracts partial keys by shuffles, as in the paper; uncompressed is the same
// search on full keys.
//
// FastPaper/partial_keys_build/bytes:16: construction on all cores. Counters: entries_per_s,
// bytes_per_s.
//
// CAIRN_BENCH_STRINGS sets the keys of figure 9 and of the construction, a million by
// default; figure 10 has 64 bytes of keys for each of these, regardless of the key size.
#if defined(__x86_64__)
#include <benchmark/benchmark.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/data.h"
#include "tools/bench/papers/paper_partial_keys.h"

namespace cairn::bench {
namespace {

constexpr size_t kBatch = size_t{1} << 18;
constexpr size_t kBatches = 4;  // used in turn
constexpr size_t kFigure10Bytes = 64;

int Threads() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

size_t KeyCount() {
  const char* count = std::getenv("CAIRN_BENCH_STRINGS");
  return count != nullptr ? std::strtoull(count, nullptr, 10) : 1'000'000;
}

// The smallest value of a byte: few values are digits or letters, with equal high halves.
char FirstValue(size_t values) {
  return values <= 16 ? '0' : values <= 64 ? '@' : '\0';
}

// About `n` random keys, at most half of all possible ones, ascending.
template <size_t kBytes>
FixedKeys MakeKeys(size_t values, size_t n) {
  const double most = std::pow(static_cast<double>(values), static_cast<double>(kBytes)) / 2;
  if (static_cast<double>(n) > most) n = static_cast<size_t>(most);
  using Key = std::array<unsigned char, kBytes>;  // std::array orders it like memcmp
  std::vector<Key> keys(n);
  Random random(kSeed);
  for (Key& key : keys) {
    for (unsigned char& byte : key) {
      byte =
          static_cast<unsigned char>(FirstValue(values) + static_cast<int>(random.Below(values)));
    }
  }
  tbb::parallel_sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  FixedKeys fixed(kBytes, keys.size());
  std::memcpy(fixed.at(0), keys.data(), keys.size() * kBytes);
  return fixed;
}

FixedKeys MakeKeys(size_t bytes, size_t values, size_t n) {
  switch (bytes) {
    case 4:
      return MakeKeys<4>(values, n);
    case 8:
      return MakeKeys<8>(values, n);
    case 16:
      return MakeKeys<16>(values, n);
    case 32:
      return MakeKeys<32>(values, n);
    case 64:
      return MakeKeys<64>(values, n);
    default:
      return MakeKeys<128>(values, n);
  }
}

// Keys, and queries with their positions.
struct Subject {
  Subject(size_t bytes, size_t values, size_t n)
      : keys(MakeKeys(bytes, values, n)), queries(bytes, kBatches * kBatch) {
    Random random(kSeed + 1);
    for (size_t i = 0; i < queries.size; ++i) {
      positions.push_back(static_cast<Position>(random.Below(keys.size)));
      std::memcpy(queries.at(i), keys[positions[i]], bytes);
    }
  }
  // Keeps the last subject.
  static const Subject& Get(size_t bytes, size_t values, size_t n) {
    static std::unique_ptr<Subject> subject;
    static std::array<size_t, 3> made;
    const std::array<size_t, 3> wanted = {bytes, values, n};
    if (subject == nullptr || made != wanted) {
      subject.reset();
      subject = std::make_unique<Subject>(bytes, values, n);
      made = wanted;
    }
    return *subject;
  }

  const FixedKeys keys;
  FixedKeys queries;
  std::vector<Position> positions;
};

// The first batch of queries with a random byte of each changed, to any value: mostly absent
// keys, anywhere.
FixedKeys Probes(const Subject& subject) {
  FixedKeys probes(subject.keys.bytes, kBatch);
  Random random(kSeed + 2);
  std::memcpy(probes.at(0), subject.queries[0], kBatch * probes.bytes);
  for (size_t i = 0; i < kBatch; ++i) {
    probes.at(i)[random.Below(probes.bytes)] = static_cast<char>(random());
  }
  return probes;
}

Position LowerBound(const FixedKeys& keys, const char* query) {
  size_t first = 0, last = keys.size;
  while (first < last) {
    const size_t middle = first + (last - first) / 2;
    if (std::memcmp(keys[middle], query, keys.bytes) < 0) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return static_cast<Position>(first);
}

// search(queries, first, positions) answers the batch that starts at query `first`.
template <typename Search>
void Measure(benchmark::State& state, const Subject& subject, Search search) {
  std::vector<Position> out(kBatch);
  size_t batch = 0;
  for (auto _ : state) {
    search(subject.queries, batch++ % kBatches * kBatch, out.data());
    benchmark::ClobberMemory();
  }
  for (size_t b = 0; b < kBatches; ++b) {
    search(subject.queries, b * kBatch, out.data());
    if (!std::equal(out.begin(), out.end(), subject.positions.begin() + b * kBatch)) {
      return state.SkipWithError("wrong positions");
    }
  }
  const FixedKeys probes = Probes(subject);
  search(probes, 0, out.data());
  for (size_t i = 0; i < kBatch; ++i) {
    if (out[i] != LowerBound(subject.keys, probes[i])) {
      return state.SkipWithError("wrong position of a key that is not there");
    }
  }
  SetQueryCounters(state, kBatch);
  state.counters["keys"] = static_cast<double>(subject.keys.size);
}

template <typename Window>
void Compressed(benchmark::State& state, const Subject& subject, PaperPrefix prefix) {
  if (!__builtin_cpu_supports("ssse3") || !__builtin_cpu_supports("bmi2")) {
    return state.SkipWithError("no SSSE3 or no BMI2");
  }
  const PartialKeyPages<Window> pages(subject.keys, prefix, Threads());
  Measure(state, subject, [&](const FixedKeys& queries, size_t first, Position* out) {
    pages.LowerBound(queries, first, kBatch, out);
  });
  std::vector<Position> out(kBatch);
  uint64_t work = 0;
  for (size_t b = 0; b < kBatches; ++b) {
    work += pages.LowerBound(subject.queries, b * kBatch, kBatch, out.data());
  }
  state.counters["work"] = static_cast<double>(work) / (kBatches * kBatch);
  state.counters["false_positives"] = pages.false_positives();
  state.counters["first_page_bits"] = pages.first_page_bits();
  state.counters["bytes_per_key"] =
      static_cast<double>(pages.memory_bytes()) / static_cast<double>(subject.keys.size);
}

void Uncompressed(benchmark::State& state, const Subject& subject) {
  const FullKeyPages pages(subject.keys, Threads());
  Measure(state, subject, [&](const FixedKeys& queries, size_t first, Position* out) {
    pages.LowerBound(queries, first, kBatch, out);
  });
}

std::vector<std::string_view> Views(const FixedKeys& keys, size_t first, size_t count) {
  std::vector<std::string_view> views(count);
  for (size_t i = 0; i < count; ++i) views[i] = {keys[first + i], keys.bytes};
  return views;
}

void PartialKey(benchmark::State& state, const Subject& subject) {
  const std::vector<RowId> rows = [&] {
    std::vector<RowId> ids(subject.keys.size);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<RowId>(i);
    return ids;
  }();
  auto run =
      SortedRun::FromSorted(absl::MakeConstSpan(Views(subject.keys, 0, subject.keys.size)), rows);
  if (!run.ok()) return state.SkipWithError(run.status().ToString().c_str());
  auto index = MakeOrderedIndex("cpu:partial_key", *std::move(run));
  if (!index.ok()) return state.SkipWithError(index.status().ToString().c_str());
  // Made before the queries are timed, since the other structures use them unchanged.
  const std::vector<std::string_view> asked = Views(subject.queries, 0, subject.queries.size);
  Measure(state, subject, [&](const FixedKeys& queries, size_t first, Position* out) {
    std::vector<std::string_view> others;
    if (&queries != &subject.queries) others = Views(queries, first, kBatch);
    const auto batch = others.empty() ? absl::MakeConstSpan(asked).subspan(first, kBatch) : others;
    if (!(*index)->Execute(Batch::LowerBound(batch, {out, kBatch})).ok()) std::abort();
  });
  state.counters["bytes_per_key"] =
      static_cast<double>((*index)->memory_bytes()) / static_cast<double>(subject.keys.size);
}

void Build(benchmark::State& state) {
  const FixedKeys& keys = Subject::Get(16, 10, KeyCount()).keys;
  if (!__builtin_cpu_supports("ssse3")) return state.SkipWithError("no SSSE3");
  for (auto _ : state) {
    const PartialKeyPages<ShuffleWindow> pages(keys, PaperPrefix::kNonContiguous, Threads());
    benchmark::DoNotOptimize(pages.memory_bytes());
  }
  using benchmark::Counter;
  const auto entries = static_cast<double>(keys.size);
  state.counters["entries_per_s"] = Counter(entries, Counter::kIsIterationInvariantRate);
  state.counters["bytes_per_s"] =
      Counter(entries * static_cast<double>(keys.bytes), Counter::kIsIterationInvariantRate);
}

template <typename Run>
void Register(const std::string& name, Run run) {
  benchmark::RegisterBenchmark(("FastPaper/" + name).c_str(), run)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void RegisterKeySize(size_t bytes) {
  const auto subject = [bytes]() -> const Subject& {
    return Subject::Get(bytes, bytes < 8 ? 256 : 10, KeyCount() * kFigure10Bytes / bytes);
  };
  const auto name = [bytes](const char* way) {
    return absl::StrFormat("key_size/%s/bytes:%d", way, bytes);
  };
  Register(name("compressed"), [=](benchmark::State& state) {
    Compressed<ShuffleWindow>(state, subject(), PaperPrefix::kNonContiguous);
  });
  Register(name("compressed_pext"), [=](benchmark::State& state) {
    Compressed<PextWindow>(state, subject(), PaperPrefix::kNonContiguous);
  });
  Register(name("uncompressed"), [=](benchmark::State& state) { Uncompressed(state, subject()); });
  Register(name("cpu:partial_key"), [=](benchmark::State& state) { PartialKey(state, subject()); });
}

const bool registered = [] {
  for (size_t values : {2, 4, 8, 10, 16, 32, 64, 256}) {
    for (const bool contiguous : {false, true}) {
      Register(absl::StrFormat("false_positives/values:%d/%s", values, contiguous ? "ccp" : "nccp"),
               [=](benchmark::State& state) {
                 Compressed<ShuffleWindow>(
                     state, Subject::Get(16, values, KeyCount()),
                     contiguous ? PaperPrefix::kContiguous : PaperPrefix::kNonContiguous);
               });
    }
  }
  for (size_t bytes : {4, 8, 16, 32, 64, 128}) RegisterKeySize(bytes);
  Register("partial_keys_build/bytes:16", Build);
  return true;
}();

}  // namespace
}  // namespace cairn::bench
#endif
