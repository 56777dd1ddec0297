#include "index/strings/pilot_table.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <set>
#include <vector>

#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(pilot_table_test)
namespace {

uint32_t Look(const PilotTable& table, uint64_t hash) {
  return table.Value(table.Slot(hash, table.Bucket(hash)));
}

std::vector<uint32_t> Values(size_t count) {
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint32_t>(7 * i + 3);
  return values;
}

void Check(const std::vector<uint64_t>& hashes) {
  const std::vector<uint32_t> values = Values(hashes.size());
  for (int threads : {1, 3}) {
    const auto table = PilotTable::Build(hashes, values, threads);
    BOOST_REQUIRE(table.has_value());
    for (size_t i = 0; i < hashes.size(); ++i) BOOST_REQUIRE(Look(*table, hashes[i]) == values[i]);
  }
}

std::vector<uint64_t> RandomHashes(size_t count) {
  auto random = TestRandom(count);
  std::set<uint64_t> hashes;
  while (hashes.size() < count) hashes.insert(random());
  std::vector<uint64_t> shuffled(hashes.begin(), hashes.end());
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  return shuffled;
}

BOOST_AUTO_TEST_CASE(every_hash_leads_to_its_value) {
  for (size_t count = 0; count < 300; ++count) Check(RandomHashes(count));
  for (size_t power = 512; power <= FewerUnderTsan(262144, 8); power *= 2) {
    for (size_t count : {power - 1, power, power + 1}) Check(RandomHashes(count));
  }
  // Around the number of a part.
  for (size_t count : {10239, 10240, 10241, 20479, 20480}) Check(RandomHashes(count));
}

BOOST_AUTO_TEST_CASE(takes_five_bytes_a_hash) {
  const std::vector<uint64_t> hashes = RandomHashes(200'000);
  const auto table = PilotTable::Build(hashes, Values(hashes.size()), 2);
  BOOST_REQUIRE(table.has_value());
  BOOST_TEST(table->memory_bytes() <= 51 * hashes.size() / 10);
}

BOOST_AUTO_TEST_CASE(a_hash_that_is_not_there_leads_to_some_value_and_not_always_to_one) {
  const std::vector<uint64_t> hashes = RandomHashes(50'000);
  const std::vector<uint32_t> values = Values(hashes.size());
  const auto table = PilotTable::Build(hashes, values, 2);
  BOOST_REQUIRE(table.has_value());
  auto random = TestRandom(1);
  std::vector<uint32_t> met(hashes.size());
  for (int i = 0; i < 100'000; ++i) {
    const uint32_t value = Look(*table, random());
    BOOST_REQUIRE(value % 7 == 3);
    BOOST_REQUIRE(value / 7 < hashes.size());
    ++met[value / 7];
  }
  BOOST_TEST(*std::max_element(met.begin(), met.end()) < 100u);
}

BOOST_AUTO_TEST_CASE(a_table_that_gave_its_values_away_leads_to_where_they_were) {
  const std::vector<uint64_t> hashes = RandomHashes(50'000);
  const std::vector<uint32_t> values = Values(hashes.size());
  auto table = PilotTable::Build(hashes, values, 2);
  BOOST_REQUIRE(table.has_value());
  const uint64_t before = table->memory_bytes();
  const AlignedBuffer<uint32_t> taken = table->TakeSlots();
  BOOST_TEST(table->memory_bytes() == before - taken.size() * sizeof(uint32_t));
  // Within 1% of the prediction.
  BOOST_TEST(taken.size() <= PilotTable::SlotsFor(hashes.size()) * 101 / 100);
  BOOST_TEST(taken.size() >= PilotTable::SlotsFor(hashes.size()));
  for (size_t i = 0; i < hashes.size(); ++i) {
    BOOST_REQUIRE(taken[table->Slot(hashes[i], table->Bucket(hashes[i]))] == values[i]);
  }
}

BOOST_AUTO_TEST_CASE(equal_hashes_have_no_table) {
  for (size_t count : {2, 1000, 30'000}) {
    std::vector<uint64_t> hashes = RandomHashes(count);
    hashes.back() = hashes.front();
    BOOST_TEST(!PilotTable::Build(hashes, Values(count), 2).has_value());
  }
  BOOST_TEST(!PilotTable::Build(std::vector<uint64_t>(5000, 42), Values(5000), 2).has_value());
}

// All hashes are in one part, so no table can be built.
BOOST_AUTO_TEST_CASE(hashes_of_one_part_among_many_have_no_table) {
  const std::vector<uint64_t> equal(3'000'000, 42);
  BOOST_TEST(!PilotTable::Build(equal, Values(equal.size()), 2).has_value());
}

// Nor are slots taken in two parts for hashes that are all in one.
BOOST_AUTO_TEST_CASE(hashes_of_one_part_of_two_have_no_table) {
  std::vector<uint64_t> hashes = RandomHashes(10'300);
  for (uint64_t& hash : hashes) hash >>= 1;
  BOOST_TEST(!PilotTable::Build(hashes, Values(hashes.size()), 2).has_value());
}

// A table that compared only halves of hashes would treat each of these pairs as equal.
BOOST_AUTO_TEST_CASE(hashes_of_one_bucket_with_equal_lower_halves_are_told_apart) {
  std::vector<uint64_t> hashes = RandomHashes(20'000);
  for (size_t i = 0; i < 1000; ++i) hashes.push_back(hashes[i] ^ uint64_t{1} << 32);
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  Check(hashes);
}

// Distributions that no hash function has: the build ends, and a resulting table is correct.
BOOST_AUTO_TEST_CASE(hashes_that_are_none_end_with_or_without_a_table) {
  std::vector<uint64_t> ascending(20'000), high(20'000), low(20'000);
  for (uint64_t i = 0; i < ascending.size(); ++i) {
    ascending[i] = i;
    high[i] = i << 44;
    low[i] = (i << 32) | i;
  }
  for (const auto& hashes : {ascending, high, low}) {
    const std::vector<uint32_t> values = Values(hashes.size());
    const auto table = PilotTable::Build(hashes, values, 2);
    if (!table.has_value()) continue;
    for (size_t i = 0; i < hashes.size(); ++i) BOOST_REQUIRE(Look(*table, hashes[i]) == values[i]);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
