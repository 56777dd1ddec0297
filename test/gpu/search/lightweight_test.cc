// The sorted array, the Eytzinger tree and the pivot tree, with every option, and the search kernel
// with policies that they do not use.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/run/device_run.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/search/search_policies.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(lightweight_test, NeedsDevice)
namespace {

constexpr size_t kParts = 5;

std::vector<std::string> AllStructures() {
  std::vector<std::string> all;
  for (const std::string layout : {"soa", "aos"}) {
    all.push_back("gpu:sorted_array," + layout);
    for (const std::string k : {"2", "9", "17", "33"}) {
      all.push_back("gpu:eytzinger,k=" + k + "," + layout);
      for (const std::string levels : {"", "levels=0,", "levels=2,"}) {
        all.push_back("gpu:pivot,k=" + k + "," + levels + layout);
      }
    }
  }
  return all;
}

// Each structure is tested with its own part of the catalog.
template <typename Key>
void StructuresAgreeWithTheOracle() {
  const std::vector<OracleData<Key>> catalogue = OracleCatalogue<Key>();
  const std::vector<std::string> structures = AllStructures();
  for (size_t s = 0; s < structures.size(); ++s) {
    for (size_t i = s % kParts; i < catalogue.size(); i += kParts) {
      BOOST_TEST_CONTEXT(structures[s] << ", " << catalogue[i].name) {
        const auto index = RequireOk(MakeOrderedIndex(structures[s], OracleRun(catalogue[i])));
        CheckAgainstOracle(*index, catalogue[i]);
      }
    }
  }
}

template <typename Key>
DeviceKeys KeysOf(const DeviceArray<Key>& keys) {
  return DeviceKeys(keys.data(), keys.size());
}

// The expected answers for the queries of a data set.
template <typename Key>
struct Expected {
  std::vector<Position> lower, upper;
  std::vector<RowId> first;
  std::vector<uint8_t> found;

  explicit Expected(const OracleData<Key>& data) {
    for (Key query : data.queries) {
      const auto [low, high] = std::equal_range(data.keys.begin(), data.keys.end(), query);
      lower.push_back(static_cast<Position>(low - data.keys.begin()));
      upper.push_back(static_cast<Position>(high - data.keys.begin()));
      found.push_back(low != high);
      first.push_back(low != high ? data.row_ids[lower.back()] : kNoRow);
    }
  }
};

// Runs all operations on single keys.
template <typename Key>
void CheckPolicy(const PolicySearch<Key>& search, const DeviceRun<Key>& run,
                 const OracleData<Key>& data) {
  const Expected<Key> expected(data);
  const DeviceArray<Key> queries(data.queries);
  const DeviceArray<uint32_t> results(queries.size());
  const DeviceArray<uint8_t> found(queries.size());
  const auto ask = [&](Operation query, void* to) {
    RequireOk(search.search(run, query, KeysOf(queries), to, nullptr));
  };
  ask(Operation::kLowerBound, results.data());
  BOOST_TEST((results.ToHost() == expected.lower));
  ask(Operation::kUpperBound, results.data());
  BOOST_TEST((results.ToHost() == expected.upper));
  ask(Operation::kFindFirst, results.data());
  BOOST_TEST((results.ToHost() == expected.first));
  ask(Operation::kContains, found.data());
  BOOST_TEST((found.ToHost() == expected.found));
}

template <typename Key>
void PoliciesAgreeWithTheOracle() {
  const std::vector<PolicySearch<Key>> searches = PolicySearches<Key>();
  const std::vector<OracleData<Key>> catalogue = OracleCatalogue<Key>(20000);
  for (size_t i = 0; i < catalogue.size(); ++i) {
    const auto run = RequireOk(UploadRun<Key>(OracleRun(catalogue[i]), nullptr));
    for (size_t s = i % kParts; s < searches.size(); s += kParts) {
      BOOST_TEST_CONTEXT(searches[s].name << ", " << catalogue[i].name) {
        CheckPolicy(searches[s], run, catalogue[i]);
      }
    }
  }
}

// Every structure and policy over a few entries: little enough for compute-sanitizer.
template <typename Key>
void AFewEntries() {
  std::vector<Key> keys;
  for (Key i = 0; i < 300; ++i) keys.push_back(i / 2 * 3);
  OracleData<Key> data = oracle::FinishIntegers<Key>("a few", std::move(keys));
  data.queries.resize(std::min<size_t>(data.queries.size(), 70));
  for (const std::string& structure : AllStructures()) {
    BOOST_TEST_CONTEXT(structure) {
      const auto index = RequireOk(MakeOrderedIndex(structure, OracleRun(data)));
      CheckPointsAgainstOracle(*index, data);
    }
  }
  const auto run = RequireOk(UploadRun<Key>(OracleRun(data), nullptr));
  for (const PolicySearch<Key>& search : PolicySearches<Key>()) {
    BOOST_TEST_CONTEXT(search.name) {
      CheckPolicy(search, run, data);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_few_entries_under_every_structure_and_policy) {
  AFewEntries<uint32_t>();
  AFewEntries<uint64_t>();
}

BOOST_AUTO_TEST_CASE(structures_over_32_bit_keys_agree_with_the_oracle) {
  StructuresAgreeWithTheOracle<uint32_t>();
}

BOOST_AUTO_TEST_CASE(structures_over_64_bit_keys_agree_with_the_oracle) {
  StructuresAgreeWithTheOracle<uint64_t>();
}

BOOST_AUTO_TEST_CASE(policies_over_32_bit_keys_agree_with_the_oracle) {
  PoliciesAgreeWithTheOracle<uint32_t>();
}

BOOST_AUTO_TEST_CASE(policies_over_64_bit_keys_agree_with_the_oracle) {
  PoliciesAgreeWithTheOracle<uint64_t>();
}

BOOST_AUTO_TEST_CASE(descriptions_name_every_parameter_and_make_the_same_structure) {
  std::vector<RowId> row_ids(1000);
  std::iota(row_ids.begin(), row_ids.end(), 0);
  const SortedRun run = *SortedRun::FromSorted(std::vector<uint32_t>(1000, 7), row_ids);
  const auto description = [&](const std::string& factory) {
    const auto index = MakeDeviceIndex(factory, run);
    BOOST_REQUIRE_MESSAGE(index.ok(), factory << ": " << index.status());
    return (*index)->description();
  };
  for (const std::string& factory : AllStructures()) {
    BOOST_TEST(description(description(factory)) == description(factory));
  }
  BOOST_TEST(description("gpu:pivot,k=17,aos") == "gpu:pivot,k=17,levels=2,aos");
  BOOST_TEST(description("gpu:pivot,k=2,soa,levels=3") == "gpu:pivot,k=2,levels=3,soa");
  BOOST_TEST(description("gpu:eytzinger,k=9,soa") == "gpu:eytzinger,k=9,soa");
}

BOOST_AUTO_TEST_CASE(options_that_make_no_sense_are_refused) {
  const SortedRun run = *SortedRun::FromSorted(std::vector<uint32_t>{1}, std::vector<RowId>{1});
  for (const char* factory :
       {"gpu:sorted_array,k=2", "gpu:sorted_array,aos,soa", "gpu:sorted_array,aos=1",
        "gpu:eytzinger,k=1", "gpu:eytzinger,k=3", "gpu:eytzinger,levels=2", "gpu:pivot,k=34",
        "gpu:pivot,levels=33", "gpu:pivot,levels=-1", "gpu:pivot,nonsense"}) {
    BOOST_TEST(absl::IsInvalidArgument(MakeDeviceIndex(factory, run).status()), factory);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
