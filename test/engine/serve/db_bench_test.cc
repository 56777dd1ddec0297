// Indexes over databases written by RocksDB's own db_bench: every result equals that of a full
// scan, and Verify finds nothing. db_bench is from Debian's package rocksdb-tools, or the program
// CAIRN_DB_BENCH, for example of another version of RocksDB.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/options_util.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(db_bench_test)
namespace {

struct Workload {
  const char* name;
  const char* flags;
  const char* column_family = "default";
};

std::ostream& operator<<(std::ostream& out, const Workload& workload) {
  return out << workload.name;
}

constexpr Workload kWorkloads[] = {
    {"fillseq", "--benchmarks=fillseq --num=20000"},
    {"overwrite_and_delete_uncompressed",
     "--benchmarks=fillrandom,overwrite,deleterandom --num=30000 --deletes=8000 "
     "--compression_type=none --write_buffer_size=500000"},
    {"zstd_many_levels",
     "--benchmarks=fillrandom,overwrite,deleterandom,compact,overwrite --num=30000 --deletes=3000 "
     "--compression_type=zstd --write_buffer_size=300000 --target_file_size_base=200000"},
    {"lz4_without_wal",
     "--benchmarks=fillrandom,flush --num=20000 --compression_type=lz4 --disable_wal=1"},
    {"zlib_long_keys",
     "--benchmarks=fillrandom --num=10000 --key_size=100 --compression_type=zlib"},
    {"blob_files",
     "--benchmarks=fillrandom,overwrite,flush --num=20000 --enable_blob_files=1 --min_blob_size=64 "
     "--blob_compression_type=lz4 --write_buffer_size=500000"},
    {"merge_operands",
     "--benchmarks=fillrandom,mergerandom --num=20000 --merge_operator=stringappend "
     "--write_buffer_size=500000"},
    {"range_tombstones",
     "--benchmarks=fillrandom --num=20000 --range_tombstone_width=50 "
     "--writes_per_range_tombstone=500 --max_num_range_tombstones=30 --write_buffer_size=300000"},
    {"many_column_families",
     "--benchmarks=fillrandom,overwrite,deleterandom --num=30000 --deletes=5000 "
     "--num_column_families=5 --write_buffer_size=300000",
     "column_family_name_000003"},
    {"compressed_log", "--benchmarks=fillrandom,overwrite --num=20000 --wal_compression=zstd"},
    // RocksDB 7.8 reads neither of formats 6 and 7: 6 came with 8.6, and 7 with 10.4.
    {"table_format_5", "--benchmarks=fillrandom,overwrite,flush --num=20000 --format_version=5"},
    {"table_format_6", "--benchmarks=fillrandom,overwrite,flush --num=20000 --format_version=6"},
    {"table_format_7",
     "--benchmarks=fillrandom,overwrite,flush --num=20000 --format_version=7 "
     "--compression_type=zstd"},
};

struct Entry {
  std::string key;
  std::string primary_key;
  bool operator<(const Entry& other) const {
    return std::tie(key, primary_key) < std::tie(other.key, other.primary_key);
  }
};

// The results of a full scan with a plain iterator. The key is big-endian bytes, whatever its kind.
std::vector<Entry> FullScan(const std::string& directory, const std::string& column_family,
                            size_t offset, size_t length) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::ConfigOptions config;
  config.ignore_unknown_options = true;
  rocksdb::DBOptions db_options;
  RequireOk(rocksdb::LoadLatestOptions(config, directory, &db_options, &families));
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::OpenForReadOnly(db_options, directory, families, &handles, Into(&db)));
  std::vector<Entry> entries;
  for (size_t i = 0; i < handles.size(); ++i) {
    if (handles[i]->GetName() == column_family) {
      std::unique_ptr<rocksdb::Iterator> rows(db->NewIterator({}, handles[i]));
      for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
        const std::string value = rows->value().ToString();
        if (offset < value.size()) {
          entries.push_back({value.substr(offset, length), rows->key().ToString()});
        }
      }
      RequireOk(rows->status());
    }
    RequireOk(db->DestroyColumnFamilyHandle(handles[i]));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// One index and its expected entries.
struct Indexed {
  std::unique_ptr<SecondaryIndex> index;
  std::vector<Entry> entries;

  EncodedKeys Physical(const std::vector<std::string>& keys) const {
    EncodedKeys column(index->codec().kind());
    for (const std::string& key : keys) {
      uint64_t number = 0;
      for (const char c : key) number = number << 8 | static_cast<uint8_t>(c);
      switch (column.kind()) {
        case PhysicalType::kU32:
          column.AppendU32(static_cast<uint32_t>(number));
          break;
        case PhysicalType::kU64:
          column.AppendU64(number);
          break;
        case PhysicalType::kBytes:
          column.AppendBytes(key);
          break;
      }
    }
    return column;
  }

  std::vector<std::string> PrimaryKeys(RowSpan rows) const {
    StringList column;
    RequireOk(index->PrimaryKeys(rows, &column));
    std::vector<std::string> keys;
    for (size_t i = 0; i < column.size(); ++i) keys.emplace_back(column[i]);
    return keys;
  }

  // The primary keys of the entries whose key is in [lower, upper).
  std::vector<std::string> Expected(const std::string& lower, const std::string& upper) const {
    std::vector<std::string> keys;
    auto entry = std::lower_bound(entries.begin(), entries.end(), Entry{lower, ""});
    for (; entry != entries.end() && entry->key < upper; ++entry)
      keys.push_back(entry->primary_key);
    return keys;
  }
};

