#include "engine/log/wal_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/util/crc32c.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "xxhash.h"

namespace cairn {
namespace {

constexpr size_t kBlockBytes = 32768;
// Bytes per read: enough to amortize the cost of a call, and small enough for the L2 cache.
constexpr size_t kBufferBytes = 8 * kBlockBytes;

constexpr size_t kHeaderBytes = 7;             // checksum (4), length (2), type (1)
constexpr size_t kRecyclableHeaderBytes = 11;  // also the low 32 bits of the log's number

enum FragmentType : uint8_t {
  kPreallocated = 0,  // nothing was written here
  kFull = 1,
  kFirst = 2,
  kMiddle = 3,
  kLast = 4,
  kRecyclableFull = 5,  // the next three are the recyclable kFirst to kLast
  kRecyclableLast = 8,
  kCompression = 9,      // the first record: the compression of the others
  kTimestampSizes = 10,  // of column families with user-defined timestamps
  kRecyclableTimestampSizes = 11,
};
// The contents of a kCompression record, in 4 bytes.
enum Compression : uint32_t { kNone = 0, kZstd = 7 };
constexpr size_t kCompressionBytes = 4;
// RocksDB's own limit for a write batch.
constexpr size_t kMaxBatchBytes = UINT32_MAX;

// Readers may ignore types with this bit if they do not know them.
constexpr uint8_t kMayBeIgnored = 0x80;

bool IsRecyclable(uint8_t type) {
  return (type >= kRecyclableFull && type <= kRecyclableLast) ||
         (type >= kTimestampSizes && type % 2 == 1);
}

uint32_t Fixed32(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WalReader>> WalReader::Open(rocksdb::FileSystem* file_system,
                                                           std::string path, uint64_t number,
                                                           WalPlace from) {
  const auto opened = [&path](const rocksdb::IOStatus& s) {
    return FromRocksDb(s, absl::StrFormat("cannot open log file '%s'", path));
  };
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  const rocksdb::FileOptions options = file_system->OptimizeForLogRead(rocksdb::FileOptions());
  RETURN_IF_ERROR(opened(file_system->NewSequentialFile(path, options, &file, nullptr)));
  const uint64_t block = from.offset - from.offset % kBlockBytes;
  std::unique_ptr<WalReader> reader(new WalReader(std::move(file), std::move(path), number));
  if (block > 0) {
    RETURN_IF_ERROR(opened(reader->SkipTo(block)));
  }
  reader->checksum_ = from.checksum;
  if (from.offset > block) {
    if (reader->Have(from.offset - block)) {
      if (block == 0) reader->TakeFirstRecord({reader->buffer_.get(), from.offset});
      reader->Skip(from.offset - block);
    } else {
      reader->ended_ = true;
    }
  }
  return reader;
}

rocksdb::IOStatus WalReader::SkipTo(uint64_t block) {
  char buffer[kHeaderBytes + kCompressionBytes];
  rocksdb::Slice first;
  rocksdb::IOStatus s = file_->Read(sizeof buffer, rocksdb::IOOptions(), &first, buffer, nullptr);
  if (!s.ok()) return s;
  TakeFirstRecord({first.data(), first.size()});
  offset_ = block;
  return file_->Skip(block - first.size());
}

void WalReader::TakeFirstRecord(std::string_view bytes) {
  constexpr size_t kTypeAt = kHeaderBytes - 1;
  if (bytes.size() < kHeaderBytes + kCompressionBytes || bytes[kTypeAt] != kCompression) return;
  const std::string_view checked = bytes.substr(kTypeAt, 1 + kCompressionBytes);
  if (MaskedCrc32c(Crc32c(checked)) == Fixed32(bytes.data())) {
    UseCompression(checked.substr(1));
  } else {
    EndDamaged("checksum mismatch in its first record");
  }
}

void WalReader::UseCompression(std::string_view record) {
  const uint32_t type = record.size() == kCompressionBytes ? Fixed32(record.data()) : UINT32_MAX;
  if (type == kZstd) {
    zstd_ = std::make_unique<ZstdUncompressor>();
  } else if (type != kNone) {
    ended_ = true;
    status_ = absl::UnimplementedError(absl::StrFormat(
        "log file '%s' has the unknown compression %d (DBOptions::wal_compression); only zstd is "
        "supported",
        path_, type));
  }
}

bool WalReader::Next() {
  while (NextRecord()) {
    if (record_.size() > kBatchHeaderBytes) return true;
    if (record_.size() < kBatchHeaderBytes) {
      EndDamaged(
          absl::StrFormat("the record of %d bytes before it is not a write batch", record_.size()));
    }
  }
  return false;
}

bool WalReader::Resume() {
  if (begin_ != end_ || has_skipped_ || recycled_ || !status_.ok()) return false;
  ended_ = at_end_ = false;
  return true;
}

std::string WalReader::TakeRecord() {
  const std::string_view record = std::exchange(record_, {});
  if (record.data() != fragments_.data()) return std::string(record);
  return std::exchange(fragments_, {});
}

SequenceNumber WalReader::sequence() const {
  SequenceNumber sequence;
  std::memcpy(&sequence, record_.data(), sizeof sequence);
  return sequence;
}

bool WalReader::NextRecord() {
  if (ended_) return false;
  bool in_record = false;
  Fragment fragment;
  WalPlace start = end();
  while (NextFragment(&fragment)) {
    uint8_t type = fragment.type;
    if (type >= kRecyclableFull && type <= kRecyclableLast) type -= kRecyclableFull - kFull;
    switch (type) {
      case kFull:
      case kFirst:
        // Old writers left an empty first fragment at the end of a block, and began again in the
        // next block.
        if (in_record && !fragments_.empty()) {
          EndDamaged("a record starts within another");
          return false;
        }
        start_ = start;
        if (type == kFull) return SetRecord(fragment.bytes);
        fragments_.assign(fragment.bytes);
        in_record = true;
        break;
      case kMiddle:
      case kLast:
        if (!in_record) {
          EndDamaged("a record has no start");
          return false;
        }
        fragments_.append(fragment.bytes);
        if (type == kLast) return SetRecord(fragments_);
        break;
      case kCompression:
        UseCompression(fragment.bytes);
        if (ended_) return false;
        break;
      case kTimestampSizes:
      case kRecyclableTimestampSizes:
        AddTimestampSizes(fragment.bytes);
        break;
      default:
        if ((type & kMayBeIgnored) == 0) {
          EndDamaged(absl::StrFormat("a record has the unknown type %d", type));
          return false;
        }
    }
    if (!in_record) start = end();
  }
  if (in_record && status_.ok()) EndDamaged("the file ends within a record");
  return false;
}

void WalReader::AddTimestampSizes(std::string_view record) {
  constexpr size_t kEntryBytes = 6;  // a column family (4), the size of its timestamps (2)
  for (; record.size() >= kEntryBytes; record.remove_prefix(kEntryBytes)) {
    with_timestamps_.push_back(Fixed32(record.data()));
  }
}

bool WalReader::SetRecord(std::string_view bytes) {
  record_ = bytes;
  if (zstd_ == nullptr) return true;
  const absl::StatusOr<std::string_view> record = zstd_->Uncompress(bytes, kMaxBatchBytes);
  if (record.ok()) {
    record_ = *record;
  } else {
    EndDamaged(absl::StrFormat("the record before it cannot be uncompressed: %s",
                               record.status().message()));
  }
  return record.ok();
}

bool WalReader::NextFragment(Fragment* fragment) {
  while (true) {
    const size_t left = kBlockBytes - offset_ % kBlockBytes;
    if (left < kHeaderBytes) {  // the trailer of a block
      if (!Have(left)) return false;
      Skip(left);
      continue;
    }
    if (!Have(1)) return false;
    if (!Have(kHeaderBytes)) {
      EndDamaged("the file ends within a record's header");
      return false;
    }
    const char* const header = buffer_.get() + begin_;
    const size_t length = static_cast<uint8_t>(header[4]) | static_cast<uint8_t>(header[5]) << 8;
    const uint8_t type = static_cast<uint8_t>(header[6]);
    if (type == kPreallocated && length == 0) {
      const size_t available = std::min(left, end_ - begin_);
      Skip(available);
      has_skipped_ = true;
      if (available < left) return false;
      continue;
    }
    const size_t header_bytes = IsRecyclable(type) ? kRecyclableHeaderBytes : kHeaderBytes;
    if (header_bytes + length > left) {
      EndDamaged(absl::StrFormat("a record of %d bytes extends past its block", length));
      return false;
    }
    if (IsRecyclable(type)) {
      recycled_ = true;
      // The rest of the file belongs to the log for which it was used before.
      if (Have(kRecyclableHeaderBytes) &&
          Fixed32(header + kHeaderBytes) != static_cast<uint32_t>(number_)) {
        ended_ = true;
        return false;
      }
    }
    if (!Have(header_bytes + length)) {
      EndDamaged(absl::StrFormat("the file ends within a record of %d bytes", length));
      return false;
    }
    const std::string_view checked(header + kHeaderBytes - 1,
                                   header_bytes - kHeaderBytes + 1 + length);
    const uint32_t crc = MaskedCrc32c(Crc32c(checked));
    if (crc != Fixed32(header)) {
      EndDamaged(
          absl::StrFormat("checksum mismatch: expected %08x, found %08x", Fixed32(header), crc));
      return false;
    }
    checksum_ = XXH3_64bits_withSeed(&crc, sizeof crc, checksum_);
    *fragment = {type, std::string_view(header + header_bytes, length)};
    Skip(header_bytes + length);
    return true;
  }
}

bool WalReader::Have(size_t bytes) {
  return end_ - begin_ >= bytes || (begin_ == end_ && FillBuffer() && end_ >= bytes);
}

void WalReader::Skip(size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

bool WalReader::FillBuffer() {
  // A read goes up to the end of a block, so only the end of the file can be within a block. The
  // first read is of one block, because often only the first record is needed.
  const size_t wanted = (buffer_ == nullptr ? kBlockBytes : kBufferBytes) - offset_ % kBlockBytes;
  if (buffer_ == nullptr) buffer_.reset(new char[kBufferBytes]);
  begin_ = end_ = 0;
  if (!at_end_) {
    rocksdb::Slice read;
    const rocksdb::IOStatus s =
        file_->Read(wanted, rocksdb::IOOptions(), &read, buffer_.get(), nullptr);
    if (!s.ok()) {
      status_ =
          FromRocksDb(s, absl::StrFormat("cannot read log file '%s' at offset %d", path_, offset_));
      ended_ = true;
      return false;
    }
    if (read.data() != buffer_.get()) std::memmove(buffer_.get(), read.data(), read.size());
    end_ = read.size();
    // RocksDB's own reader relies on this, too.
    at_end_ = end_ < wanted;
  }
  if (end_ == 0) ended_ = true;
  return end_ > 0;
}

void WalReader::EndDamaged(std::string_view what) {
  ended_ = true;
  if (recycled_) return;
  status_ = absl::DataLossError(
      absl::StrFormat("log file '%s' is damaged at offset %d: %s", path_, offset_, what));
}

}  // namespace cairn
