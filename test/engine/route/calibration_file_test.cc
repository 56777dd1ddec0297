#include "engine/route/calibration_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/files/checksum.h"
#include "index/files/index_directory.h"
#include "index/query/sorted_array.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(calibration_file_test)
namespace {

// Curves whose numbers depend on `seed`, and are stored in a file exactly.
CostCurves Curves(double seed) {
  CostCurves curves;
  for (size_t k = 0; k < CostCurves::kKnots; ++k) {
    curves.ns[CostCurves::kPoint][k] = seed + 0.5 * static_cast<double>(k);
    curves.ns[CostCurves::kCount][k] = 2 * seed * static_cast<double>(uint64_t{1} << (k / 3));
  }
  curves.rows_per_query = 1.25;
  curves.ns_per_row = 0.0625;
  return curves;
}

CalibrationRecord Record(const std::string& machine, uint64_t version, double seed) {
  return {{machine, version, "entries=7 threads=2 cpu:packed=cpu:packed"},
          {Curves(seed), Curves(seed + 1)}};
}

std::string WithChecksum(std::string lines) {
  return absl::StrFormat("%schecksum %016x\n", lines, Checksum(lines.data(), lines.size()));
}

std::string Format(const std::vector<CalibrationRecord>& records) {
  return RequireOk(FormatCalibration(records));
}

bool Mentions(const absl::Status& status, std::string_view text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

bool Holds(const std::string& directory, const CalibrationRecord& record) {
  const auto routes = LoadCalibration(directory, record.key);
  return routes.ok() && *routes == record.routes;
}

void PublishVersion(const std::string& path) {
  auto directory = RequireOk(IndexDirectory::OpenForWrite(path));
  Manifest manifest;
  manifest.spec = "key:u64";
  manifest.database_id = "db";
  manifest.column_family = "default";
  RequireOk(directory->Publish(manifest));
}

BOOST_AUTO_TEST_CASE(records_read_back_as_they_were_written) {
  for (const std::vector<CalibrationRecord>& records :
       {std::vector<CalibrationRecord>{},
        {Record("a", 1, 3)},
        {Record("a machine, 2 cores", 1, 3), Record("b", 18446744073709551615u, 10)},
        {{{"m", 1, "s"}, {}}}}) {
    const std::string text = Format(records);
    const auto back = RequireOk(ParseCalibration(text, "path"));
    BOOST_TEST((back == records));
  }
}

BOOST_AUTO_TEST_CASE(times_are_stored_to_a_millionth) {
  CalibrationRecord record = Record("a", 1, 3);
  record.routes[0].ns[CostCurves::kFind].fill(1234567.89);
  const auto back = RequireOk(ParseCalibration(Format({record}), "path"));
  BOOST_TEST(back[0].routes[0].ns[CostCurves::kFind][5] == 1234567.89,
             boost::test_tools::tolerance(1e-5));
}

BOOST_AUTO_TEST_CASE(what_is_no_calibration_is_not_written) {
  const auto refused = [](const CalibrationRecord& record) {
    return absl::IsInvalidArgument(FormatCalibration({&record, 1}).status());
  };
  CalibrationRecord record = Record("two\nlines", 1, 3);
  BOOST_TEST(refused(record));
  record = Record("", 1, 3);
  BOOST_TEST(refused(record));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double ns : {nan, infinity, -1.0, 0.0, 1e300}) {
    record = Record("a", 1, 3);
    record.routes[1].ns[CostCurves::kPoint][10] = ns;
    BOOST_TEST(refused(record), ns);
  }
  record = Record("a", 1, 3);
  record.routes[0].ns_per_row = nan;
  BOOST_TEST(refused(record));
  record.routes.assign(kMaxCalibratedRoutes + 1, Curves(1));
  BOOST_TEST(refused(record));
  const std::vector<CalibrationRecord> many(kMaxCalibrationRecords + 1, Record("a", 1, 3));
  BOOST_TEST(absl::IsInvalidArgument(FormatCalibration(many).status()));
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_changed_byte_is_found) {
  const std::string text = Format({Record("a", 1, 3)});
  for (size_t i = 0; i < text.size(); ++i) {
    if (!absl::IsDataLoss(ParseCalibration(text.substr(0, i), "path").status())) {
      BOOST_ERROR("cut at " << i);
    }
    std::string changed = text;
    changed[i] ^= 1;
    if (ParseCalibration(changed, "path").ok()) BOOST_ERROR("byte " << i);
  }
}

BOOST_AUTO_TEST_CASE(hostile_lines_are_refused_although_their_checksum_is_right) {
  const std::string text = Format({Record("a", 1, 3)});
  const std::string lines = text.substr(0, text.rfind("checksum "));
  RequireOk(ParseCalibration(WithChecksum(lines), "path"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = lines;
    const size_t at = changed.find(from);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, from);
    changed.replace(at, from.size(), to);
    return ParseCalibration(WithChecksum(changed), "CAL").status();
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"point 3 3.5", "point 3 2.5"},
           {"point 3 3.5", "point 0 3.5"},
           {"point 3 3.5", "point -3 3.5"},
           {"point 3 3.5", "point nan 3.5"},
           {"point 3 3.5", "point inf inf"},
           {"point 3 3.5", "point 3  3.5"},
           {"point 3 3.5", "point 3 0x3.5"},
           {"point 3 3.5", "point 3.0 3.5"},
           {"point 3 3.5", "point 3"},
           {"point 3 3.5", "point 3 3.5 3.5"},
           {"point 3 3.5", "pint 3 3.5"},
           {"rows 1.25 0.0625", "rows 1.25"},
           {"rows 1.25 0.0625", "rows 1.25 1e999"},
           {"rows 1.25 0.0625", "rows -1.25 0.0625"},
           {"version 1", "version 01"},
           {"version 1", "version 18446744073709551616"},
           {"version 1", "version"},
           {"machine a", "machine "},
           {"machine a", "machine \x80"},
           {"machine a\n", ""},
           {"structure ", "struct "},
           {"cairn-calibration 2", "cairn-manifest 1"},
           {"\n", "\r\n"},
           {"\nversion", "\n\nversion"}}) {
    const absl::Status status = with(from, to);
    BOOST_TEST(absl::IsDataLoss(status), from << " -> " << to << ": " << status.ToString());
    BOOST_TEST(Mentions(status, "'CAL'"));
  }
  BOOST_TEST(absl::IsFailedPrecondition(with("cairn-calibration 2", "cairn-calibration 3")));
  std::string many = "cairn-calibration 2\n";
  for (int i = 0; i < 17; ++i) {
    absl::StrAppendFormat(&many, "machine m\nversion %d\nstructure s\n", i);
  }
  BOOST_TEST(absl::IsDataLoss(ParseCalibration(WithChecksum(many), "path").status()));
  BOOST_TEST(absl::IsDataLoss(
      ParseCalibration(std::string(kMaxCalibrationBytes + 1, 'x'), "path").status()));
}

