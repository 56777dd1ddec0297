#include "engine/util/status.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace cairn {
namespace {

BOOST_AUTO_TEST_SUITE(status_test)

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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
