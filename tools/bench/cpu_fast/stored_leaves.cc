// StoredLeaves/<key>/n:<log2 n>: an index over a run file in the page cache, with one entry in
// each n-th of the key space. It is opened as SecondaryIndex::Open does with
// VerifyLevel::kMetadata, and then queried for 1,000 first rows. Its leaves are either stored with
// the entries, which are not read then, or built.
//
// Counters:
//   stored_ms, built_ms  medians; built_ms includes order_ms;
//   order_ms             the check of the entries' order;
//   stored_mb, built_mb  RssAnon that the opened index adds;
//   mapped_ns            ns per first row with leaves in the mapping, batches of 2^18;
//   to_built, to_copied  mapped_ns divided by the time with leaves that were built, or copied from
//                        the file (medians of adjacent ratios)
//
// The file is in TMPDIR, and takes 15 to 22 bytes per entry of u32, 25 of u64.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/packed/leaves_writer.h"
#include "cpu_fast/packed/packed_index.h"
#include "cpu_fast/packed/stored_packed_index.h"
#include "index/files/run_file.h"
#include "index/machine/topology.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench::stored_leaves {
namespace {

constexpr size_t kFirstBatch = 1000;
constexpr size_t kBatch = size_t{1} << 18;
constexpr size_t kAppend = size_t{1} << 16;

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Memory of this process that is not backed by a file, in MB.
double AnonymousMb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::stod(line.substr(8)) / 1024;
  }
  return 0;
}

// A run file with leaves, for the time of a benchmark.
template <typename Key>
class LeafFile {
 public:
  explicit LeafFile(int log2_n)
      : path_((std::filesystem::temp_directory_path() / absl::StrFormat("cairn_bench_%d", getpid()))
                  .string()),
        step_bits_(static_cast<int>(sizeof(Key)) * 8 - log2_n) {
    const size_t n = size_t{1} << log2_n;
    auto writer = OrThrow(
        RunFileWriter::Create(path_, sizeof(Key) == 4 ? PhysicalType::kU32 : PhysicalType::kU64));
    OrThrow(writer->Begin(n, n * sizeof(Key)));
    Random random(kSeed);
    std::vector<Key> keys(kAppend);
    std::vector<RowId> rows(kAppend);
    for (size_t first = 0; first < n; first += kAppend) {
      for (size_t i = 0; i < kAppend; ++i) {
        keys[i] = KeyAt(first + i, random);
        rows[i] = static_cast<RowId>((first + i) * 2654435761 % n);
      }
      OrThrow(writer->Append(absl::MakeConstSpan(keys), absl::MakeConstSpan(rows)));
    }
    OrThrow(WriteLeaves(writer.get(), Topology::Get().cores()));
    OrThrow(writer->Finish());
  }
  ~LeafFile() { unlink(path_.c_str()); }
  LeafFile(const LeafFile&) = delete;
  LeafFile& operator=(const LeafFile&) = delete;

  RunFile Open(ContentCheck check) const {
    return OrThrow(OpenRun(
        OrThrow(SectionFile::Open(path_, kRunFileFormat, VerifyLevel::kMetadata)), 0, check));
  }
  std::vector<Key> Queries(size_t n, size_t count) const {
    Random random(kSeed + 1);
    std::vector<Key> keys(count);
    for (Key& key : keys) key = KeyAt(random.Below(n), random);
    return keys;
  }

 private:
  Key KeyAt(size_t i, Random& random) const {
    return static_cast<Key>((static_cast<Key>(i) << step_bits_) +
                            random.Below(uint64_t{1} << step_bits_));
  }

  const std::string path_;
  const int step_bits_;
};

enum class From : uint8_t { kBuilt, kMapped, kCopied };

std::unique_ptr<OrderedIndex> MakeIndex(const RunFile& file, From from) {
  if (from == From::kBuilt) return OrThrow(MakePackedIndex(file.run));
  const auto leaves = OrThrow(FindStoredLeaves(file));
  return OrThrow(OpenPackedIndex(
      file.run, {}, *leaves, from == From::kMapped ? LeafMemory::kMapped : LeafMemory::kCopied));
}