BOOST_AUTO_TEST_CASE(what_was_stored_is_found_under_its_key_alone) {
  const TemporaryDirectory directory;
  const CalibrationRecord record = Record("a", 1, 3);
  BOOST_TEST(absl::IsNotFound(LoadCalibration(directory.path(), record.key).status()));
  RequireOk(StoreCalibration(directory.path(), record));
  BOOST_TEST(Holds(directory.path(), record));
  CalibrationKey other = record.key;
  other.machine = "b";
  BOOST_TEST(absl::IsNotFound(LoadCalibration(directory.path(), other).status()));
  other = record.key;
  other.version = 2;
  BOOST_TEST(absl::IsNotFound(LoadCalibration(directory.path(), other).status()));
  other = record.key;
  other.structure += " more";
  BOOST_TEST(absl::IsNotFound(LoadCalibration(directory.path(), other).status()));
  // No other files remain.
  const std::filesystem::directory_iterator entries(directory.path());
  BOOST_TEST(std::distance(begin(entries), end(entries)) == 1);
}

BOOST_AUTO_TEST_CASE(storing_again_replaces_and_keeps_other_machines) {
  const TemporaryDirectory directory;
  RequireOk(StoreCalibration(directory.path(), Record("a", 1, 3)));
  RequireOk(StoreCalibration(directory.path(), Record("b", 1, 4)));
  RequireOk(StoreCalibration(directory.path(), Record("a", 1, 5)));
  BOOST_TEST(Holds(directory.path(), Record("a", 1, 5)));
  BOOST_TEST(Holds(directory.path(), Record("b", 1, 4)));
}

