// ShardedBuild/n:<k>: one sharded index of 2^k entries, built out of core by its steps, each
// within a memory budget of 1 GiB: 16 segments extracted, four at a time, a plan, 16 shards at the
// same time, publishing. The index is then opened from its mapped files and queried. A rule
// generates the 2^(k-6) rows of 64 keys of 32 bits each, so that there is no database on the disk.
// The rule can be inverted, so every answer is checked. Counters: seconds of each step,
// entries_per_s of all steps, anonymous_bytes (peak memory without mapped files).
//
// k is CAIRN_BENCH_LOG2_N (26 by default), at most 33. CAIRN_BENCH_SEGMENTS and CAIRN_BENCH_SHARDS
// are comma-separated lists of directories (default: temporary ones), over which segments and
// shards are distributed round-robin. 2^33 entries take 65 GiB for segments and 68 GiB for shards,
// in total over all file systems.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cairn/extractor.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "tools/bench/data.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/registration.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::large_shards {
namespace {

constexpr uint32_t kParts = 16;  // segments, and shards
constexpr uint32_t kSegmentsAtOnce = 4;
constexpr uint64_t kBudget = uint64_t{1} << 30;  // of each of these
constexpr int kKeysOfRow = 64;
constexpr size_t kQueries = size_t{1} << 20;

// Entry e, key e % 64 of row e / 64, has a distinct random-looking number of 34 bits. Its key is
// the upper 32 bits. So a key has 0 to 4 entries if there are 2^33.
constexpr int kNumberBits = 34;
constexpr uint64_t kNumberMask = (uint64_t{1} << kNumberBits) - 1;
constexpr std::array<uint64_t, 3> kFactors = {0xBF58476D1CE4E5B9, 0x94D049BB133111EB,
                                              0xD6E8FEB86659FD93};

uint64_t NumberOf(uint64_t entry) {
  uint64_t x = entry;
  for (const uint64_t factor : kFactors) {
    x = (x * factor) & kNumberMask;
    x ^= x >> (kNumberBits / 2);
  }
  return x;
}

// The multiplicative inverse of an odd number. Each step of Newton's iteration doubles the number
// of correct bits.
uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

uint64_t EntryOf(uint64_t number) {
  uint64_t x = number;
  for (size_t i = kFactors.size(); i-- > 0;) {
    x ^= x >> (kNumberBits / 2);
    x = (x * Inverse(kFactors[i])) & kNumberMask;
  }
  return x;
}

std::string PrimaryKeyOf(uint64_t row) {
  return BenchDatabase::BigEndian(row);
}
uint64_t RowOf(std::string_view primary_key) {
  uint64_t row = 0;
  for (const char byte : primary_key) row = row << 8 | static_cast<uint8_t>(byte);
  return row;
}

class RuleExtractor final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* sink) const override {
    std::array<uint64_t, kKeysOfRow> keys;
    const uint64_t first = RowOf(row.primary_key) * kKeysOfRow;
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = NumberOf(first + i) >> (kNumberBits - 32);
    }
    std::sort(keys.begin(), keys.end());
    for (const uint64_t key : keys) sink->Add(key);
    return absl::OkStatus();
  }
};

class RuleCursor final : public RowCursor {
 public:
  RuleCursor(uint64_t begin, uint64_t end) : next_(begin), end_(end) {}
  bool Next() override {
    if (next_ >= end_) return false;
    key_ = PrimaryKeyOf(next_++);
    row_.primary_key = key_;
    return true;
  }
  const RowView& row() const override { return row_; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  uint64_t next_, end_;
  std::string key_;
  RowView row_;
};

// The rows [0, rows) of the rule.
class RuleSource final : public SnapshotSource {
 public:
  explicit RuleSource(uint64_t rows) : rows_(rows) {}

  absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int parts) const override {
    const auto cut = [&](int i) { return rows_ * static_cast<uint64_t>(i) / parts; };
    std::vector<PrimaryKeyRange> ranges;
    for (int i = 0; i < parts; ++i) {
      ranges.push_back({i == 0 ? "" : PrimaryKeyOf(cut(i)), PrimaryKeyOf(cut(i + 1)), false});
    }
    ranges.back() = {ranges.back().lower, "", true};
    return ranges;
  }
  absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange& range) const override {
    return std::make_unique<RuleCursor>(range.lower.empty() ? 0 : RowOf(range.lower),
                                        range.open ? rows_ : RowOf(range.upper));
  }
  absl::Status Get(
      absl::Span<const std::string_view> primary_keys,
      const std::function<absl::Status(size_t, const RowView&)>& visitor) const override {
    for (size_t i = 0; i < primary_keys.size(); ++i) {
      if (primary_keys[i].size() != 8 || RowOf(primary_keys[i]) >= rows_) continue;
      const absl::Status visited = visitor(i, {primary_keys[i], {}, {}});
      if (!visited.ok()) return visited;
    }
    return absl::OkStatus();
  }
  SequenceNumber sequence() const override { return 1; }
  const std::string& database_id() const override { return name_; }
  const std::string& column_family() const override { return family_; }
  const std::string& description() const override { return name_; }
  uint64_t approximate_rows() const override { return rows_; }
  uint64_t approximate_bytes() const override { return 0; }

 private:
  const uint64_t rows_;
  const std::string name_ = "rows made by a rule", family_ = "default";
};

// Records the process's peak anonymous memory during its lifetime.
class MemoryWatch {
 public:
  MemoryWatch() : watch_([this] { Watch(); }) {}
  ~MemoryWatch() {
    done_ = true;
    watch_.join();
  }
  uint64_t most() const { return most_; }

