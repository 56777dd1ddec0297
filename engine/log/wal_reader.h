#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/util/zstd.h"
#include "rocksdb/file_system.h"

namespace cairn {

// A write batch's header: its sequence number (8 bytes) and its count (4). Some records of the log
// have nothing else, and their sequence numbers mean nothing.
inline constexpr size_t kBatchHeaderBytes = 12;

// A place between two records of a file of the log.
struct WalPlace {
  uint64_t offset = 0;  // in bytes from the start of the file
  // Of the checksums of all records before it, in their order: two files that agree in both have,
  // as far as can be told without keeping them, the same records up to there.
  uint64_t checksum = 0;

  bool operator==(const WalPlace&) const = default;
};

// Reads the records of one file of RocksDB's write-ahead log, in the order in which they were
// written, each the bytes of a write batch (rocksdb::WriteBatch::Data). Batches of nothing, which
// RocksDB writes as marks and with sequence numbers that follow no rule, are passed over. The
// format is the documented one ("Write Ahead Log File Format" in RocksDB's wiki): blocks of 32 KB,
// records in fragments, a CRC-32C for each; recycled files, whose old contents may follow the new,
// included; records may be compressed (DBOptions::wal_compression).
//
// A log may end anywhere, in the middle of a record too: its writer may have died, or be at work.
// Whether something is missing there only a reader knows who knows what must come next. So damage
// ends a file as its end does, and status() says what was found. Not thread-safe.
class WalReader {
 public:
  // Opens the file at `path` for the records from `from` on, which must be the file's beginning
  // (the default) or an end() of before. `number` is the log's, which is in its name. NotFound
  // where there is no such file.
  static absl::StatusOr<std::unique_ptr<WalReader>> Open(rocksdb::FileSystem* file_system,
                                                         std::string path, uint64_t number,
                                                         WalPlace from = {});

  // Moves to the next record; false at the end of those that can be read.
  bool Next();
  // The record moved to; valid until the next call.
  std::string_view record() const { return record_; }
  // The sequence number that it was written at.
  SequenceNumber sequence() const;

  // The column families whose keys end in a timestamp (user-defined timestamps) in that record:
  // only those that this record or an earlier one read here writes to.
  const std::vector<uint32_t>& with_timestamps() const { return with_timestamps_; }

  // Where that record starts, and where the next one does.
  WalPlace start() const { return start_; }
  WalPlace end() const { return {offset_, checksum_}; }

  // OK as long as records come, and at an end between two of them. DataLoss, with file and offset,
  // for a record that is cut off or damaged (in a recycled file that cannot be told from the end,
  // and is OK); Unimplemented for a compression that is not zstd; RocksDB's own error for a failed
  // read.
  const absl::Status& status() const { return status_; }
  const std::string& path() const { return path_; }

 private:
  struct Fragment {
    uint8_t type;
    std::string_view bytes;
  };

  WalReader(std::unique_ptr<rocksdb::FSSequentialFile> file, std::string path, uint64_t number)
      : file_(std::move(file)), path_(std::move(path)), number_(number) {}

  // Goes to a block behind the first.
  rocksdb::IOStatus SkipTo(uint64_t block);
  // Takes from the file's first bytes how its records are compressed.
  void TakeFirstRecord(std::string_view bytes);
  void UseCompression(std::string_view record);
  bool NextRecord();
  void AddTimestampSizes(std::string_view record);
  bool SetRecord(std::string_view bytes);
  bool NextFragment(Fragment* fragment);
  // Whether the file has `bytes` more at offset_, which do not leave its block; reads them.
  bool Have(size_t bytes);
  // Skips bytes of this block that have been read.
  void Skip(size_t bytes);
  bool FillBuffer();
  void EndDamaged(std::string_view what);

  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
  const std::string path_;
  const uint64_t number_;
  std::unique_ptr<char[]> buffer_;  // whole blocks of the file
  size_t begin_ = 0;                // in the buffer: what is at offset_
  size_t end_ = 0;                  // and behind what was read
  uint64_t offset_ = 0;             // in the file
  uint64_t checksum_ = 0;           // of the records before it
  WalPlace start_;                  // of the record
  std::string_view record_;
  std::string fragments_;                   // a record that was written in several
  std::vector<uint32_t> with_timestamps_;   // ids
  std::unique_ptr<ZstdUncompressor> zstd_;  // null where records are not compressed
  bool recycled_ = false;                   // the file's records say which log they are of
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace cairn
