#include "engine/log/wal_reader.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/log/wal_files.h"
#include "engine/util/crc32c.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(wal_reader_test, *StartsNoThread())
namespace {

rocksdb::FileSystem* LocalFiles() {
  return rocksdb::Env::Default()->GetFileSystem().get();
}

// The records of a file, and the end of each.
struct Contents {
  std::vector<std::string> records;
  std::vector<uint64_t> ends;
  absl::Status status;
};

Contents ReadAll(const std::string& path, uint64_t number, uint64_t offset = 0) {
  Contents contents;
  auto reader = RequireOk(WalReader::Open(LocalFiles(), path, number, WalPlace{offset, 0}));
  while (reader->Next()) {
    contents.records.emplace_back(reader->record());
    contents.ends.push_back(reader->end().offset);
  }
  contents.status = reader->status();
  return contents;
}

// A log by RocksDB with batches of all sizes: some fill blocks exactly or nearly, and some are
// larger than several blocks.
class WrittenLog {
 public:
  explicit WrittenLog(size_t recycled_files = 0, rocksdb::CompressionType compression = {}) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.recycle_log_file_num = recycled_files;
    options.wal_compression = compression;
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    RequireOk(rocksdb::DB::Open(options, directory_ / "db", Into(&db_)));
  }

  void Write(size_t value_bytes) {
    rocksdb::WriteBatch batch;
    std::string value(value_bytes, 'v');  // part of it does not compress
    for (size_t i = 0; i < value_bytes / 2; ++i) value[i] = static_cast<char>(random_());
    RequireOk(batch.Put("key", value));
    RequireOk(db_->Write({}, &batch));
    batches_.push_back(batch.Data());
  }
  void WriteAllSizes() {
    auto random = TestRandom();
    for (int i = 0; i < 300; ++i) Write(random() % 2000);
    for (size_t bytes = 32700; bytes < 32780; ++bytes) Write(bytes);
    for (size_t bytes : {100000, 1000000, 5, 300000}) Write(bytes);
  }
  void Flush() {
    RequireOk(db_->Flush({}));
    batches_.clear();
  }

