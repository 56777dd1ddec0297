// RunFile/<write|open_metadata|open_full>/<key>/n:<log2 n>: writing a sorted run, its sync
// included, and opening it again from the page cache. The limits are also measured: the disk's (one
// thread, 1 MiB writes and a sync, of the same bytes) and the checksum's over bytes in memory.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "index/files/checksum.h"
#include "index/files/file_system.h"
#include "index/files/run_file.h"
#include "index/machine/status_macros.h"
#include "tools/bench/data.h"

namespace cairn::bench::run_file {
namespace {

constexpr size_t kBatch = 1 << 16;

std::string BenchPath() {
  return (std::filesystem::temp_directory_path() / "cairn_bench_run_file").string();
}

// n ascending keys, with their row ids.
struct Data {
  explicit Data(size_t n) : keys(n), row_ids(n) {
    Random random(kSeed);
    for (size_t i = 0; i < n; ++i) {
      keys[i] = random();
      row_ids[i] = static_cast<RowId>(random.Below(kMaxEntries));
    }
    std::sort(keys.begin(), keys.end());
  }
  std::vector<uint64_t> keys;
  std::vector<RowId> row_ids;
  size_t bytes() const { return keys.size() * (sizeof(uint64_t) + sizeof(RowId)); }
};

absl::Status Write(const Data& data) {
  unlink(BenchPath().c_str());
  ASSIGN_OR_RETURN(auto writer, RunFileWriter::Create(BenchPath(), PhysicalType::kU64));
  absl::Status s = writer->Begin(data.keys.size(), data.keys.size() * sizeof(uint64_t));
  for (size_t i = 0; s.ok() && i < data.keys.size(); i += kBatch) {
    s = writer->Append(absl::MakeConstSpan(data.keys).subspan(i, kBatch),
                       absl::MakeConstSpan(data.row_ids).subspan(i, kBatch));
  }
  return s.ok() ? writer->Finish() : s;
}

// An error unless the file holds the data.
absl::Status Verify(const Data& data) {
  ASSIGN_OR_RETURN(const auto file, OpenRun(BenchPath(), VerifyLevel::kFull));
  const bool same = file.run.u64() == absl::MakeConstSpan(data.keys) &&
                    file.run.row_ids() == absl::MakeConstSpan(data.row_ids);
  return same ? absl::OkStatus() : absl::InternalError("the file holds other entries");
}

void RunFileWrite(benchmark::State& state) {
  const Data data(size_t{1} << state.range(0));
  for (auto _ : state) {
    if (absl::Status s = Write(data); !s.ok()) {
      return state.SkipWithError(std::string(s.message()).c_str());
    }
  }
  if (!Verify(data).ok()) state.SkipWithError("wrong answers");
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(data.bytes()));
  unlink(BenchPath().c_str());
}

void RunFileOpen(benchmark::State& state, VerifyLevel level) {
  const Data data(size_t{1} << state.range(0));
  if (!Write(data).ok() || !Verify(data).ok()) return state.SkipWithError("wrong answers");
  for (auto _ : state) {
    benchmark::DoNotOptimize(OpenRun(BenchPath(), level, 1));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(data.bytes()));
  unlink(BenchPath().c_str());
}

void DiskWrite(benchmark::State& state) {
  const std::vector<char> block(1 << 20, 'x');
  const int64_t blocks = state.range(0);
  for (auto _ : state) {
    unlink(BenchPath().c_str());
    const auto file = FileSystem::Posix()->Create(BenchPath(), IfExists::kFail);
    absl::Status s = file.status();
    for (int64_t i = 0; s.ok() && i < blocks; ++i) {
      s = (*file)->WriteAt(static_cast<uint64_t>(i) << 20, block.data(), block.size());
    }
    if (s.ok()) s = (*file)->Sync();
    if (!s.ok()) return state.SkipWithError(std::string(s.message()).c_str());
  }
  state.SetBytesProcessed(state.iterations() * (blocks << 20));
  unlink(BenchPath().c_str());
}

void ChecksumLimit(benchmark::State& state) {
  const std::vector<char> bytes(static_cast<size_t>(state.range(0)) << 20, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(Checksum(bytes.data(), bytes.size()));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}

BENCHMARK(RunFileWrite)->Name("RunFile/write/u64")->ArgName("n")->Arg(20)->Arg(24)->UseRealTime();
BENCHMARK_CAPTURE(RunFileOpen, metadata, VerifyLevel::kMetadata)
    ->Name("RunFile/open_metadata/u64")
    ->ArgName("n")
    ->Arg(20)
    ->Arg(24)
    ->UseRealTime();
BENCHMARK_CAPTURE(RunFileOpen, full, VerifyLevel::kFull)
    ->Name("RunFile/open_full/u64")
    ->ArgName("n")
    ->Arg(20)
    ->Arg(24)
    ->UseRealTime();
BENCHMARK(DiskWrite)->Name("Limit/disk_write")->Arg(12)->Arg(192)->UseRealTime();
BENCHMARK(ChecksumLimit)->Name("Limit/checksum")->Arg(12)->Arg(192);

}  // namespace
}  // namespace cairn::bench::run_file
