// Merge/<key>/n:<k>/delta:<percent>: a base of 2^k rows, one entry each, merged with a delta of
// <percent> percent of the rows into a new base on all cores, syncs included. Half of the changed
// rows get another key, a quarter are deleted and a quarter are new. <key> is u32, u64 or text
// (21 bytes); primary keys have 16 bytes.
//
// Baselines, with the same number of threads and the same kinds of files:
//   copy     the limit: copies the base's entries from one run file to another, and the bytes of
//            its row table
//   rebuild  writes the base from sorted entries and sorted primary keys in memory: a build without
//            its scan and its sort
//
// Files are in the temporary directory (TMPDIR). In memory (/dev/shm) they show the CPU work;
// otherwise mostly the disk.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/delta/delta_writer.h"
#include "engine/merge/base_merge.h"
#include "engine/rows/row_table_file.h"
#include "index/files/index_directory.h"
#include "index/files/run_file.h"
#include "index/files/section_file_writer.h"
#include "index/machine/parallel.h"
#include "index/machine/topology.h"
#include "index/query/physical_key.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::merge {
namespace {

constexpr size_t kBatch = 1 << 16;

// Ascending with `row`; odd numbers belong to new rows.
std::string PrimaryKey(uint64_t row) {
  uint64_t words[2] = {__builtin_bswap64(row << 16), row * 0x9E3779B97F4A7C15ull};
  return std::string(reinterpret_cast<const char*>(words), sizeof words);
}

std::string TextKey(uint64_t number) {
  return absl::StrFormat("user/%016x", number);
}

// Ascending keys as columns in memory.
template <typename Key>
struct Keys {
  explicit Keys(size_t n) : keys(UniformKeys<Key>(n)) {}
  std::vector<Key> keys;
};
template <>
struct Keys<std::string_view> {
  explicit Keys(size_t n) {
    for (uint64_t number : UniformKeys<uint64_t>(n)) heap += TextKey(number);
    const size_t size = heap.size() / n;
    for (size_t i = 0; i < n; ++i) keys.push_back(std::string_view(heap).substr(i * size, size));
  }
  std::string heap;
  std::vector<std::string_view> keys;
};

template <typename Key>
uint64_t KeyBytes(absl::Span<const Key> keys) {
  uint64_t bytes = 0;
  if constexpr (std::is_same_v<Key, std::string_view>) {
    for (std::string_view key : keys) bytes += key.size();
  }
  return bytes;
}

void AppendKey(uint64_t number, EncodedKeys* keys) {
  switch (keys->kind()) {
    case PhysicalType::kU32:
      return keys->AppendU32(static_cast<uint32_t>(number));
    case PhysicalType::kU64:
      return keys->AppendU64(number);
    case PhysicalType::kBytes:
      return keys->AppendBytes(TextKey(number));
  }
}

template <typename Key>
class MergeBench {
 public:
  MergeBench(int log2_n, int percent) : n_(size_t{1} << log2_n) {
    {
      const Keys<Key> keys(n_);
      std::vector<RowId> row_ids(n_);
      for (size_t i = 0; i < n_; ++i) row_ids[i] = ScatteredRow(i, n_);
      WriteBase(keys.keys, row_ids, "base");
    }
    run_ = OrThrow(OpenRun(Path("base.run"), VerifyLevel::kFull)).run;
    table_file_ =
        std::make_unique<RowTableFile>(OrThrow(OpenRowTable(Path("base.tbl"), VerifyLevel::kFull)));
    if (percent > 0) {
      const auto writer = OrThrow(DeltaWriter::Create(run_, table_file_->table, threads_));
      delta_ = OrThrow(writer->Apply(Updates(n_ * static_cast<size_t>(percent) / 100)));
    }
  }

  void Merge(benchmark::State& state) {
    for (auto _ : state) {
      const auto directory = OrThrow(IndexDirectory::OpenForWrite(Path("merged")));
      merged_ = OrThrow(MergeBase(*delta_, directory.get(), {}));
      state.PauseTiming();
      Check(*directory);
      state.ResumeTiming();
    }
    SetCounters(state, merged_.entries);
  }
  void Copy(benchmark::State& state) {
    for (auto _ : state) {
      ParallelFor(threads_, 2, [&](size_t half) { half == 0 ? CopyRun() : CopyRowTable(); });
      state.PauseTiming();
      std::filesystem::remove(Path("copy.run"));
      std::filesystem::remove(Path("copy.tbl"));
      state.ResumeTiming();
    }
    SetCounters(state, n_);
  }
  void Rebuild(benchmark::State& state) {
    const Keys<Key> keys(n_);
    std::vector<RowId> row_ids(n_);
    for (size_t i = 0; i < n_; ++i) row_ids[i] = ScatteredRow(i, n_);
    for (auto _ : state) {
      WriteBase(keys.keys, row_ids, "rebuilt");
      state.PauseTiming();
      std::filesystem::remove(Path("rebuilt.run"));
      std::filesystem::remove(Path("rebuilt.tbl"));
      state.ResumeTiming();
    }
    SetCounters(state, n_);
  }

