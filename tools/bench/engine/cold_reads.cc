// ColdReads/<what>/rows:<n>: 10,000 random rows or keys of an index whose files are not in memory:
//   find: the rows of 10,000 keys, one row each, in one batch;
//   primary_keys: the primary keys of 10,000 rows;
//   columns: an included column of 10,000 rows;
//   device_one, device_together: 10,000 reads of random pages of the file with the primary keys, by
//     one thread and by 128, which is the disk's own time.
// Before each call, the pages of the index's files leave the memory. The key is a random u64, also
// included; primary keys have 48 bytes, and their file has 0.9 GB for 20 million rows. The
// temporary directory must be on a disk (TMPDIR).
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/registration.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::cold_reads {
namespace {

constexpr uint64_t kRows = 20'000'000;
constexpr size_t kReads = 10'000;
constexpr size_t kPageBytes = 4096;
constexpr size_t kThreads = 128;

uint64_t Scrambled(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

uint64_t KeyOf(uint64_t row) {
  return Scrambled(row + 1);
}

// Rows whose primary keys have 8 bytes in ascending order and 40 random ones. The value is the key.
class Rows final : public SnapshotSource {
 public:
  explicit Rows(uint64_t rows) : rows_(rows) {}

  absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int) const override {
    return std::vector<PrimaryKeyRange>(1);
  }
  absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange&) const override {
    return std::make_unique<Cursor>(rows_);
  }
  absl::Status Get(absl::Span<const std::string_view>,
                   const std::function<absl::Status(size_t, const RowView&)>&) const override {
    return absl::UnimplementedError("a build reads no single rows");
  }
  SequenceNumber sequence() const override { return 1; }
  const std::string& database_id() const override { return name_; }
  const std::string& column_family() const override { return name_; }
  const std::string& description() const override { return name_; }
  uint64_t approximate_rows() const override { return rows_; }
  uint64_t approximate_bytes() const override { return 0; }

 private:
  class Cursor final : public RowCursor {
   public:
    explicit Cursor(uint64_t rows) : rows_(rows) {}
    bool Next() override {
      if (next_ == rows_) return false;
      key_ = BenchDatabase::BigEndian(next_);
      for (uint64_t i = 0; i < 5; ++i) {
        key_ += BenchDatabase::BigEndian(Scrambled(next_ * 5 + i + 1));
      }
      value_ = BenchDatabase::BigEndian(KeyOf(next_++));
      row_.primary_key = key_;
      row_.value = value_;
      return true;
    }
    const RowView& row() const override { return row_; }
    absl::Status status() const override { return absl::OkStatus(); }

   private:
    const uint64_t rows_;
    uint64_t next_ = 0;
    std::string key_, value_;
    RowView row_;
  };

  const uint64_t rows_;
  const std::string name_ = "made";
};

const std::string& Directory(uint64_t rows) {
  static const TemporaryDirectory directory;
  static const std::string built = [&] {
    std::string path = directory.path() + "/index";
    const IndexSpec spec =
        OrThrow(IndexSpec::Parse("key = value[0:8]:u64be, include(again = value[0:8]:u64be)"));
    OrThrow(SecondaryIndex::Build(Rows(rows), spec, path).status());
    return path;
  }();
  return built;
}

// Removes the pages of the files in a directory from memory, also those that this process has
// mapped.
void ForgetPages(const std::string& directory) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(directory) == std::string::npos) continue;
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    if (madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT) != 0) {
      throw std::runtime_error("cannot page out " + line);
    }
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const int file = open(entry.path().c_str(), O_RDONLY);
    if (file < 0 || fdatasync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) {
      throw std::runtime_error("cannot remove " + entry.path().string() + " from the page cache");
    }
    close(file);
  }
}

std::shared_ptr<const SecondaryIndex> OpenIndex(uint64_t rows) {
  OpenOptions options;
  options.verify = VerifyLevel::kMetadata;
  options.calibration = Calibration::kNone;
  options.ordered_indexes = {"cpu:packed"};
  return OrThrow(SecondaryIndex::Open(Directory(rows), options));
}

