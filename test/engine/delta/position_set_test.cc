#include "engine/delta/position_set.h"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <set>
#include <utility>

#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(position_set_test, *StartsNoThread())
namespace {

using Members = std::set<uint32_t>;

void Check(const PositionSet& set, uint64_t universe, const Members& members,
           std::mt19937_64& random) {
  BOOST_REQUIRE(set.universe() == universe);
  BOOST_REQUIRE(set.size() == members.size());
  BOOST_REQUIRE(set.Rank(universe) == members.size());
  size_t wrong = 0;
  const auto number = [&] { return universe == 0 ? 0 : random() % (universe + 1); };
  for (int i = 0; i < 200; ++i) {
    const uint64_t a = number(), b = number();
    const uint64_t begin = std::min(a, b), end = std::max(a, b);
    if (a < universe) wrong += set.Contains(a) != (members.count(static_cast<uint32_t>(a)) == 1);
    const auto from = members.lower_bound(static_cast<uint32_t>(begin));
    const auto to = members.lower_bound(static_cast<uint32_t>(end));
    wrong += set.Rank(begin) != static_cast<uint64_t>(std::distance(members.begin(), from));
    for (const uint64_t near_end : {begin, end, std::min(end, begin + random() % 300)}) {
      const auto near_to = members.lower_bound(static_cast<uint32_t>(near_end));
      wrong += set.Count(begin, near_end) != static_cast<uint64_t>(std::distance(from, near_to));
    }
    wrong += set.FirstMember(begin, end) != (from == to ? end : *from);
    wrong += set.BehindLastMember(begin, end) != (from == to ? begin : *std::prev(to) + 1);
    uint64_t absent = begin;
    while (absent < end && members.count(static_cast<uint32_t>(absent)) == 1) ++absent;
    wrong += set.FirstAbsent(begin, end) != absent;
    absent = end;
    while (absent > begin && members.count(static_cast<uint32_t>(absent - 1)) == 1) --absent;
    wrong += set.BehindLastAbsent(begin, end) != absent;
  }
  BOOST_REQUIRE(wrong == 0u);
}

// Changes of a few numbers, or of many that are close together.
void Change(uint64_t universe, Members* members, std::vector<Position>* more,
            std::vector<Position>* less, std::mt19937_64& random) {
  more->clear();
  less->clear();
  Members changed;
  const uint64_t count = random() % 50;
  const bool dense = random() % 3 == 0;
  const uint64_t first = random() % universe;
  for (uint64_t i = 0; i < count * (dense ? 20 : 1); ++i) {
    const auto p =
        static_cast<uint32_t>(dense ? std::min(first + i, universe - 1) : random() % universe);
    if (!changed.insert(p).second) continue;
    if (random() % 2 == 0) {
      more->push_back(p);
      members->insert(p);
    } else {
      less->push_back(p);
      members->erase(p);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(versions_keep_their_members) {
  auto random = TestRandom();
  for (uint64_t universe : {uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{65}, uint64_t{4096},
                            uint64_t{4097}, uint64_t{300000}, uint64_t{400000000}}) {
    std::deque<std::pair<PositionSet, Members>> versions;
    versions.emplace_back(PositionSet(universe), Members());
    std::vector<Position> more, less;
    for (int version = 0; version < (universe < 1000000 ? 150 : 15); ++version) {
      Members members = versions.back().second;
      Change(universe, &members, &more, &less, random);
      PositionSet next = versions.back().first.With(more, less);
      versions.emplace_back(std::move(next), std::move(members));
      // Versions are released in any order; the latest one stays.
      if (versions.size() > 6) {
        versions.erase(versions.begin() + static_cast<ptrdiff_t>(random() % (versions.size() - 1)));
      }
      const auto& [set, expected] = versions[random() % versions.size()];
      Check(set, universe, expected, random);
    }
    for (const auto& [set, expected] : versions) Check(set, universe, expected, random);
  }
}

BOOST_AUTO_TEST_CASE(a_set_may_be_followed_by_several) {
  auto random = TestRandom();
  constexpr uint64_t kUniverse = 100000;
  std::vector<std::pair<PositionSet, Members>> sets = {{PositionSet(kUniverse), Members()}};
  std::vector<Position> more, less;
  for (int i = 0; i < 200; ++i) {
    const size_t from = random() % sets.size();
    Members members = sets[from].second;
    Change(kUniverse, &members, &more, &less, random);
    sets.emplace_back(sets[from].first.With(more, less), std::move(members));
    if (sets.size() > 8) sets.erase(sets.begin() + static_cast<ptrdiff_t>(random() % sets.size()));
  }
  for (const auto& [set, members] : sets) Check(set, kUniverse, members, random);
}

BOOST_AUTO_TEST_CASE(full_and_empty_pages_are_skipped) {
  auto random = TestRandom();
  constexpr uint64_t kUniverse = 20000;
  std::vector<Position> most;
  Members members;
  for (Position p = 777; p < 15000; ++p) {
    most.push_back(p);
    members.insert(p);
  }
  const PositionSet full = PositionSet(kUniverse).With(most, {});
  Check(full, kUniverse, members, random);
  most.pop_back();
  members = {most.front(), 14999};
  most.erase(most.begin());
  Check(full.With({}, most), kUniverse, members, random);
}

BOOST_AUTO_TEST_CASE(a_copy_has_the_members_and_memory_of_its_own) {
  auto random = TestRandom();
  constexpr uint64_t kUniverse = 100000;
  Members members, copied_members;
  std::vector<Position> more, less;
  PositionSet set(kUniverse);
  Check(set.Copy(), kUniverse, {}, random);
  for (int i = 0; i < 20; ++i) {
    Change(kUniverse, &members, &more, &less, random);
    set = set.With(more, less);
    PositionSet copy = set.Copy();
    copied_members = members;
    Change(kUniverse, &copied_members, &more, &less, random);
    copy = copy.With(more, less);
    Check(copy, kUniverse, copied_members, random);
    Check(set, kUniverse, members, random);
  }
}

BOOST_AUTO_TEST_CASE(what_is_there_already_makes_no_difference) {
  const PositionSet set = PositionSet(100).With({5, 7, 7}, {});
  BOOST_TEST(set.size() == 2u);
  const PositionSet same = set.With({7}, {6});
  BOOST_TEST(same.size() == 2u);
  BOOST_TEST(same.Contains(5));
  BOOST_TEST(!same.Contains(6));
  BOOST_TEST(set.With({}, {5, 7}).empty());
  BOOST_TEST(PositionSet().empty());
  BOOST_TEST(PositionSet().Rank(0) == 0u);
  BOOST_TEST(PositionSet().Count(0, 0) == 0u);
}

BOOST_AUTO_TEST_CASE(pages_of_versions_that_are_gone_are_used_again) {
  auto random = TestRandom();
  constexpr uint64_t kUniverse = 1000000;
  PositionSet set(kUniverse);
  for (int i = 0; i < 5000; ++i) {
    std::vector<Position> more, less;
    for (int k = 0; k < 50; ++k) {
      (k % 2 == 0 ? more : less)
          .push_back(static_cast<Position>(random() % kUniverse / 2 * 2 + k % 2));
    }
    set = set.With(more, less);
  }
  // All pages, those of the previous version, and the identification of each page.
  BOOST_TEST(set.memory_bytes() < 2 * kUniverse / 8);
}

// A reader, or the last stored state, may keep a version for any time.
BOOST_AUTO_TEST_CASE(a_version_that_is_kept_does_not_keep_the_pages_of_later_ones) {
  auto random = TestRandom();
  constexpr uint64_t kUniverse = 1000000;
  PositionSet set(kUniverse);
  std::vector<std::pair<PositionSet, Members>> kept;
  Members members;
  std::vector<Position> more, less;
  for (int i = 0; i < 450; ++i) {
    Change(kUniverse, &members, &more, &less, random);
    set = set.With(more, less);
    if (i % 150 == 75) kept.emplace_back(set, members);
    if (i == 300) kept.erase(kept.begin());
  }
  for (const auto& [version, expected] : kept) Check(version, kUniverse, expected, random);
  Check(set, kUniverse, members, random);
  // All pages of two versions that are kept, of the latest and of the previous one.
  BOOST_TEST(set.memory_bytes() < 5 * kUniverse / 8);
}

BOOST_AUTO_TEST_CASE(a_small_change_copies_little) {
  // Pages of the first version are reused: memory shows how much a change takes.
  constexpr uint64_t kUniverse = 100000000;
  std::vector<Position> every;
  for (uint64_t p = 0; p < kUniverse; p += 1000) every.push_back(static_cast<Position>(p));
  const PositionSet before = PositionSet(kUniverse).With(every, {});
  std::vector<Position> more;
  auto random = TestRandom();
  for (int i = 0; i < 100; ++i) more.push_back(static_cast<Position>(random() % kUniverse));
  const uint64_t bytes = before.memory_bytes();
  const PositionSet after = before.With(more, {});
  BOOST_TEST(after.memory_bytes() - bytes < 300000u);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