template <typename Key>
double Ns(const OrderedIndex& index, absl::Span<const Key> keys, std::vector<RowId>* rows) {
  const auto start = Clock::now();
  OrThrow(
      index.Execute(Batch::FindFirst(KeyBatch(keys), absl::MakeSpan(*rows).first(keys.size()))));
  return MsSince(start) * 1e6 / static_cast<double>(keys.size());
}

// Measures the time and the memory of opening.
template <typename Key>
void MeasureOpen(const LeafFile<Key>& file, absl::Span<const Key> keys, int rounds,
                 benchmark::State& state) {
  std::vector<RowId> rows(keys.size());
  std::vector<double> order_ms;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    file.Open(ContentCheck::kNow);
    order_ms.push_back(MsSince(start));
  }
  state.counters["order_ms"] = Median(order_ms);
  std::vector<double> ms[2], mb[2];
  const auto measure = [&](From from) {
    const auto at = static_cast<size_t>(from == From::kMapped);
    const double before = AnonymousMb();
    const auto start = Clock::now();
    const auto index = MakeIndex(
        file.Open(from == From::kMapped ? ContentCheck::kLater : ContentCheck::kNow), from);
    Ns(*index, keys, &rows);
    ms[at].push_back(MsSince(start));
    mb[at].push_back(AnonymousMb() - before);
  };
  // Not alternately, since built leaves may evict files from the page cache.
  for (From from : {From::kMapped, From::kBuilt}) {
    for (int round = 0; round < rounds; ++round) measure(from);
  }
  state.counters["stored_ms"] = Median(ms[1]);
  state.counters["built_ms"] = Median(ms[0]);
  state.counters["stored_mb"] = Median(mb[1]);
  state.counters["built_mb"] = Median(mb[0]);
}

// The time of a query once all data is in memory.
template <typename Key>
void MeasureLookups(const RunFile& file, absl::Span<const Key> keys, benchmark::State& state) {
  const auto mapped = MakeIndex(file, From::kMapped);
  std::vector<RowId> rows(kBatch), expected(kBatch);
  const char* const names[] = {"to_built", "to_copied"};
  std::vector<double> mapped_ns;
  for (From from : {From::kBuilt, From::kCopied}) {
    const auto other = MakeIndex(file, from);
    std::vector<double> ratios;
    for (size_t round = 0; round < 24; ++round) {
      const auto batch = keys.subspan(round % (keys.size() / kBatch) * kBatch, kBatch);
      const double ns = Ns(*other, batch, &expected);
      mapped_ns.push_back(Ns(*mapped, batch, &rows));
      if (round >= 4) ratios.push_back(mapped_ns.back() / ns);  // pages are mapped by then
      if (rows != expected) return state.SkipWithError("different answers");
    }
    state.counters[names[from == From::kCopied]] = Median(ratios);
  }
  state.counters["mapped_ns"] = Median(mapped_ns);
}

template <typename Key>
void StoredLeavesOf(benchmark::State& state, int log2_n) {
  const LeafFile<Key> file(log2_n);
  const size_t n = size_t{1} << log2_n;
  const std::vector<Key> keys = file.Queries(n, 4 * kBatch);
  for (auto _ : state) {
    MeasureOpen(file, absl::MakeConstSpan(keys).first(kFirstBatch), log2_n < 28 ? 9 : 3, state);
    MeasureLookups(file.Open(ContentCheck::kLater), absl::MakeConstSpan(keys), state);
  }
}

const bool registered = [] {
  for (int log2_n : {20, 24, 28, 30}) {
    const auto add = [&](const char* key, auto run) {
      benchmark::RegisterBenchmark(absl::StrFormat("StoredLeaves/%s/n:%d", key, log2_n).c_str(),
                                   [=](benchmark::State& state) { run(state, log2_n); })
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    add("u32", StoredLeavesOf<uint32_t>);
    if (log2_n < 30) add("u64", StoredLeavesOf<uint64_t>);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::stored_leaves
