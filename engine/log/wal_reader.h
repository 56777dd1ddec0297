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
// have only a header, and their sequence numbers are meaningless.
inline constexpr size_t kBatchHeaderBytes = 12;

// A place between two records of one log file.
struct WalPlace {
  uint64_t offset = 0;  // in bytes from the start of the file
  // A checksum of the checksums of all records before the place, in order. If two files agree in
  // offset and checksum, they have the same records up to there, as far as checksums can show.
  uint64_t checksum = 0;

  bool operator==(const WalPlace&) const = default;
};

// Reads the records of one file of RocksDB's write-ahead log, in the order in which they were
// written. Each record is the bytes of a write batch (rocksdb::WriteBatch::Data). Empty batches are
// skipped; RocksDB writes them as marks, with arbitrary sequence numbers. The format is documented
// ("Write Ahead Log File Format" in RocksDB's wiki): blocks of 32 KB, and records in fragments with
// a CRC-32C each. Recycled files are supported; in these, old contents may follow the new ones.
// Compressed records (DBOptions::wal_compression) are supported, too.
//
// A log may end anywhere, even within a record: its writer may have died, or may be writing. Only a
// caller that knows the next record can decide whether something is missing. So damage ends a file
// in the same way as its end, and status() has the reason. Not thread-safe.
class WalReader {
 public:
  // Opens the file at `path` for the records from `from` on, which must be the file's beginning
  // (the default) or an earlier end(). `number` is the log number in the file's name. Errors:
  // NotFound if the file does not exist.
  static absl::StatusOr<std::unique_ptr<WalReader>> Open(rocksdb::FileSystem* file_system,
                                                         std::string path, uint64_t number,
                                                         WalPlace from = {});

  // Moves to the next record. Returns false at the end of the readable records.
  bool Next();
  // Lets Next read the records that were appended to the file since it returned false. Returns
  // false if the file must be opened again: there were other bytes after the last record, which may
  // have changed.
  bool Resume();
  // The current record; valid until the next call.
  std::string_view record() const { return record_; }
  // Moves the current record out; record() is then empty. A record in several fragments is not
  // copied.
  std::string TakeRecord();
  // The sequence number of the current record.
  SequenceNumber sequence() const;

  // The column families whose keys end in a timestamp (user-defined timestamps) in the current
  // record. Lists only families that this record, or an earlier record read here, writes to.
  const std::vector<uint32_t>& with_timestamps() const { return with_timestamps_; }

  // The places where the current record starts, and where the next one starts.
  WalPlace start() const { return start_; }
  WalPlace end() const { return {offset_, checksum_}; }

  // OK while records follow, and if the file ends between two records. DataLoss, with file and
  // offset, for a record that is cut off or damaged; in a recycled file such a record cannot be
  // distinguished from the end, and the status is OK. Unimplemented for a compression other than
  // zstd. RocksDB's own error for a failed read.
  const absl::Status& status() const { return status_; }
  const std::string& path() const { return path_; }

 private:
  struct Fragment {
    uint8_t type;
    std::string_view bytes;
  };

  WalReader(std::unique_ptr<rocksdb::FSSequentialFile> file, std::string path, uint64_t number)
      : file_(std::move(file)), path_(std::move(path)), number_(number) {}

  // Moves to a block after the first one.
  rocksdb::IOStatus SkipTo(uint64_t block);
  // Reads the compression method from the file's first bytes.
  void TakeFirstRecord(std::string_view bytes);
  void UseCompression(std::string_view record);
  bool NextRecord();
  void AddTimestampSizes(std::string_view record);
  bool SetRecord(std::string_view bytes);
  bool NextFragment(Fragment* fragment);
  // Returns whether the file has `bytes` more bytes at offset_, within its block; reads them.
  bool Have(size_t bytes);
  // Skips bytes of this block that have been read.
  void Skip(size_t bytes);
  bool FillBuffer();
  void EndDamaged(std::string_view what);

  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
  const std::string path_;
  const uint64_t number_;
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0;       // in the buffer: the byte at offset_
  size_t end_ = 0;         // in the buffer: the end of the bytes read
  uint64_t offset_ = 0;    // in the file
  uint64_t checksum_ = 0;  // of all earlier records
  WalPlace start_;         // of the current record
  std::string_view record_;
  std::string fragments_;                   // a record that was written in several fragments
  std::vector<uint32_t> with_timestamps_;   // ids
  std::unique_ptr<ZstdUncompressor> zstd_;  // null if records are not compressed
  bool recycled_ = false;                   // whether records contain the number of their log
  bool has_skipped_ = false;                // space that was allocated and not written
  bool at_end_ = false;                     // whether the last read reached the end of the file
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace cairn
