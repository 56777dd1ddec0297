#include "index/files/index_directory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/files/run_file.h"
#include "index/machine/status_macros.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(index_directory_test, *StartsNoThread())
namespace {

std::set<std::string> NamesIn(const std::string& path) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.insert(entry.path().filename());
  }
  return names;
}

using Names = std::set<std::string>;

// Writes a run of the one entry (key, 0) under the next name of `prefix`.
absl::StatusOr<ManifestFile> AddRun(IndexDirectory* directory, std::string_view prefix,
                                    uint64_t key) {
  ManifestFile file;
  file.name = directory->NextFileName(prefix, "run");
  ASSIGN_OR_RETURN(auto writer,
                   RunFileWriter::Create(directory->PathOf(file.name), PhysicalType::kU64));
  absl::Status s = writer->Begin(1, 8);
  if (s.ok()) s = writer->Append(absl::Span<const uint64_t>(&key, 1), std::vector<RowId>{0});
  if (s.ok()) s = writer->Finish();
  if (!s.ok()) return s;
  file.size = writer->file().size();
  file.header_checksum = writer->file().header_checksum();
  return file;
}

Manifest ManifestOf(std::vector<ManifestFile> files, uint64_t sequence) {
  Manifest manifest;
  manifest.spec = "key:u64";
  manifest.database_id = "db";
  manifest.column_family = "default";
  manifest.sequence = sequence;
  manifest.files = std::move(files);
  return manifest;
}

// Publishes the version `sequence`: two files that contain that number.
absl::Status PublishVersion(IndexDirectory* directory, uint64_t sequence) {
  ASSIGN_OR_RETURN(auto base, AddRun(directory, "base", sequence));
  ASSIGN_OR_RETURN(auto delta, AddRun(directory, "delta", sequence));
  return directory->Publish(ManifestOf({base, delta}, sequence));
}

// The sequence number in a version, which must be whole.
absl::StatusOr<uint64_t> ReadVersion(const std::string& path) {
  uint64_t sequence = 0;
  const absl::Status s = OpenCurrentVersion(path, [&](const Manifest& manifest) {
    sequence = manifest.sequence;
    if (manifest.files.size() != 2) return absl::DataLossError("not two files");
    for (const ManifestFile& file : manifest.files) {
      ASSIGN_OR_RETURN(const auto run, OpenRun(path + "/" + file.name, VerifyLevel::kFull, 1));
      RETURN_IF_ERROR(CheckIsManifestFile(file, run.file));
      if (run.run.u64()[0] != sequence) return absl::DataLossError("a file of another version");
    }
    return absl::OkStatus();
  });
  if (!s.ok()) return s;
  return sequence;
}

