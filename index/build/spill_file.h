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

// The first entry of a block: its key, a number or, of a key of bytes, what it begins with.
struct SpillFirst {
  // Of longer keys of bytes only so many bytes are kept.
  static constexpr size_t kMaxBytes = 1024;

  // Whether all of the key is here.
  bool whole() const { return bytes.size() < kMaxBytes; }

  uint64_t number = 0;
  std::string bytes;
  RowId row_id = 0;
};

// Where in a spill file a block of a run's entries is. Kept in memory only: the file is of no use
// to any other process.
struct SpillBlock {
  uint64_t offset;   // in the file
  uint64_t bytes;    // of numbers two columns, keys and row ids; of bytes KeyRecords
  uint64_t entries;  // at least one
  uint64_t hash;     // XXH3 of the bytes
  SpillFirst first;
};

// A sorted run in a spill file.
struct SpillRun {
  std::vector<SpillBlock> blocks;
  uint64_t entries = 0;
};

// A run to merge, and what is added to its row ids.
struct RunOf {
  SpillRun run;
  RowId base = 0;
};

// A temporary file that takes blocks from several threads. Thread-safe.
class SpillFile {
 public:
  // The file is made in `directory`. Errors name it.
  static absl::StatusOr<std::unique_ptr<SpillFile>> Create(const std::string& directory,
                                                           FileSystem* files);

  // Writes a block; its first entry is the caller's to note. ResourceExhausted where there is no
  // space for it.
  absl::StatusOr<SpillBlock> Write(absl::Span<const char> bytes, uint64_t entries);

  // Reads a block that Write returned into `to`, of block.bytes. DataLoss where the bytes have
  // changed or are no longer there.
  absl::Status Read(const SpillBlock& block, char* to) const;

  // Tells the file system that the block will be read soon.
  void WillRead(const SpillBlock& block) const;

 private:
  SpillFile(std::unique_ptr<TemporaryFile> file, std::string directory)
      : file_(std::move(file)), directory_(std::move(directory)) {}

  const std::unique_ptr<TemporaryFile> file_;
  const std::string directory_;
  std::atomic<uint64_t> end_{0};
};

// Writes what it is given as one run. Not thread-safe.
class SpillWriter final : public EntrySink {
 public:
  explicit SpillWriter(SpillFile* file) : file_(file) {}

  absl::Status Begin(uint64_t entries, uint64_t key_bytes) override;
  absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const std::string_view> keys,
                      absl::Span<const RowId> row_ids) override;

  // The run; once, last.
  SpillRun Finish() { return std::move(run_); }

  // Bytes of a block, unless its only key is longer.
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
