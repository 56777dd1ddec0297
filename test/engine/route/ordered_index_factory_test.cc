#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(ordered_index_factory_test)
namespace {

SortedRun RunOf(PhysicalType kind) {
  if (kind == PhysicalType::kU32) return OracleRun(OracleCatalogue<uint32_t>(100).back());
  if (kind == PhysicalType::kU64) return OracleRun(OracleCatalogue<uint64_t>(100).back());
  return OracleRun(OracleCatalogue<std::string>(100).back());
}

std::string DescriptionOf(std::string_view factory, PhysicalType kind) {
  auto index = MakeOrderedIndex(factory, RunOf(kind));
  return index.ok() ? (*index)->description() : std::string(index.status().message());
}

absl::Status ErrorOf(std::string_view factory, PhysicalType kind = PhysicalType::kU32) {
  return MakeOrderedIndex(factory, RunOf(kind)).status();
}

BOOST_AUTO_TEST_CASE(makes_the_structure_that_is_named) {
  BOOST_TEST(DescriptionOf("cpu:sorted_array", PhysicalType::kU32) == "cpu:sorted_array");
  BOOST_TEST(DescriptionOf("cpu:fast,simd=scalar", PhysicalType::kU32) ==
             "cpu:fast,page=none,simd=scalar");
  BOOST_TEST(DescriptionOf("cpu:fast,page=4k,simd=scalar", PhysicalType::kU64) ==
             "cpu:fast,page=4k,simd=scalar");
  BOOST_TEST(DescriptionOf("cpu:fast,simd=scalar,page=2m", PhysicalType::kU64) ==
             "cpu:fast,page=2m,simd=scalar");
  for (const char* factory :
       {"cpu:fast,compressed,simd=scalar", "cpu:fast,simd=scalar,compressed"}) {
    BOOST_TEST(DescriptionOf(factory, PhysicalType::kU64) == "cpu:fast,compressed,simd=scalar");
  }
  BOOST_TEST(DescriptionOf("cpu:strings,simd=scalar", PhysicalType::kBytes) ==
             "cpu:strings,simd=scalar");
  BOOST_TEST(DescriptionOf("cpu:partial_key,simd=scalar", PhysicalType::kBytes) ==
             "cpu:partial_key,simd=scalar");
}

BOOST_AUTO_TEST_CASE(auto_chooses_by_the_kind_of_keys) {
  for (const char* factory : {"auto", "cpu:auto"}) {
    for (PhysicalType kind : {PhysicalType::kU32, PhysicalType::kU64}) {
      BOOST_TEST(DescriptionOf(factory, kind).substr(0, 8) == "cpu:fast");
    }
    BOOST_TEST(DescriptionOf(factory, PhysicalType::kBytes).substr(0, 15) == "cpu:partial_key");
  }
  BOOST_TEST(DescriptionOf("auto,simd=scalar", PhysicalType::kU32) ==
             "cpu:fast,page=none,simd=scalar");
}

BOOST_AUTO_TEST_CASE(auto_packs_runs_that_outgrow_the_first_caches) {
  std::vector<uint32_t> keys(1 << 14);
  std::vector<RowId> rows(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) keys[i] = i * 5, rows[i] = i;
  for (size_t size : {keys.size() - 1, keys.size()}) {
    auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys).subspan(0, size),
                                               absl::MakeConstSpan(rows).subspan(0, size)));
    auto index = RequireOk(MakeOrderedIndex("auto", run));
    const char* expected = size < keys.size() ? "cpu:fast," : "cpu:packed,";
    BOOST_TEST(index->description().find(expected) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_description_makes_the_same_structure) {
  for (const char* factory : {"cpu:sorted_array", "cpu:fast", "cpu:fast,page=2m", "cpu:packed",
                              "cpu:packed,directory=tree,bits=16", "cpu:fast,compressed"}) {
    const std::string description = DescriptionOf(factory, PhysicalType::kU32);
    BOOST_TEST(DescriptionOf(description, PhysicalType::kU32) == description);
  }
  for (const char* factory : {"cpu:partial_key", "cpu:strings"}) {
    const std::string description = DescriptionOf(factory, PhysicalType::kBytes);
    BOOST_TEST(DescriptionOf(description, PhysicalType::kBytes) == description);
  }
}

BOOST_AUTO_TEST_CASE(every_structure_answers_like_the_oracle, *StartsNoThread()) {
  for (const OracleData<uint32_t>& data : OracleCatalogue<uint32_t>(100)) {
    for (const char* factory :
         {"auto", "cpu:sorted_array", "cpu:fast,page=4k", "cpu:packed", "cpu:fast,compressed"}) {
      auto index = RequireOk(MakeOrderedIndex(factory, OracleRun(data)));
      BOOST_TEST(index->huge_page_bytes() <= index->memory_bytes());
      CheckAgainstOracle(*index, data);
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_it_does_not_know_and_says_what) {
  for (const char* factory : {"",
                              ",",
                              ":",
                              "cpu",
                              "cpu:",
                              "fast",
                              "tpu:fast",
                              "auto:fast",
                              "cpu:nothing",
                              "cpu:fast,",
                              "cpu:fast,page",
                              "cpu:fast,page=",
                              "cpu:fast,=4k",
                              "cpu:fast,page=8k",
                              "cpu:fast,compressed=yes",
                              "cpu:fast,compressed=",
                              "cpu:fast,compressed,compressed",
                              "cpu:fast,compressed,page=4k",
                              "cpu:sorted_array,compressed",
                              "cpu:fast,page=4k,page=4k",
                              "cpu:fast,colour=red",
                              "cpu:packed,bits",
                              "cpu:packed,bits=17",
                              "cpu:packed,bits=x",
                              "cpu:packed,bits=99999999999",
                              "cpu:packed,directory=list",
                              "cpu:packed,page=4k",
                              "cpu:sorted_array,page=4k",
                              "cpu:fast,simd=mmx",
                              "cpu:fast page=4k",
                              "CPU:FAST"}) {
    const absl::Status s = ErrorOf(factory);
    BOOST_TEST(absl::IsInvalidArgument(s), factory << ": " << s);
    BOOST_TEST(s.message().find(factory) != std::string::npos);
  }
  const absl::Status unknown = ErrorOf("cpu:nothing");
  BOOST_TEST(unknown.message().find("cpu:sorted_array") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(refuses_keys_that_a_structure_does_not_take) {
  BOOST_TEST(absl::IsUnimplemented(ErrorOf("cpu:fast", PhysicalType::kBytes)));
  BOOST_TEST(absl::IsUnimplemented(ErrorOf("cpu:fast,compressed", PhysicalType::kBytes)));
  BOOST_TEST(absl::IsUnimplemented(ErrorOf("cpu:strings", PhysicalType::kU64)));
  BOOST_TEST(absl::IsUnimplemented(ErrorOf("cpu:partial_key", PhysicalType::kU64)));
}

BOOST_AUTO_TEST_CASE(says_why_there_is_nothing_for_gpus) {
  const auto devices = ListDevices();
  if (devices.ok()) return;
  const absl::Status s = ErrorOf("gpu:auto");
  BOOST_TEST(absl::IsUnavailable(s));
  BOOST_TEST(s.message().find(std::string(devices.status().message())) != std::string::npos);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