BOOST_AUTO_TEST_CASE(publishes_versions_and_removes_the_one_before) {
  TemporaryDirectory temporary;
  for (const char* name : {"index", "slashes///"}) {
    const std::string path = temporary / name;
    auto directory = RequireOk(IndexDirectory::OpenForWrite(path));
    BOOST_TEST(directory->manifest() == nullptr);
    for (uint64_t version = 1; version <= 3; ++version) {
      RequireOk(PublishVersion(directory.get(), 100 + version));
      BOOST_TEST(directory->manifest()->version == version);
      BOOST_TEST(*ReadVersion(path) == 100 + version);
      const Names expected = {"LOCK", "MANIFEST", absl::StrFormat("base-%06d.run", 2 * version - 1),
                              absl::StrFormat("delta-%06d.run", 2 * version)};
      BOOST_TEST(NamesIn(path) == expected, boost::test_tools::per_element());
    }
    directory.reset();
    BOOST_TEST(*ReadVersion(path) == 103u);
    directory = RequireOk(IndexDirectory::OpenForWrite(path));
    BOOST_TEST(directory->manifest()->version == 3u);
    BOOST_TEST(directory->NextFileName("base", "run") == "base-000007.run");
    BOOST_CHECK(*ReadManifest(path) == *directory->manifest());
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_stays_live_stays_and_its_number_is_never_given_again) {
  TemporaryDirectory temporary;
  auto directory = IndexDirectory::OpenForWrite(temporary / "index").value();
  const ManifestFile base = *AddRun(directory.get(), "base", 1);
  const ManifestFile delta = *AddRun(directory.get(), "delta", 1);
  RequireOk(directory->Publish(ManifestOf({base, delta}, 1)));
  RequireOk(directory->Publish(ManifestOf({base}, 2)));
  const Names expected = {"LOCK", "MANIFEST", "base-000001.run"};
  BOOST_TEST(NamesIn(temporary / "index") == expected, boost::test_tools::per_element());
  directory.reset();
  directory = IndexDirectory::OpenForWrite(temporary / "index").value();
  BOOST_TEST(directory->NextFileName("delta", "run") == "delta-000003.run");
}

BOOST_AUTO_TEST_CASE(a_failed_build_leaves_what_was_there_before) {
  TemporaryDirectory temporary;
  const auto fail = [&](const std::string& path) {
    auto directory = RequireOk(IndexDirectory::OpenForWrite(path));
    RequireOk(AddRun(directory.get(), "base", 1));
    WriteFile(directory->PathOf(directory->NextFileName("spill", "tmp")), "x");
  };
  // no directory
  fail(temporary / "new");
  BOOST_TEST(!std::filesystem::exists(temporary / "new"));
  // an empty one
  std::filesystem::create_directory(temporary / "empty");
  fail(temporary / "empty");
  BOOST_TEST(std::filesystem::is_empty(temporary / "empty"));
  // an index
  RequireOk(PublishVersion(IndexDirectory::OpenForWrite(temporary / "index")->get(), 5));
  const Names before = NamesIn(temporary / "index");
  fail(temporary / "index");
  BOOST_TEST(NamesIn(temporary / "index") == before, boost::test_tools::per_element());
  BOOST_TEST(*ReadVersion(temporary / "index") == 5u);
}

BOOST_AUTO_TEST_CASE(what_an_interrupted_writer_left_goes_and_what_is_not_ours_stays) {
  TemporaryDirectory temporary;
  const std::string path = temporary / "index";
  std::filesystem::create_directory(path);
  for (const char* name : {"base-000001.run", "rows-000002.tbl", "spill-000003.tmp", "LOCK"}) {
    WriteFile(path + "/" + name, "x");
  }
  const auto none = ReadManifest(path);
  BOOST_CHECK(absl::IsNotFound(none.status()));
  BOOST_TEST(none.status().message().find("interrupted") != std::string::npos);
  {
    auto directory = RequireOk(IndexDirectory::OpenForWrite(path));
    BOOST_TEST(NamesIn(path) == Names{"LOCK"}, boost::test_tools::per_element());
    RequireOk(PublishVersion(directory.get(), 1));
  }
  for (const char* name :
       {"base-000009.run", "rows-000009.tbl", "MANIFEST.tmp", "calibration", "notes.txt"}) {
    WriteFile(path + "/" + name, "x");
  }
  auto directory = IndexDirectory::OpenForWrite(path);
  RequireOk(directory);
  const Names expected = {"LOCK",        "MANIFEST", "base-000001.run", "delta-000002.run",
                          "calibration", "notes.txt"};
  BOOST_TEST(NamesIn(path) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_directory_of_other_things_is_left_alone) {
  TemporaryDirectory temporary;
  const std::string path = temporary / "photos";
  std::filesystem::create_directory(path);
  WriteFile(path + "/holiday.jpg", "x");
  WriteFile(path + "/draft.tmp", "x");
  const auto directory = IndexDirectory::OpenForWrite(path);
  BOOST_CHECK(absl::IsFailedPrecondition(directory.status()));
  BOOST_TEST(directory.status().message().find("holiday.jpg") != std::string::npos);
  BOOST_TEST(NamesIn(path) == (Names{"draft.tmp", "holiday.jpg"}),
             boost::test_tools::per_element());
  const auto a_file = IndexDirectory::OpenForWrite(path + "/holiday.jpg");
  BOOST_CHECK(absl::IsFailedPrecondition(a_file.status()));
  BOOST_CHECK(absl::IsNotFound(IndexDirectory::OpenForWrite(temporary / "no/index").status()));
}

BOOST_AUTO_TEST_CASE(there_is_no_index_where_there_is_no_manifest) {
  TemporaryDirectory temporary;
  BOOST_CHECK(absl::IsNotFound(ReadManifest(temporary / "missing").status()));
  const auto empty = ReadManifest(temporary.path());
  BOOST_CHECK(absl::IsNotFound(empty.status()));
  BOOST_TEST(empty.status().message().find("interrupted") == std::string::npos);
  std::filesystem::create_directory(temporary / "MANIFEST");
  BOOST_CHECK(absl::IsFailedPrecondition(ReadManifest(temporary.path()).status()));
}

BOOST_AUTO_TEST_CASE(a_damaged_or_newer_manifest_stops_a_writer_and_nothing_is_removed) {
  TemporaryDirectory temporary;
  const std::string path = temporary / "index";
  RequireOk(PublishVersion(IndexDirectory::OpenForWrite(path)->get(), 5));
  const Names before = NamesIn(path);
  std::string text = ReadFile(path + "/MANIFEST");
  text[40] ^= 1;
  WriteFile(path + "/MANIFEST", text);
  BOOST_CHECK(absl::IsDataLoss(ReadManifest(path).status()));
  BOOST_CHECK(absl::IsDataLoss(IndexDirectory::OpenForWrite(path).status()));
  WriteFile(path + "/MANIFEST", std::string(kMaxManifestBytes + 1, 'x'));
  BOOST_CHECK(absl::IsDataLoss(ReadManifest(path).status()));
  BOOST_TEST(NamesIn(path) == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(only_files_as_they_were_written_are_published) {
  TemporaryDirectory temporary;
  const std::string path = temporary / "index";
  auto directory = IndexDirectory::OpenForWrite(path).value();
  RequireOk(PublishVersion(directory.get(), 1));
  const ManifestFile good = *AddRun(directory.get(), "base", 2);
  ManifestFile file = good;
  file.size += 64;
  BOOST_CHECK(absl::IsFailedPrecondition(directory->Publish(ManifestOf({file}, 2))));
  file = good;
  file.header_checksum += 1;
  BOOST_CHECK(absl::IsFailedPrecondition(directory->Publish(ManifestOf({file}, 2))));
  file.name = directory->NextFileName("base", "run");
  BOOST_CHECK(absl::IsNotFound(directory->Publish(ManifestOf({file}, 2))));
  BOOST_TEST(*ReadVersion(path) == 1u);
  BOOST_TEST(directory->manifest()->version == 1u);

  Manifest unreadable = ManifestOf({good}, 2);
  unreadable.counts = {{"two words", 1}};
  BOOST_CHECK(absl::IsInvalidArgument(directory->Publish(unreadable)));
  BOOST_CHECK(directory->Publish(ManifestOf({good}, 2)).ok());
}

BOOST_AUTO_TEST_CASE(a_file_exchanged_under_its_name_is_found) {
  TemporaryDirectory temporary;
  const std::string path = temporary / "index";
  RequireOk(PublishVersion(IndexDirectory::OpenForWrite(path)->get(), 5));
  std::filesystem::copy_file(path + "/delta-000002.run", temporary / "other");
  RequireOk(PublishVersion(IndexDirectory::OpenForWrite(path)->get(), 6));
  std::filesystem::rename(temporary / "other", path + "/delta-000004.run");
  BOOST_CHECK(absl::IsDataLoss(ReadVersion(path).status()));
}

BOOST_AUTO_TEST_CASE(a_reader_follows_a_writer_that_publishes_meanwhile) {
  TemporaryDirectory temporary;
  const std::string path = temporary / "index";
  auto directory = IndexDirectory::OpenForWrite(path).value();
  RequireOk(PublishVersion(directory.get(), 1));
  int calls = 0;
  std::vector<uint64_t> seen;
  const absl::Status s = OpenCurrentVersion(path, [&](const Manifest& manifest) {
    seen.push_back(manifest.sequence);
    if (++calls <= 3) RequireOk(PublishVersion(directory.get(), 1 + calls));
    return OpenRun(directory->PathOf(manifest.files[0].name), VerifyLevel::kFull).status();
  });
  BOOST_CHECK(s.ok());
  BOOST_TEST(seen == (std::vector<uint64_t>{1, 2, 3, 4}), boost::test_tools::per_element());
  // A file that is missing from the current version is an error, not a reason to try again.
  std::filesystem::remove(directory->PathOf(directory->manifest()->files[0].name));
  BOOST_CHECK(absl::IsNotFound(ReadVersion(path).status()));
}

BOOST_AUTO_TEST_CASE(one_writer_at_a_time_within_a_process) {
  TemporaryDirectory temporary;
  auto first = RequireOk(IndexDirectory::OpenForWrite(temporary / "index"));
  const auto second = IndexDirectory::OpenForWrite(temporary / "index");
  BOOST_CHECK(absl::IsUnavailable(second.status()));
  BOOST_TEST(second.status().message().find(absl::StrFormat("(pid %d)", getpid())) !=
             std::string::npos);
  BOOST_TEST(std::filesystem::exists(temporary / "index/LOCK"));
  first.reset();
  BOOST_CHECK(IndexDirectory::OpenForWrite(temporary / "index").ok());
}

BOOST_AUTO_TEST_CASE(one_writer_at_a_time_across_processes_until_it_dies) {
  TemporaryDirectory temporary;
  int ready[2];
  BOOST_REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    auto directory = IndexDirectory::OpenForWrite(temporary / "index");
    const char ok = directory.ok() ? 'y' : 'n';
    if (write(ready[1], &ok, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char ok = 0;
  BOOST_REQUIRE(read(ready[0], &ok, 1) == 1);
  BOOST_TEST(ok == 'y');
  const auto second = IndexDirectory::OpenForWrite(temporary / "index");
  BOOST_CHECK(absl::IsUnavailable(second.status()));
  BOOST_TEST(second.status().message().find(absl::StrFormat("(pid %d)", child)) !=
             std::string::npos);
  kill(child, SIGKILL);
  BOOST_REQUIRE(waitpid(child, nullptr, 0) == child);
  BOOST_CHECK(IndexDirectory::OpenForWrite(temporary / "index").ok());
  close(ready[0]);
  close(ready[1]);
}

// Publishes forever, and calls `acknowledge` for each published version.
[[noreturn]] void PublishUntilKilled(const std::string& path, int acknowledge) {
  auto directory = IndexDirectory::OpenForWrite(path);
  if (!directory.ok()) _exit(1);
  const std::shared_ptr<const Manifest> manifest = (*directory)->manifest();
  for (uint64_t next = manifest == nullptr ? 1 : manifest->sequence + 1;; ++next) {
    if (!PublishVersion(directory->get(), next).ok()) _exit(2);
    if (write(acknowledge, &next, sizeof(next)) != sizeof(next)) _exit(3);
  }
}

using Microseconds = std::chrono::microseconds;

// Runs a writer and kills it after `life`, or after it has published `enough` versions if that is
// not 0. Returns the last version whose publish had returned, or 0.
uint64_t RunAndKillWriter(const std::string& path, Microseconds life, int enough = 0) {
  int pipe_ends[2];
  BOOST_REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) PublishUntilKilled(path, pipe_ends[1]);
  close(pipe_ends[1]);
  uint64_t acknowledged = 0;
  for (int i = 0; i < enough; ++i) {
    BOOST_REQUIRE(read(pipe_ends[0], &acknowledged, sizeof(acknowledged)) > 0);
  }
  usleep(static_cast<useconds_t>(life.count()));
  kill(child, SIGKILL);
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_REQUIRE_MESSAGE(WIFSIGNALED(status), "the writer failed: " << WEXITSTATUS(status));
  while (read(pipe_ends[0], &acknowledged, sizeof(acknowledged)) > 0) continue;
  close(pipe_ends[0]);
  return acknowledged;
}

// How long a writer takes to start and publish twice.
Microseconds LifeOfTwoVersions(const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  RunAndKillWriter(path, Microseconds(0), 2);
  return std::chrono::duration_cast<Microseconds>(std::chrono::steady_clock::now() - start);
}

Microseconds RandomLife(std::mt19937_64& random, Microseconds longest) {
  return Microseconds(random() % static_cast<uint64_t>(longest.count()));
}

BOOST_AUTO_TEST_CASE(a_kill_at_any_instant_leaves_the_version_before_or_after) {
  constexpr size_t kRounds = FewerUnderTsan(200, 5);
  std::mt19937_64 random = TestRandom();
  TemporaryDirectory temporary;
  const std::string path = temporary / "index";
  const Microseconds longest = 2 * LifeOfTwoVersions(path);
  uint64_t before = *ReadVersion(path);
  for (size_t round = 0; round < kRounds; ++round) {
    const uint64_t acknowledged =
        std::max(before, RunAndKillWriter(path, RandomLife(random, longest)));
    const auto held = ReadVersion(path);
    BOOST_REQUIRE_MESSAGE(held.ok(), "round " << round << ": " << held.status());
    BOOST_TEST((*held == acknowledged || *held == acknowledged + 1),
               *held << " after " << acknowledged);
    before = *held;
  }
  BOOST_TEST_MESSAGE(before << " versions published in " << kRounds << " lives");
  BOOST_TEST(before > 2u);
  // The next writer clears away whatever they left.
  RequireOk(IndexDirectory::OpenForWrite(path));
  BOOST_TEST(NamesIn(path).size() == 4u);
}

BOOST_AUTO_TEST_CASE(a_kill_during_the_first_build_leaves_no_index_or_all_of_it) {
  std::mt19937_64 random = TestRandom();
  TemporaryDirectory temporary;
  const Microseconds longest = LifeOfTwoVersions(temporary / "trial");
  for (int round = 0; round < 30; ++round) {
    const std::string path = temporary / std::to_string(round);
    const uint64_t acknowledged = RunAndKillWriter(path, RandomLife(random, longest));
    const auto held = ReadVersion(path);
    if (acknowledged == 0 && absl::IsNotFound(held.status())) {
      // Empty, or a valid start for the next build.
      RequireOk(PublishVersion(IndexDirectory::OpenForWrite(path)->get(), 1));
      BOOST_TEST(NamesIn(path).size() == 4u);
      continue;
    }
    BOOST_REQUIRE_MESSAGE(held.ok(), "round " << round << ": " << held.status());
    BOOST_TEST((*held == acknowledged || *held == acknowledged + 1));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