  // The writes since the last flush.
  const std::vector<std::string>& batches() const { return batches_; }
  WalFile file() {
    auto files = RequireOk(ListWalFiles(db_.get()));
    BOOST_REQUIRE(!files.empty());
    return files.back();
  }
  std::string Copy(const std::string& bytes) {
    const std::string path = directory_ / "copy.log";
    WriteFile(path, bytes);
    return path;
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<std::string> batches_;
  std::mt19937_64 random_ = TestRandom();
};

// Whether `part` is a prefix of `all`.
bool IsStart(const std::vector<std::string>& part, const std::vector<std::string>& all) {
  return part.size() <= all.size() && std::equal(part.begin(), part.end(), all.begin());
}

constexpr rocksdb::CompressionType kCompressions[] = {rocksdb::kNoCompression, rocksdb::kZSTD};

// A record of the log, of any type, with a correct checksum.
std::string Record(uint8_t type, const std::string& bytes, std::optional<uint32_t> log = {}) {
  std::string checked(1, static_cast<char>(type));
  if (log.has_value()) checked.append(reinterpret_cast<const char*>(&*log), sizeof *log);
  checked += bytes;
  const uint32_t crc = MaskedCrc32c(Crc32c(checked));
  std::string record(reinterpret_cast<const char*>(&crc), sizeof crc);
  record += static_cast<char>(bytes.size() & 0xFF);
  record += static_cast<char>(bytes.size() >> 8);
  return record + checked;
}

BOOST_AUTO_TEST_CASE(reads_what_rocksdb_wrote) {
  for (const auto& [recycled_files, compression] :
       {std::pair{0, rocksdb::kNoCompression}, {2, rocksdb::kNoCompression}, {0, rocksdb::kZSTD}}) {
    WrittenLog log(recycled_files, compression);
    log.WriteAllSizes();
    const WalFile file = log.file();
    const Contents contents = ReadAll(file.path, file.number);
    BOOST_TEST(contents.status.ok(), contents.status.ToString());
    BOOST_REQUIRE_EQUAL(contents.records.size(), log.batches().size());
    for (size_t i = 0; i < contents.records.size(); ++i) {
      if (contents.records[i] != log.batches()[i]) BOOST_ERROR("record " << i << " differs");
    }
  }
}

BOOST_DATA_TEST_CASE(starts_at_any_record, kCompressions) {
  WrittenLog log(0, sample);
  log.WriteAllSizes();
  const WalFile file = log.file();
  const Contents all = ReadAll(file.path, file.number);
  for (size_t i = 0; i < all.ends.size(); i += 7) {
    const Contents rest = ReadAll(file.path, file.number, all.ends[i]);
    const bool right = rest.status.ok() && rest.records.size() == all.records.size() - i - 1 &&
                       std::equal(rest.records.begin(), rest.records.end(),
                                  all.records.begin() + static_cast<ptrdiff_t>(i) + 1);
    if (!right) BOOST_ERROR("from record " << i);
  }
  BOOST_TEST(ReadAll(file.path, file.number, uint64_t{1} << 40).records.empty());
}

BOOST_DATA_TEST_CASE(reads_on_as_the_log_grows, kCompressions) {
  WrittenLog log(0, sample);
  log.Write(10);
  const WalFile file = log.file();
  const auto reader = RequireOk(WalReader::Open(LocalFiles(), file.path, file.number));
  size_t read = 0;
  const auto read_new_ones = [&] {
    while (read < log.batches().size()) {
      BOOST_TEST_REQUIRE(reader->Next());
      BOOST_TEST_REQUIRE((reader->record() == log.batches()[read++]));
    }
    BOOST_TEST_REQUIRE(!reader->Next());
    BOOST_TEST_REQUIRE(!reader->Next());
    BOOST_TEST_REQUIRE(reader->Resume());
    BOOST_TEST_REQUIRE(!reader->Next());  // nothing was appended
    BOOST_TEST_REQUIRE(reader->Resume());
  };
  read_new_ones();
  auto random = TestRandom();
  for (int i = 0; i < 300; ++i) {
    for (uint64_t writes = random() % 3; writes > 0; --writes) log.Write(random() % 2000);
    read_new_ones();
  }
  for (size_t bytes = 32700; bytes < 32780; ++bytes) {
    log.Write(bytes);
    read_new_ones();
  }
  log.Write(1000000);
  read_new_ones();
  BOOST_TEST(reader->end().offset == ReadAll(file.path, file.number).ends.back());
}

BOOST_AUTO_TEST_CASE(does_not_read_on_after_bytes_that_may_change) {
  WrittenLog log;
  for (int i = 0; i < 3; ++i) log.Write(100);
  const WalFile file = log.file();
  const std::string bytes = ReadFile(file.path);
  const uint64_t end = ReadAll(file.path, file.number).ends[1];
  const auto resumes_after = [&](const std::string& contents) {
    auto reader = RequireOk(WalReader::Open(LocalFiles(), log.Copy(contents), file.number));
    BOOST_TEST(reader->Next());
    BOOST_TEST(reader->Next());
    BOOST_TEST(!reader->Next());
    return reader->Resume();
  };
  BOOST_TEST(resumes_after(bytes.substr(0, end)));
  BOOST_TEST(!resumes_after(bytes.substr(0, end + 1)));
  BOOST_TEST(!resumes_after(bytes.substr(0, bytes.size() - 1)));
  BOOST_TEST(!resumes_after(bytes.substr(0, end) + std::string(100, '\0')));
  BOOST_TEST(!resumes_after(bytes.substr(0, end) + std::string(100000, '\0')));
}

BOOST_AUTO_TEST_CASE(stops_in_a_recycled_file_where_the_old_log_follows) {
  WrittenLog log(1);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 100; ++i) log.Write(1000);
    log.Flush();
  }
  for (int i = 0; i < 10; ++i) log.Write(500);
  const WalFile file = log.file();
  BOOST_TEST(std::filesystem::file_size(file.path) > 50000u);  // it still contains the old log
  const Contents contents = ReadAll(file.path, file.number);
  BOOST_TEST(contents.status.ok(), contents.status.ToString());
  BOOST_TEST((contents.records == log.batches()));
}

BOOST_AUTO_TEST_CASE(passes_over_space_that_was_allocated_and_not_written) {
  WrittenLog log;
  for (int i = 0; i < 10; ++i) log.Write(100);
  const std::string path = log.Copy(ReadFile(log.file().path) + std::string(70000, '\0'));
  const Contents contents = ReadAll(path, 1);
  BOOST_TEST(contents.status.ok());
  BOOST_TEST((contents.records == log.batches()));
}

BOOST_AUTO_TEST_CASE(a_log_may_be_cut_off_anywhere) {
  WrittenLog log;
  for (size_t bytes : {10, 0, 40000, 3}) log.Write(bytes);
  const std::string bytes = ReadFile(log.file().path);
  const std::vector<uint64_t> ends = ReadAll(log.file().path, log.file().number).ends;
  for (size_t size = 0; size <= bytes.size(); size += size < 100 || size > 39900 ? 1 : 97) {
    const Contents contents = ReadAll(log.Copy(bytes.substr(0, size)), 1);
    const auto whole =
        std::count_if(ends.begin(), ends.end(), [&](uint64_t e) { return e <= size; });
    if (static_cast<ptrdiff_t>(contents.records.size()) != whole) BOOST_ERROR("cut at " << size);
    if (!IsStart(contents.records, log.batches())) BOOST_ERROR("cut at " << size);
    const bool between = size == 0 || std::count(ends.begin(), ends.end(), size) > 0;
    if (contents.status.ok() != between) {
      BOOST_ERROR("cut at " << size << ": " << contents.status.ToString());
    }
    if (!between && !absl::IsDataLoss(contents.status)) BOOST_ERROR(contents.status.ToString());
  }
}