 private:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  void WriteBase(absl::Span<const Key> keys, absl::Span<const RowId> row_ids,
                 const std::string& name) {
    ParallelFor(threads_, 2, [&](size_t half) {
      if (half == 0) {
        const auto file = OrThrow(RunFileWriter::Create(Path(name + ".run"), kKindOf<Key>));
        OrThrow(file->Begin(n_, KeyBytes(keys)));
        for (size_t i = 0; i < n_; i += kBatch) {
          OrThrow(file->Append(keys.subspan(i, kBatch), row_ids.subspan(i, kBatch)));
        }
        return OrThrow(file->Finish());
      }
      const auto table = OrThrow(RowTableFileWriter::Create(Path(name + ".tbl"), 1));
      for (size_t row = 0; row < n_; ++row)
        OrThrow(table->table().part(0).Add(PrimaryKey(2 * row)));
      OrThrow(table->Finish());
    });
  }

  // Updates of `rows` rows, spread evenly.
  RowUpdates Updates(size_t rows) const {
    Random random(kSeed);
    RowUpdates updates(kKindOf<Key>);
    const size_t stride = n_ / rows;
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = i * stride + random.Below(stride);
      const size_t kind = random.Below(4);
      if (kind != 0) AppendKey(random(), &updates.keys);
      updates.EndRow(PrimaryKey(2 * row + (kind == 1 ? 1 : 0)));
    }
    return updates;
  }

  void CopyRun() {
    const auto file = OrThrow(RunFileWriter::Create(Path("copy.run"), run_.kind()));
    const auto column = ColumnOf<Key>(run_);
    std::vector<Key> keys;
    uint64_t key_bytes = 0;
    if constexpr (std::is_same_v<Key, std::string_view>) key_bytes = column.keys.offset(n_);
    OrThrow(file->Begin(n_, key_bytes));
    for (size_t i = 0; i < n_; i += kBatch) {
      const auto row_ids = run_.row_ids().subspan(i, kBatch);
      keys.resize(row_ids.size());
      for (size_t k = 0; k < keys.size(); ++k) keys[k] = column[i + k];
      OrThrow(file->Append(absl::MakeConstSpan(keys), row_ids));
    }
    OrThrow(file->Finish());
  }
  void CopyRowTable() {
    const auto file = OrThrow(SectionFileWriter::Create(Path("copy.tbl"), kRowTableFileFormat));
    for (const Section& section : table_file_->file.sections()) {
      SectionWriter* const to = OrThrow(file->AddSection(section.id, section.size));
      OrThrow(to->AppendArray(table_file_->file.BytesOf(section)));
      OrThrow(to->Close());
    }
    OrThrow(file->Finish());
  }

  // Checks the number and the order of entries and rows; tests check their contents.
  void Check(const IndexDirectory& directory) const {
    const DeltaStats stats = delta_->Stats();
    const auto run = OrThrow(OpenRun(directory.PathOf(merged_.run.name), VerifyLevel::kFull));
    const auto rows =
        OrThrow(OpenRowTable(directory.PathOf(merged_.row_table.name), VerifyLevel::kFull));
    if (run.run.size() != stats.entries || rows.table.rows() != stats.rows) std::abort();
  }

  void SetCounters(benchmark::State& state, uint64_t entries) const {
    state.counters["entries_per_s"] = benchmark::Counter(
        static_cast<double>(entries), benchmark::Counter::kIsIterationInvariantRate);
    const uint64_t bytes = run_.memory_bytes() + table_file_->table.memory_bytes();
    state.counters["bytes_per_entry"] = static_cast<double>(bytes) / static_cast<double>(n_);
  }

  const size_t n_;
  const int threads_ = Topology::Get().Threads(0);
  const TemporaryDirectory directory_;
  SortedRun run_;
  std::unique_ptr<RowTableFile> table_file_;
  std::shared_ptr<const Delta> delta_;
  WrittenBase merged_;
};

template <typename Key>
void Register(const char* key) {
  for (int log2_n : {20, 23}) {
    const auto add = [&](const std::string& what, int percent, auto run) {
      const std::string name = absl::StrFormat("Merge/%s/n:%d/%s", key, log2_n, what);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) {
                                     MergeBench<Key> bench(log2_n, percent);
                                     (bench.*run)(state);
                                   })
          ->Unit(benchmark::kMillisecond)
          ->MeasureProcessCPUTime()
          ->UseRealTime();
    };
    for (int percent : {1, 10}) {
      add(absl::StrFormat("delta:%d", percent), percent, &MergeBench<Key>::Merge);
    }
    add("copy", 0, &MergeBench<Key>::Copy);
    add("rebuild", 0, &MergeBench<Key>::Rebuild);
  }
}

const bool registered = [] {
  Register<uint32_t>("u32");
  Register<uint64_t>("u64");
  Register<std::string_view>("text");
  return true;
}();

}  // namespace
}  // namespace cairn::bench::merge
