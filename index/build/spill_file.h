#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "index/files/file_system.h"
#include "index/run/entry_sink.h"

namespace cairn {

// The first entry of a block: its key, which is a number or the first bytes of a key of bytes.
struct SpillFirst {
  // Only this many bytes of longer keys are kept.
  static constexpr size_t kMaxBytes = 1024;

  // Whether `bytes` is the complete key.
  bool whole() const { return bytes.size() < kMaxBytes; }

  uint64_t number = 0;
  std::string bytes;
  RowId row_id = 0;
};

// The place of one block of a run's entries in a spill file. It is kept in memory only, since no
// other process uses the file.
struct SpillBlock {
  uint64_t offset;  // in the file
  // columns of keys and row ids if the keys are numbers; KeyRecords if they are bytes
  uint64_t bytes;
  uint64_t entries;  // at least one
  uint64_t hash;     // XXH3 of the bytes
  SpillFirst first;
};

// A sorted run in a spill file.
struct SpillRun {
  std::vector<SpillBlock> blocks;
  uint64_t entries = 0;
};

// A run to merge, and the base that is added to its row ids.
struct RunOf {
  SpillRun run;
  RowId base = 0;
};

// A temporary file; several threads may write blocks. Thread-safe.
class SpillFile {
 public:
  // Creates the file in `directory`. Errors name the directory.
  static absl::StatusOr<std::unique_ptr<SpillFile>> Create(const std::string& directory,
                                                           FileSystem* files);

  // Writes a block; the caller records its first entry. ResourceExhausted if there is no space for
  // it.
  absl::StatusOr<SpillBlock> Write(absl::Span<const char> bytes, uint64_t entries);

  // Reads a block that Write returned into `to`, which has block.bytes bytes. DataLoss if the bytes
  // are missing or have changed.
  absl::Status Read(const SpillBlock& block, char* to) const;

  // Advises the file system that the block will be read soon.
  void WillRead(const SpillBlock& block) const;

 private:
  SpillFile(std::unique_ptr<TemporaryFile> file, std::string directory)
      : file_(std::move(file)), directory_(std::move(directory)) {}

  const std::unique_ptr<TemporaryFile> file_;
  const std::string directory_;
  std::atomic<uint64_t> end_{0};
};

// Writes all entries as one run. Not thread-safe.
class SpillWriter final : public EntrySink {
 public:
  explicit SpillWriter(SpillFile* file) : file_(file) {}

  absl::Status Begin(uint64_t entries, uint64_t key_bytes) override;
  absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const std::string_view> keys,
                      absl::Span<const RowId> row_ids) override;

  // Returns the run. Called once, last.
  SpillRun Finish() { return std::move(run_); }

  // Bytes per block, unless a single key is longer.
  static constexpr size_t kBlockBytes = size_t{64} << 10;

 private:
  template <typename Key>
  absl::Status AppendColumns(absl::Span<const Key> keys, absl::Span<const RowId> row_ids);
  void PutColumn(const void* data, size_t bytes);
  absl::Status WriteBlock(size_t entries, SpillFirst first);

  SpillFile* file_;
  SpillRun run_;
  std::vector<char> block_;
};

}  // namespace cairn