 private:
  static uint64_t AnonymousBytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("RssAnon:", 0) == 0) {
        return std::strtoull(line.c_str() + sizeof "RssAnon:", nullptr, 10) << 10;
      }
    }
    return 0;
  }
  void Watch() {
    while (!done_) {
      most_ = std::max<uint64_t>(most_, AnonymousBytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  std::atomic<bool> done_ = false;
  std::atomic<uint64_t> most_ = 0;
  std::thread watch_;
};

// Directories for round-robin distribution: those of a variable, or a temporary one.
class Places {
 public:
  explicit Places(const char* variable) {
    const char* const list = std::getenv(variable);
    for (const absl::string_view place : absl::StrSplit(list == nullptr ? "" : list, ',')) {
      if (!place.empty()) places_.emplace_back(place);
    }
    if (!places_.empty()) return;
    temporary_ = std::make_unique<TemporaryDirectory>();
    places_.push_back(temporary_->path());
  }
  const std::string& operator[](size_t i) const { return places_[i % places_.size()]; }

 private:
  std::vector<std::string> places_;
  std::unique_ptr<TemporaryDirectory> temporary_;
};

// The rows that have a key, ascending.
std::vector<uint64_t> RowsOf(uint32_t key, uint64_t entries) {
  std::vector<uint64_t> rows;
  constexpr int kBelow = kNumberBits - 32;
  for (uint64_t low = 0; low < uint64_t{1} << kBelow; ++low) {
    const uint64_t entry = EntryOf(uint64_t{key} << kBelow | low);
    if (entry < entries) rows.push_back(entry / kKeysOfRow);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// Queries keys, half of them in the index: their rows, and the number of entries in the 64 keys
// from each on. Throws if an answer contradicts the rule.
void CheckAnswers(const SecondaryIndex& index, uint64_t entries, uint64_t built) {
  std::vector<uint32_t> keys, upper;
  Random random(kSeed);
  for (size_t i = 0; i < kQueries; ++i) {
    const uint64_t draw = random();
    keys.push_back(static_cast<uint32_t>(i % 2 == 0 ? NumberOf(draw % entries) >> (kNumberBits - 32)
                                                    : draw >> 32));
    upper.push_back(keys.back() + std::min<uint32_t>(63, UINT32_MAX - keys.back()));
  }
  FindResult matches;
  OrThrow(index.Find(absl::MakeConstSpan(keys), &matches));
  StringList primary_keys;
  OrThrow(index.PrimaryKeys(matches, &primary_keys));
  RangeBatch ranges = RangeBatch::HalfOpen(absl::MakeConstSpan(keys), absl::MakeConstSpan(upper));
  ranges.upper_bound = Bound::kInclusive;
  std::vector<uint64_t> counts(keys.size());
  OrThrow(index.Count(ranges, absl::MakeSpan(counts)));
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::vector<uint64_t> rows = RowsOf(keys[i], entries);
    if (rows.size() != matches[i].size()) throw std::runtime_error("rows are missing");
    for (size_t j = 0; j < rows.size(); ++j) {
      if (RowOf(primary_keys[matches.offsets[i] + j]) != rows[j]) {
        throw std::runtime_error("another row was found");
      }
    }
    if (i % 64 != 0) continue;  // counting by the rule is slow
    uint64_t count = rows.size();
    for (uint32_t key = keys[i]; key != upper[i];) count += RowsOf(++key, entries).size();
    if (count != counts[i]) throw std::runtime_error("entries were counted wrongly");
  }
  uint64_t count = 0;
  OrThrow(index.Count(RangeBatch::Everything(PhysicalType::kU32), absl::MakeSpan(&count, 1)));
  if (count != built) throw std::runtime_error("entries were lost");
}

// Calls step(i) for all i < steps, up to `at_once` at a time; throws the first error.
void AllAtOnce(uint32_t steps, uint32_t at_once,
               const std::function<absl::Status(uint32_t)>& step) {
  std::atomic<uint32_t> next = 0;
  std::vector<absl::Status> errors(at_once);
  std::vector<std::thread> workers;
  for (absl::Status& error : errors) {
    workers.emplace_back([&] {
      for (uint32_t i; error.ok() && (i = next.fetch_add(1)) < steps;) error = step(i);
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const absl::Status& error : errors) OrThrow(error);
}

void BuildLargeShards(benchmark::State& state, int log2_n) {
  const uint64_t entries = uint64_t{1} << log2_n;
  const RuleSource source(entries / kKeysOfRow);
  const IndexSpec spec = OrThrow(IndexSpec::Parse("custom('large_shards'):u32"));
  const Places segment_places("CAIRN_BENCH_SEGMENTS"), shard_places("CAIRN_BENCH_SHARDS");
  const std::string& directory = shard_places[0];
  for (auto _ : state) {
    MemoryWatch memory;
    auto began = std::chrono::steady_clock::now();
    double all_seconds = 0;
    const auto note = [&](const char* step) {
      const auto now = std::chrono::steady_clock::now();
      const double seconds = std::chrono::duration<double>(now - began).count();
      state.counters[absl::StrCat(step, "_s")] = seconds;
      all_seconds += seconds;
      began = now;
    };
    BuildOptions options;
    options.memory_budget = kBudget;
    const auto threads_of_each = [](uint32_t at_once) {
      return static_cast<int>(std::max(1u, std::thread::hardware_concurrency() / at_once));
    };
    const std::vector<PrimaryKeyRange> ranges = OrThrow(source.Split(kParts));
    std::vector<std::string> segments(kParts);
    std::atomic<uint64_t> built = 0;
    options.threads = threads_of_each(kSegmentsAtOnce);
    AllAtOnce(kParts, kSegmentsAtOnce, [&](uint32_t i) {
      segments[i] = segment_places[i] + "/" + SegmentDirectoryName(i);
      const auto report = ExtractSegment(source, ranges[i], spec, segments[i], options);
      if (report.ok()) built += report->entries;
      return report.status();
    });
    note("extract");
    const std::string plan = segment_places[0] + "/plan";
    options.threads = 0;
    OrThrow(SplitSegments(segments, kParts, plan, options));
    note("split");
    options.threads = threads_of_each(kParts);
    AllAtOnce(kParts, kParts, [&](uint32_t i) {
      const std::string name = ShardDirectoryName(i);
      const std::string path = shard_places[i] + "/" + name;
      // The entries of an index's directory may be links.
      if (shard_places[i] != directory) {
        std::filesystem::create_directory_symlink(path, directory + "/" + name);
      }
      return BuildShard(plan, i, path, options).status();
    });
    note("build");
    options.threads = 0;
    OrThrow(PublishShards(plan, directory, options));
    note("publish");
    state.SetIterationTime(all_seconds);
    state.counters["anonymous_bytes"] = static_cast<double>(memory.most());
    state.counters["entries"] = static_cast<double>(built.load());
    state.counters["entries_per_s"] = static_cast<double>(built.load()) / all_seconds;

    OpenOptions open;
    open.verify = VerifyLevel::kMetadata;
    open.ordered_indexes = {"cpu:sorted_array"};
    open.calibration = Calibration::kNone;
    began = std::chrono::steady_clock::now();
    const auto index = OrThrow(SecondaryIndex::Open(directory, open));
    note("open");
    CheckAnswers(*index, entries, built);
    note("check");
  }
}

const RegisterInMain registered([] {
  OrThrow(RegisterExtractor("large_shards", std::make_shared<RuleExtractor>()));
  const char* const n = std::getenv("CAIRN_BENCH_LOG2_N");
  const int log2_n = n != nullptr ? std::min(std::atoi(n), 33) : 26;
  benchmark::RegisterBenchmark(absl::StrCat("ShardedBuild/n:", log2_n).c_str(), BuildLargeShards,
                               log2_n)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kSecond);
});

}  // namespace
}  // namespace cairn::bench::large_shards