BOOST_AUTO_TEST_CASE(finds_every_changed_byte_and_names_the_place) {
  WrittenLog log;
  for (size_t bytes : {10, 0, 60, 3}) log.Write(bytes);
  const std::string bytes = ReadFile(log.file().path);
  const std::vector<uint64_t> ends = ReadAll(log.file().path, log.file().number).ends;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    const std::string path = log.Copy(damaged);
    const Contents contents = ReadAll(path, 1);
    const size_t record = static_cast<size_t>(
        std::count_if(ends.begin(), ends.end(), [&](uint64_t e) { return e <= at; }));
    const std::string place = "'" + path + "' is damaged at offset " +
                              std::to_string(record == 0 ? 0 : ends[record - 1]) + ":";
    if (contents.records.size() != record || !IsStart(contents.records, log.batches()) ||
        !absl::IsDataLoss(contents.status) ||
        contents.status.message().find(place) == absl::string_view::npos) {
      BOOST_ERROR("byte " << at << ": " << contents.status.ToString());
    }
  }
}

BOOST_AUTO_TEST_CASE(survives_any_bytes) {
  auto random = TestRandom();
  WrittenLog log;
  for (size_t bytes : {10, 40000, 60, 3, 33000}) log.Write(bytes);
  const std::string bytes = ReadFile(log.file().path);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes.substr(0, random() % bytes.size());
    for (size_t flips = random() % 8; flips > 0 && !damaged.empty(); --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (!IsStart(ReadAll(log.Copy(damaged), 1).records, log.batches())) BOOST_ERROR("run " << i);
    for (char& c : damaged) c = static_cast<char>(random());
    if (!ReadAll(log.Copy(damaged), 1).records.empty()) BOOST_ERROR("a record in noise");
  }
}

constexpr uint8_t kFullRecord = 1, kCompressionRecord = 9;

BOOST_AUTO_TEST_CASE(a_compression_that_is_not_known_is_refused_by_name) {
  WrittenLog log;
  for (const std::string& method : {std::string("\4\0\0\0", 4), std::string("\7\0\0", 3)}) {
    const Contents contents = ReadAll(log.Copy(Record(kCompressionRecord, method)), 1);
    BOOST_TEST(absl::IsUnimplemented(contents.status), contents.status.ToString());
  }
  const std::string none = Record(kCompressionRecord, std::string(4, '\0'));
  const Contents plain = ReadAll(log.Copy(none + Record(kFullRecord, std::string(20, 'x'))), 1);
  RequireOk(plain.status);
  BOOST_TEST(plain.records.size() == 1u);
}

// Records with correct checksums that are not frames, or not whole ones.
BOOST_AUTO_TEST_CASE(what_does_not_uncompress_ends_the_log) {
  WrittenLog log(0, rocksdb::kZSTD);
  for (int i = 0; i < 5; ++i) log.Write(100);
  const WalFile file = log.file();
  const std::string bytes = ReadFile(file.path);
  const Contents good = ReadAll(file.path, file.number);
  BOOST_REQUIRE_EQUAL(good.records.size(), 5u);
  const std::string start = bytes.substr(0, good.ends[3]);
  const std::string last = bytes.substr(good.ends[3] + 7, good.ends[4] - good.ends[3] - 7);
  RequireOk(ReadAll(log.Copy(start + Record(kFullRecord, last)), file.number).status);
  for (const std::string& wrong : {std::string(), std::string("no frame"),
                                   last.substr(0, last.size() - 1), last + "x", last + last}) {
    const Contents contents = ReadAll(log.Copy(start + Record(kFullRecord, wrong)), file.number);
    BOOST_TEST(contents.records.size() == 4u);
    BOOST_TEST(absl::IsDataLoss(contents.status), contents.status.ToString());
  }
  // A reader that continues after the first block reads the log's first record again.
  std::string damaged = bytes + std::string(70000, '\0');
  damaged[8] ^= 1;
  const Contents later = ReadAll(log.Copy(damaged), file.number, 40000);
  BOOST_TEST(absl::IsDataLoss(later.status), later.status.ToString());
}

// Newer versions write a record about the previous log (track_and_verify_wals), which is not a
// batch.
BOOST_AUTO_TEST_CASE(records_about_the_log_before_are_passed_over) {
  WrittenLog log;
  const std::string batch(20, 'x');
  for (const auto& [type, number] :
       {std::pair<uint8_t, std::optional<uint32_t>>{130, {}}, {131, 1u}}) {
    const std::string about = Record(type, std::string(24, 'p'), number);
    const std::string bytes =
        about + Record(kFullRecord, batch) + about + Record(kFullRecord, batch);
    const Contents contents = ReadAll(log.Copy(bytes), 1);
    RequireOk(contents.status);
    BOOST_TEST(contents.records.size() == 2u);
  }
  const Contents unknown = ReadAll(log.Copy(Record(20, "?") + Record(kFullRecord, batch)), 1);
  BOOST_TEST(absl::IsDataLoss(unknown.status), unknown.status.ToString());
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there_is_not_found) {
  TemporaryDirectory directory;
  BOOST_TEST(absl::IsNotFound(WalReader::Open(LocalFiles(), directory / "no.log", 1).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
