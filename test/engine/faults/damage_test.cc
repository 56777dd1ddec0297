// Every bit of every file of a small index is flipped, and every file is truncated at every length.
// An index that opens must have the same results as before; otherwise the error must be DataLoss.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(damage_test)
namespace {

// The results of all queries of an index.
std::string Answers(const SecondaryIndex& index) {
  std::string answers = index.spec().ToString();
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.codec().kind()), &matches, options));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    answers += "\n" + *index.codec().Format(matches.keys, i) + "\t" + std::string(primary_keys[i]);
  }
  const auto stats = RequireOk(index.Stats());
  answers += "\n" + std::to_string(stats.rows) + " " + std::to_string(stats.sequence) + " " +
             std::to_string(stats.distinct_keys) + " " + std::to_string(stats.version) + " " +
             stats.database_id;
  return answers;
}

struct Damaged {
  TestDatabase db;
  std::string directory;
  std::string answers;
  std::vector<std::string> files;

  explicit Damaged(const char* spec) : directory(db.Beside("index")) {
    for (int i = 0; i < 10; ++i) {
      db.Put(std::string(i % 3, 'k') + std::to_string(i * 7), std::to_string(i % 4));
    }
    auto index = RequireOk(SecondaryIndex::Build(*db.Source(), *IndexSpec::Parse(spec), directory));
    answers = Answers(*index);
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      // A damaged CALIBRATION is rewritten (calibration_file_test).
      const std::string name = file.path().filename();
      if (name != "LOCK" && name != "CALIBRATION") files.push_back(file.path());
    }
    BOOST_REQUIRE(files.size() == 3u);
  }

  // Whether the index is rejected as damaged or has its old results.
  bool IsSafe() const {
    OpenOptions options;
    options.calibration = Calibration::kNone;
    const auto index = SecondaryIndex::Open(directory, options);
    if (!index.ok()) return absl::IsDataLoss(index.status());
    return Answers(**index) == answers;
  }
};

constexpr const char* kSpecs[] = {"value.field('|',0):u32", "value.field('|',0):u64", "value:text"};

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_data_loss_or_changes_no_answer) {
  for (const char* spec : kSpecs) {
    Damaged damaged(spec);
    for (const std::string& file : damaged.files) {
      std::string bytes = ReadFile(file);
      for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
        WriteFile(file, bytes);
        if (!damaged.IsSafe()) BOOST_ERROR(spec << ": bit " << bit << " of " << file);
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      }
      WriteFile(file, bytes);
    }
    BOOST_TEST(damaged.IsSafe());
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_is_data_loss) {
  for (const char* spec : kSpecs) {
    Damaged damaged(spec);
    for (const std::string& file : damaged.files) {
      const std::string bytes = ReadFile(file);
      for (size_t size = 0; size < bytes.size(); ++size) {
        WriteFile(file, bytes.substr(0, size));
        const auto index = SecondaryIndex::Open(damaged.directory);
        if (!absl::IsDataLoss(index.status())) {
          BOOST_ERROR(spec << ": " << file << " cut at " << size << ": " << index.status());
        }
      }
      WriteFile(file, bytes + '\0');
      BOOST_TEST(absl::IsDataLoss(SecondaryIndex::Open(damaged.directory).status()));
      WriteFile(file, bytes);
    }
    BOOST_TEST(damaged.IsSafe());
  }
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_data_loss_and_a_missing_manifest_no_index) {
  Damaged damaged("value:text");
  for (const std::string& file : damaged.files) {
    const std::string bytes = ReadFile(file);
    std::filesystem::remove(file);
    const absl::Status status = SecondaryIndex::Open(damaged.directory).status();
    if (file.find("MANIFEST") != std::string::npos) {
      BOOST_TEST(absl::IsNotFound(status));
    } else {
      BOOST_TEST(absl::IsDataLoss(status));
    }
    WriteFile(file, bytes);
  }
  BOOST_CHECK(absl::IsNotFound(SecondaryIndex::Open(damaged.directory + "/nowhere").status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