BOOST_AUTO_TEST_CASE(the_oldest_of_too_many_goes) {
  const TemporaryDirectory directory;
  for (size_t i = 0; i <= kMaxCalibrationRecords; ++i) {
    const std::string machine = absl::StrFormat("machine %d", i);
    RequireOk(StoreCalibration(directory.path(), Record(machine, 1, 3)));
  }
  BOOST_TEST(!Holds(directory.path(), Record("machine 0", 1, 3)));
  for (size_t i = 1; i <= kMaxCalibrationRecords; ++i) {
    BOOST_TEST(Holds(directory.path(), Record(absl::StrFormat("machine %d", i), 1, 3)));
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_told_and_written_over) {
  const TemporaryDirectory directory;
  const CalibrationRecord record = Record("a", 1, 3);
  for (const std::string& bytes :
       {std::string(), std::string("nonsense\n"), std::string(kMaxCalibrationBytes + 1, 'x')}) {
    WriteFile(directory / "CALIBRATION", bytes);
    const absl::Status damaged = LoadCalibration(directory.path(), record.key).status();
    BOOST_TEST(absl::IsDataLoss(damaged), damaged.ToString());
    BOOST_TEST(Mentions(damaged, directory / "CALIBRATION"));
    BOOST_TEST(StoreCalibration(directory.path(), record).ok());
    BOOST_TEST(Holds(directory.path(), record));
  }
}

BOOST_AUTO_TEST_CASE(a_directory_that_cannot_be_written_is_an_error_and_no_more) {
  const TemporaryDirectory directory;
  const CalibrationRecord record = Record("a", 1, 3);
  BOOST_TEST(!StoreCalibration(directory / "missing", record).ok());
  // Also for the superuser, for whom permissions have no effect: a directory has the file's name.
  std::filesystem::create_directory(directory / "CALIBRATION");
  WriteFile(directory / "CALIBRATION/file", "");
  BOOST_TEST(!StoreCalibration(directory.path(), record).ok());
  BOOST_TEST(!LoadCalibration(directory.path(), record.key).ok());
  const std::filesystem::directory_iterator entries(directory.path());
  BOOST_TEST(std::distance(begin(entries), end(entries)) == 1);  // no temporary file remains
}

BOOST_AUTO_TEST_CASE(an_index_keeps_its_calibration_and_a_rebuilt_one_does_not_use_it) {
  const TemporaryDirectory parent;
  const std::string path = parent / "index";
  PublishVersion(path);
  CalibrationRecord record = Record("a", ReadManifest(path)->version, 3);
  RequireOk(StoreCalibration(path, record));
  // Remains of a process that died while it stored another file.
  WriteFile(path + "/CALIBRATION.1.0.tmp", "cairn");
  PublishVersion(path);
  BOOST_TEST(std::filesystem::exists(path + "/CALIBRATION"));
  BOOST_TEST(!std::filesystem::exists(path + "/CALIBRATION.1.0.tmp"));

  CalibrationRecord rebuilt = record;
  rebuilt.key.version = ReadManifest(path)->version;
  BOOST_TEST(rebuilt.key.version == 2);
  BOOST_TEST(absl::IsNotFound(LoadCalibration(path, rebuilt.key).status()));
  RequireOk(StoreCalibration(path, rebuilt));
  BOOST_TEST(Holds(path, rebuilt));
  BOOST_TEST(!Holds(path, record));  // it is invalid
}

BOOST_AUTO_TEST_CASE(a_calibration_whose_index_is_gone_does_not_bar_the_directory) {
  const TemporaryDirectory parent;
  const std::string path = parent / "index";
  PublishVersion(path);
  RequireOk(StoreCalibration(path, Record("a", 1, 3)));
  std::filesystem::remove(path + "/MANIFEST");
  BOOST_TEST(absl::IsNotFound(ReadManifest(path).status()));
  PublishVersion(path);
  BOOST_TEST(ReadManifest(path).ok());
}

BOOST_AUTO_TEST_CASE(processes_that_store_at_a_time_leave_a_whole_file) {
  const TemporaryDirectory directory;
  constexpr int kProcesses = 4;
  for (int p = 0; p < kProcesses; ++p) {
    if (const pid_t pid = fork(); pid == 0) {
      for (int i = 0; i < 50; ++i) {
        const CalibrationRecord mine = Record(absl::StrFormat("machine %d", p), 1, i + 1);
        if (!StoreCalibration(directory.path(), mine).ok()) _exit(1);
        const auto found = LoadCalibration(directory.path(), mine.key);
        if (!found.ok() && !absl::IsNotFound(found.status())) _exit(2);  // lost, but whole
      }
      _exit(0);
    } else {
      BOOST_REQUIRE(pid > 0);
    }
  }
  for (int p = 0; p < kProcesses; ++p) {
    int status = 0;
    BOOST_REQUIRE(wait(&status) > 0);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  const auto records =
      RequireOk(ParseCalibration(ReadFile(directory / "CALIBRATION"), "CALIBRATION"));
  BOOST_TEST(!records.empty());
  const std::filesystem::directory_iterator entries(directory.path());
  BOOST_TEST(std::distance(begin(entries), end(entries)) == 1);
}

BOOST_AUTO_TEST_CASE(descriptions_tell_machines_and_structures_apart_and_stand_on_a_line) {
  const std::string machine = MachineDescription(false);
  BOOST_TEST(machine.find("core") != std::string::npos);
  BOOST_TEST(MachineDescription(true).substr(0, machine.size()) == machine);

  const std::vector<uint32_t> keys = {1, 2};
  const std::vector<RowId> rows = {0, 1};
  const SortedArray index(*SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  const Route plain("cpu:a", &index, false, Strategy::kUnbuffered, 2);
  const Route odd("cpu:\n", &index, false, Strategy::kUnbuffered, 2);
  const Route* const one[] = {&plain};
  const Route* const two[] = {&plain, &odd};
  BOOST_TEST(StructureDescription(one, 2, 3) == "entries=2 threads=3 cpu:a=" + index.description());
  BOOST_TEST(StructureDescription(one, 2, 3) != StructureDescription(one, 2, 1));
  BOOST_TEST(StructureDescription(one, 2, 3) != StructureDescription(one, 3, 3));
  BOOST_TEST(StructureDescription(one, 2, 3) != StructureDescription(two, 2, 3));
  const CalibrationRecord record{{machine, 1, StructureDescription(two, 2, 3)}, {Curves(1)}};
  BOOST_TEST(FormatCalibration({&record, 1}).ok());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
