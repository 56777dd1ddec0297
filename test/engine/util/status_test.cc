#include "engine/util/status.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "absl/strings/match.h"
#include "rocksdb/version.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(status_test)
namespace {

BOOST_AUTO_TEST_CASE(keeps_the_kind_of_error_and_says_what_failed) {
  BOOST_CHECK(FromRocksDb(rocksdb::Status::OK(), "cannot open 'x'").ok());
  const absl::Status lost =
      FromRocksDb(rocksdb::Status::Corruption("bad block"), "cannot open 'x'");
  BOOST_CHECK(absl::IsDataLoss(lost));
  BOOST_CHECK(std::string(lost.message()) == "cannot open 'x': Corruption: bad block");
  BOOST_CHECK(absl::IsNotFound(FromRocksDb(rocksdb::Status::NotFound(), "x")));
  BOOST_CHECK(absl::IsNotFound(FromRocksDb(rocksdb::Status::PathNotFound(), "x")));
  BOOST_CHECK(absl::IsResourceExhausted(FromRocksDb(rocksdb::Status::NoSpace(), "x")));
  BOOST_CHECK(absl::IsResourceExhausted(FromRocksDb(rocksdb::Status::MemoryLimit(), "x")));
  BOOST_CHECK(absl::IsInternal(FromRocksDb(rocksdb::Status::Incomplete("x"), "x")));
  BOOST_CHECK(absl::IsUnimplemented(FromRocksDb(rocksdb::Status::NotSupported("x"), "x")));
  BOOST_CHECK(absl::IsInternal(FromRocksDb(rocksdb::Status::IOError("x"), "x")));
}

BOOST_AUTO_TEST_CASE(what_a_newer_version_wrote_comes_with_advice) {
  for (const char* message : {"Corrupt or unsupported format_version: 7 in file 000012.sst",
                              "Unknown Footer version. Maybe this file was created with newer "
                              "version of RocksDB?"}) {
    const absl::Status status =
        FromRocksDb(rocksdb::Status::Corruption(message), "cannot open 'x'");
    BOOST_TEST(absl::IsDataLoss(status));
    BOOST_TEST(absl::StrContains(status.message(), "build Cairn against that"), status);
    BOOST_TEST(absl::StrContains(status.message(), rocksdb::GetRocksVersionAsString()), status);
  }
  const absl::Status other = FromRocksDb(rocksdb::Status::Corruption("bad block"), "reading");
  BOOST_TEST(!absl::StrContains(other.message(), "build"), other);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
