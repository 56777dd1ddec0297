#include "cpu_fast/packed/packed_index.h"

#include <algorithm>
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/cpu_fast/packed/packed_sets.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(packed_index_test)
namespace {

template <typename Key>
void CheckEveryForm(const std::vector<OracleData<Key>>& sets) {
  for (const OracleData<Key>& data : sets) {
    if (kUnderTsan && data.keys.size() < 50000) continue;  // one thread builds it
    const SortedRun run = OracleRun(data);
    for (LeafDirectory directory :
         {LeafDirectory::kAuto, LeafDirectory::kCells, LeafDirectory::kTree}) {
      for (int bits : {0, 16, 32, 64}) {
        if (bits > static_cast<int>(sizeof(Key)) * 8) continue;
        if (bits != 0 && data.keys.size() > 100000) continue;
        for (SimdLevel level : SupportedSimdLevels()) {
          const auto index = MakePackedIndex(run, {directory, bits, level});
          if (absl::IsFailedPrecondition(index.status())) {
            BOOST_REQUIRE(directory == LeafDirectory::kCells);
            break;
          }
          RequireOk(index);
          CheckPointsAgainstOracle(**index, data);
          for (size_t size : {1, 64, 129, 257}) {
            if (kUnderAsan && size != 129) continue;
            CheckPointsAgainstOracle(**index, data, size);
          }
          if (kUnderTsan) break;  // instructions are one thread's
        }
      }
    }
  }
}

using DataTypes = boost::mpl::list<uint32_t, uint64_t>;

BOOST_AUTO_TEST_CASE(every_form_answers_like_the_oracle_for_32_bit_keys) {
  CheckEveryForm(OracleCatalogue<uint32_t>());
  CheckEveryForm(EvenSets<uint32_t>());
  CheckEveryForm(UnevenSets<uint32_t>());
}

BOOST_AUTO_TEST_CASE(every_form_answers_like_the_oracle_for_64_bit_keys) {
  CheckEveryForm(OracleCatalogue<uint64_t>());
  CheckEveryForm(EvenSets<uint64_t>());
  CheckEveryForm(UnevenSets<uint64_t>());
}

// Stretches of random density and length, some of equal keys, up to the ends of the key space.
template <typename Key>
OracleData<Key> RandomStretches(uint64_t seed) {
  auto random = TestRandom(seed);
  std::vector<Key> keys;
  const size_t stretches = 1 + random() % 40;
  Key key = random() % 2 == 0 ? 0 : static_cast<Key>(random());
  for (size_t s = 0; s < stretches; ++s) {
    const int gap_bits = static_cast<int>(random() % (sizeof(Key) * 8 - 8));
    const size_t length = 1 + random() % (random() % 4 == 0 ? 3000 : 300);
    for (size_t i = 0; i < length; ++i) {
      keys.push_back(key);
      key = static_cast<Key>(key + (static_cast<Key>(random()) & ((Key{1} << gap_bits) - 1)));
    }
    if (random() % 4 == 0) key = static_cast<Key>(key + random());
    if (random() % 8 == 0) keys.insert(keys.end(), random() % 400, static_cast<Key>(~Key{0}));
  }
  return oracle::FinishIntegers("stretches " + std::to_string(seed), std::move(keys));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(stretches_of_any_density_answer_like_the_oracle, Key, DataTypes) {
  const uint64_t seeds = FewerSanitized(60, 6, 10);
  for (uint64_t seed = 100; seed < 100 + seeds; ++seed) {
    const OracleData<Key> data = RandomStretches<Key>(seed);
    const SortedRun run = OracleRun(data);
    for (int bits : {0, 16, 32, 64}) {
      if (bits > static_cast<int>(sizeof(Key)) * 8) continue;
      for (SimdLevel level : {SupportedSimdLevels().front(), SupportedSimdLevels().back()}) {
        CheckPointsAgainstOracle(
            *RequireOk(MakePackedIndex(run, {LeafDirectory::kAuto, bits, level})), data);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(ranges_and_refusals_like_any_ordered_index, *StartsNoThread()) {
  const auto make = [](SortedRun run) {
    auto index = RequireOk(MakePackedIndex(std::move(run)));
    return std::unique_ptr<OrderedIndex>(std::move(index));
  };
  CheckCatalogue<uint32_t>(make, 5000);
  CheckCatalogue<uint64_t>(make, 5000);
}

BOOST_AUTO_TEST_CASE(chooses_cells_unless_keys_need_too_many_groups) {
  auto sets = UnevenSets<uint64_t>();
  for (auto& data : EvenSets<uint64_t>()) {
    if (data.keys.size() > 100000) sets.push_back(std::move(data));
  }
  for (const auto& data : sets) {
    const auto index = RequireOk(MakePackedIndex(OracleRun(data)));
    const bool cells = index->description().find("directory=cells") != std::string::npos;
    BOOST_TEST_CONTEXT(data.name << ": " << index->description()) {
      BOOST_TEST(cells == (data.name != "700 clusters"));
    }
  }
}

BOOST_AUTO_TEST_CASE(bounds_what_the_directory_takes) {
  auto sets = EvenSets<uint32_t>();
  for (auto& data : UnevenSets<uint32_t>()) sets.push_back(std::move(data));
  for (const auto& data : sets) {
    if (data.keys.size() < 30000) continue;
    for (LeafDirectory directory : {LeafDirectory::kAuto, LeafDirectory::kTree}) {
      const auto index = RequireOk(MakePackedIndex(OracleRun(data), {directory, 0, {}}));
      const auto bytes = static_cast<double>(index->memory_bytes());
      BOOST_TEST_CONTEXT(data.name) {
        BOOST_TEST(bytes / static_cast<double>(data.keys.size()) < 64.0 / 7 * 1.25);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(counts_its_huge_pages) {
  for (const auto& data : EvenSets<uint64_t>()) {
    const auto index = RequireOk(MakePackedIndex(OracleRun(data)));
    BOOST_TEST(index->huge_page_bytes() <= index->memory_bytes());
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_it_cannot_do) {
  const std::string_view keys[] = {"a"};
  const RowId rows[] = {0};
  auto bytes = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  BOOST_TEST(absl::IsUnimplemented(MakePackedIndex(bytes).status()));
  BOOST_TEST(absl::IsInvalidArgument(
      MakePackedIndex(SortedRun(), {LeafDirectory::kAuto, 64, {}}).status()));
  BOOST_TEST(absl::IsInvalidArgument(
      MakePackedIndex(SortedRun(), {LeafDirectory::kAuto, 8, {}}).status()));
  BOOST_TEST(absl::IsFailedPrecondition(
      MakePackedIndex(SortedRun(), {LeafDirectory::kCells, 0, {}}).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
