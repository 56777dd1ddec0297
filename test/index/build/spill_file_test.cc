#include "index/build/spill_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <string>

#include "index/build/run_builder.h"
#include "test/index/build/vector_sink.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(spill_file_test)
namespace {

// Adds a million entries to a builder of a megabyte; the status of finishing the part.
absl::Status Overfill(RunBuilder* builder) {
  EncodedKeys key(PhysicalType::kU32);
  key.AppendU32(7);
  for (RowId row = 0; row < 1'000'000 && builder->part(0)->Add(key, {row});) ++row;
  return builder->part(0)->Finish();
}

BOOST_AUTO_TEST_CASE(names_what_keeps_it_from_spilling) {
  RunBuilder::Options options;
  options.memory_budget = 1 << 20;
  {
    RunBuilder builder(PhysicalType::kU32, options, 1);
    const absl::Status status = Overfill(&builder);
    BOOST_TEST(absl::IsResourceExhausted(status));
    BOOST_TEST(status.message().find("memory budget of 1048576 bytes") != std::string::npos);
  }
  {
    options.spill_directory = "/there/is/no/such/directory";
    RunBuilder builder(PhysicalType::kU32, options, 1);
    const absl::Status status = Overfill(&builder);
    BOOST_TEST(absl::IsNotFound(status));
    BOOST_TEST(status.message().find(options.spill_directory) != std::string::npos);
    VectorSink sink;
    BOOST_TEST((builder.Finish({0}, &sink) == status));
  }
}

BOOST_AUTO_TEST_CASE(no_space_is_resource_exhausted_and_leaves_nothing_behind) {
  const TemporaryDirectory directory;
  RunBuilder::Options options;
  options.memory_budget = 1 << 20;
  options.spill_directory = directory.path();
  RunBuilder builder(PhysicalType::kU32, options, 1);
  // A limit on the size of files simulates a full disk.
  rlimit before;
  BOOST_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit tight = before;
  tight.rlim_cur = 1 << 20;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const absl::Status status = Overfill(&builder);
  BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  BOOST_TEST(absl::IsResourceExhausted(status));
  BOOST_TEST(status.message().find(directory.path()) != std::string::npos);
  BOOST_TEST(std::filesystem::is_empty(directory.path()));
}

// The number of the file descriptor that this process has open on a nameless file in `directory`.
int FindSpillFile(const std::string& directory) {
  for (const auto& link : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(link.path(), error).string();
    if (target.rfind(directory, 0) == 0) return std::stoi(link.path().filename().string());
  }
  return -1;
}

BOOST_AUTO_TEST_CASE(a_damaged_spill_file_is_data_loss) {
  for (bool truncate : {false, true}) {
    const TemporaryDirectory directory;
    RunBuilder::Options options;
    options.memory_budget = 1 << 20;
    options.spill_directory = directory.path();
    RunBuilder builder(PhysicalType::kU32, options, 1);
    RequireOk(Overfill(&builder));
    BOOST_TEST(std::filesystem::is_empty(directory.path()));
    const int fd = FindSpillFile(directory.path());
    BOOST_REQUIRE(fd >= 0);
    if (truncate) {
      BOOST_REQUIRE(ftruncate(fd, 1'000'000) == 0);
    } else {
      char byte;
      BOOST_REQUIRE(pread(fd, &byte, 1, 777'777) == 1);
      byte = static_cast<char>(byte ^ 1);
      BOOST_REQUIRE(pwrite(fd, &byte, 1, 777'777) == 1);
    }
    VectorSink sink;
    const absl::Status status = builder.Finish({0}, &sink);
    BOOST_TEST(absl::IsDataLoss(status));
    BOOST_TEST(status.message().find("at offset") != std::string::npos);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
