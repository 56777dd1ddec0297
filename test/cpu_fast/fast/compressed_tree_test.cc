#include "cpu_fast/fast/compressed_tree.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(compressed_tree_test, *StartsNoThread())
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run, std::optional<SimdLevel> simd = {}) {
  return RequireOk(MakeCompressedTree(std::move(run), simd));
}

template <typename Key>
void CheckPointsAtEveryLevel(const OracleData<Key>& data) {
  const SortedRun run = OracleRun(data);
  for (SimdLevel level : SupportedSimdLevels()) {
    const auto tree = Make(run, level);
    CheckPointsAgainstOracle(*tree, data);
    CheckPointsAgainstOracle(*tree, data, 33);
  }
}

template <typename Key>
void CheckEveryLevel() {
  for (const OracleData<Key>& data : OracleCatalogue<Key>()) {
    CheckAgainstOracle(*Make(OracleRun(data)), data);
    CheckPointsAtEveryLevel(data);
  }
}

// Pages whose max delta is one below, at and above the max of each width. Each is followed by a
// page of another width. Queries are around all their keys, and far above them.
template <typename Key>
OracleData<Key> PagesOfEveryWidth() {
  constexpr Key kMax = std::numeric_limits<Key>::max();
  std::vector<Key> keys;
  Key next = 3;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t greatest : {uint64_t{0}, uint64_t{31}, uint64_t{254}, uint64_t{255},
                              uint64_t{256}, uint64_t{65534}, uint64_t{65535}, uint64_t{65536},
                              uint64_t{1} << 24, (uint64_t{1} << 32) - 1, uint64_t{1} << 32}) {
      if (greatest > kMax - next || (greatest >= uint64_t{1} << 24 && round != 2)) continue;
      for (uint64_t i = 0; i < 32; ++i) keys.push_back(next + Key(greatest / 31 * i));
      keys.back() = next + static_cast<Key>(greatest);
      if (keys.back() > kMax - 1000) break;
      next = keys.back() + (round == 0 ? 0 : round == 1 ? 1 : 700);
    }
  }
  for (int i = 0; i < 70; ++i) keys.push_back(kMax);
  return oracle::FinishIntegers("pages of every width", keys);
}

template <typename Key>
uint64_t BytesPerKey(Key gap) {
  std::vector<Key> keys(1 << 16);
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<Key>(i) * gap, rows[i] = RowId(i);
  auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  return Make(run)->memory_bytes() / keys.size();
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_32_bit_keys_at_every_simd_level) {
  CheckEveryLevel<uint32_t>();
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_64_bit_keys_at_every_simd_level) {
  CheckEveryLevel<uint64_t>();
}

BOOST_AUTO_TEST_CASE(pages_of_every_width_stand_side_by_side) {
  CheckPointsAtEveryLevel(PagesOfEveryWidth<uint32_t>());
  CheckPointsAtEveryLevel(PagesOfEveryWidth<uint64_t>());
}

BOOST_AUTO_TEST_CASE(a_page_takes_the_width_of_its_greatest_delta) {
  BOOST_TEST(BytesPerKey<uint32_t>(8) == 1u);  // 31 * 8 < 2^8
  BOOST_TEST(BytesPerKey<uint32_t>(9) == 2u);
  BOOST_TEST(BytesPerKey<uint32_t>(2114) == 2u);  // 31 * 2114 < 2^16
  BOOST_TEST(BytesPerKey<uint32_t>(2115) == 4u);
  BOOST_TEST(BytesPerKey<uint64_t>(8) == 1u);
  BOOST_TEST(BytesPerKey<uint64_t>(2114) == 2u);
  BOOST_TEST(BytesPerKey<uint64_t>(2115) == 4u);
  BOOST_TEST(BytesPerKey<uint64_t>(138547332) == 4u);  // 31 * 138547332 < 2^32
  BOOST_TEST(BytesPerKey<uint64_t>(138547333) == 8u);
}

BOOST_AUTO_TEST_CASE(refuses_keys_of_bytes) {
  const std::string_view keys[] = {"a"};
  const RowId rows[] = {0};
  auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  BOOST_TEST(absl::IsUnimplemented(MakeCompressedTree(run).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