// read(index, random) is timed.
template <typename Prepare, typename Read>
void Measure(benchmark::State& state, uint64_t rows, Prepare prepare, Read read) {
  std::mt19937_64 random(1);
  const std::shared_ptr<const SecondaryIndex> index = OpenIndex(rows);
  for (auto _ : state) {
    state.PauseTiming();
    ForgetPages(Directory(rows));
    prepare(random);
    state.ResumeTiming();
    read(*index);
  }
  state.counters["reads_per_s"] =
      benchmark::Counter(kReads, benchmark::Counter::kIsIterationInvariantRate);
}

void Find(benchmark::State& state, uint64_t rows) {
  std::vector<uint64_t> keys(kReads);
  FindResult found;
  Measure(
      state, rows,
      [&](auto& random) {
        for (uint64_t& key : keys) key = KeyOf(random() % rows);
      },
      [&](const SecondaryIndex& index) {
        OrThrow(index.Execute(Batch::Find(keys, &found)));
        if (found.row_ids.size() < kReads) throw std::runtime_error("a row is missing");
      });
}

template <typename Read>
void OfRows(benchmark::State& state, uint64_t rows, Read read) {
  std::vector<GlobalRowId> row_ids(kReads);
  Measure(
      state, rows,
      [&](auto& random) {
        for (GlobalRowId& row : row_ids) row = random() % rows;
      },
      [&](const SecondaryIndex& index) { read(index, row_ids); });
}

void PrimaryKeys(benchmark::State& state, uint64_t rows) {
  OfRows(state, rows, [](const SecondaryIndex& index, const std::vector<GlobalRowId>& row_ids) {
    StringList primary_keys;
    OrThrow(index.PrimaryKeys(row_ids, &primary_keys));
    benchmark::DoNotOptimize(primary_keys);
  });
}

void Columns(benchmark::State& state, uint64_t rows) {
  OfRows(state, rows, [](const SecondaryIndex& index, const std::vector<GlobalRowId>& row_ids) {
    std::vector<ColumnValues> columns;
    OrThrow(index.Columns(row_ids, {"again"}, &columns));
    benchmark::DoNotOptimize(columns);
  });
}

void Device(benchmark::State& state, uint64_t rows, size_t threads) {
  std::string largest;
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Directory(rows))) {
    if (!entry.is_regular_file() || entry.file_size() <= bytes) continue;
    bytes = entry.file_size();
    largest = entry.path().string();
  }
  std::mt19937_64 random(1);
  std::vector<uint64_t> offsets(kReads);
  for (auto _ : state) {
    state.PauseTiming();
    ForgetPages(Directory(rows));
    const int file = open(largest.c_str(), O_RDONLY);
    if (file < 0) throw std::runtime_error("cannot open " + largest);
    posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
    for (uint64_t& offset : offsets) offset = random() % (bytes / kPageBytes + 1) * kPageBytes;
    state.ResumeTiming();
    std::vector<std::thread> readers;
    for (size_t t = 0; t < threads; ++t) {
      readers.emplace_back([&, t] {
        char page[kPageBytes];
        for (size_t i = t; i < kReads; i += threads) {
          if (pread(file, page, kPageBytes, static_cast<off_t>(offsets[i])) < 0) std::abort();
        }
      });
    }
    for (std::thread& reader : readers) reader.join();
    state.PauseTiming();
    close(file);
    state.ResumeTiming();
  }
  state.counters["reads_per_s"] =
      benchmark::Counter(kReads, benchmark::Counter::kIsIterationInvariantRate);
}

const RegisterInMain registered([] {
  const uint64_t rows = BenchRows(kRows);
  const auto add = [&](const char* what, auto measure) {
    benchmark::RegisterBenchmark(absl::StrFormat("ColdReads/%s/rows:%d", what, rows).c_str(),
                                 [=](benchmark::State& state) { measure(state, rows); })
        ->Iterations(5)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  add("find", Find);
  add("primary_keys", PrimaryKeys);
  add("columns", Columns);
  add("device_one", [](benchmark::State& state, uint64_t n) { Device(state, n, 1); });
  add("device_together", [](benchmark::State& state, uint64_t n) { Device(state, n, kThreads); });
});

}  // namespace
}  // namespace cairn::bench::cold_reads