void CheckAnswers(const Indexed& indexed, size_t key_bytes) {
  std::mt19937_64 random = TestRandom();
  const auto random_key = [&] {
    std::string key;
    if (!indexed.entries.empty() && random() % 4 != 0) {
      key = indexed.entries[random() % indexed.entries.size()].key;
      if (random() % 4 == 0) key.back() = static_cast<char>(random());
    } else {
      for (size_t i = 0; i < key_bytes; ++i) key.push_back(static_cast<char>(random()));
    }
    return key;
  };

  std::vector<std::string> points, lower, upper;
  for (size_t i = 0; i < FewerSanitized(500, 5, 5); ++i) {
    points.push_back(random_key());
    lower.push_back(random_key());
    upper.push_back(random_key());
  }
  FindResult matches;
  EncodedKeys batch = indexed.Physical(points);
  RequireOk(indexed.index->Find(batch.Batch(), &matches));
  BOOST_REQUIRE(matches.size() == points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    BOOST_TEST(indexed.PrimaryKeys(matches.rows(i)) ==
                   indexed.Expected(points[i], points[i] + std::string(1, '\0')),
               boost::test_tools::per_element());
  }

  EncodedKeys lows = indexed.Physical(lower), highs = indexed.Physical(upper);
  const RangeBatch ranges = RangeBatch::HalfOpen(lows.Batch(), highs.Batch());
  std::vector<uint64_t> counts(lower.size());
  RequireOk(indexed.index->Count(ranges, absl::MakeSpan(counts)));
  for (size_t i = 0; i < lower.size(); ++i) {
    BOOST_TEST(counts[i] == indexed.Expected(lower[i], upper[i]).size());
  }
  const RangeBatch few =
      RangeBatch::HalfOpen(lows.Batch().Slice(0, 20), highs.Batch().Slice(0, 20));
  RequireOk(indexed.index->Scan(few, &matches));
  for (size_t i = 0; i < few.size(); ++i) {
    BOOST_TEST(indexed.PrimaryKeys(matches.rows(i)) == indexed.Expected(lower[i], upper[i]),
               boost::test_tools::per_element());
  }

  if (indexed.index->codec().kind() == PhysicalType::kBytes) {
    std::vector<std::string> prefixes;
    for (int i = 0; i < 50; ++i) prefixes.push_back(random_key().substr(0, 1 + random() % 2));
    EncodedKeys column = indexed.Physical(prefixes);
    RequireOk(indexed.index->Scan(RangeBatch::Prefix(column.Batch()), &matches));
    for (size_t i = 0; i < prefixes.size(); ++i) {
      BOOST_TEST(indexed.PrimaryKeys(matches.rows(i)) ==
                     indexed.Expected(prefixes[i], prefixes[i] + std::string(40, '\xff')),
                 boost::test_tools::per_element());
    }
  }
}

BOOST_DATA_TEST_CASE(answers_equal_a_full_scan_of_what_db_bench_wrote,
                     boost::unit_test::data::make(kWorkloads), workload) {
  // Whatever the files contain, the same threads read them.
  if (kUnderTsan && workload.name != std::string_view("zstd_many_levels")) return;
  TemporaryDirectory directory;
  const std::string db = directory / "db";
  const char* const given = std::getenv("CAIRN_DB_BENCH");
  const std::string command = std::string(given != nullptr ? given : "db_bench") + " --db=" + db +
                              " --seed=7 --threads=1 " + workload.flags + " >" +
                              (directory / "log") + " 2>&1";
  if (std::system(command.c_str()) != 0) {
    const std::string log = ReadFile(directory / "log");
    BOOST_REQUIRE_MESSAGE(absl::StrContains(log, "format_version"), command << ": " << log);
    BOOST_TEST_MESSAGE("this db_bench does not write it");
    return;
  }

  const auto opened = SnapshotSource::FromDirectory(db, workload.column_family);
  if (given != nullptr && !opened.ok()) {
    const std::string why = opened.status().ToString();
    BOOST_TEST_MESSAGE("refused: " << why);
    BOOST_TEST(absl::StrContains(why, db), why);
    BOOST_TEST(absl::StrContains(why, "newer"), why);
    return;
  }
  RequireOk(opened.status());
  const SnapshotSource& source = **opened;
  struct Case {
    const char* spec;
    size_t offset, length;
  };
  const std::vector<Case> cases = {
      {"a=value[0:4]:u32be", 0, 4}, {"b=value[3:8]:u64be", 3, 8}, {"c=value[5:3]:bytes", 5, 3}};
  std::vector<BuildTarget> targets;
  for (const Case& c : cases) {
    auto spec = RequireOk(IndexSpec::Parse(c.spec));
    targets.push_back({spec, directory / spec.name});
  }
  auto reports = RequireOk(SecondaryIndex::BuildAll(source, targets));

  for (size_t i = 0; i < cases.size(); ++i) {
    auto index = RequireOk(SecondaryIndex::Open(targets[i].directory));
    Indexed indexed{std::move(index),
                    FullScan(db, workload.column_family, cases[i].offset, cases[i].length)};
    BOOST_REQUIRE(indexed.entries.size() > 1000u);
    BOOST_TEST(reports[i].entries == indexed.entries.size());
    CheckAnswers(indexed, cases[i].length);
    BOOST_TEST(indexed.index->Verify().ToString() == "OK");
    std::vector<std::string> differences;
    const absl::Status verified = indexed.index->VerifyAgainst(source, 10, &differences);
    BOOST_TEST(verified.ToString() == "OK");
    BOOST_TEST(differences.empty());
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
