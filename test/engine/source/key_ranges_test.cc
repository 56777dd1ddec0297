#include "engine/source/key_ranges.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "test/engine/source/source_test.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_ranges_test)
namespace {

// A sorted set of keys, whose weights are counts.
class KeySet : public KeySpace {
 public:
  explicit KeySet(std::vector<std::string> keys) : keys_(std::move(keys)) {
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
  }
  absl::StatusOr<std::vector<uint64_t>> Weigh(absl::Span<const KeySpan> spans) override {
    std::vector<uint64_t> weights;
    for (const KeySpan& span : spans) {
      BOOST_TEST((span.lower <= span.upper));
      weights.push_back(static_cast<uint64_t>(LowerBound(span.upper) - LowerBound(span.lower)));
    }
    asked_ += spans.size();
    return weights;
  }
  absl::Status FindNeighbours(std::string_view key, std::optional<std::string>* below,
                              std::optional<std::string>* at_or_above) override {
    ++asked_;
    const auto found = LowerBound(key);
    below->reset();
    at_or_above->reset();
    if (found != keys_.end()) at_or_above->emplace(*found);
    if (found != keys_.begin()) below->emplace(*(found - 1));
    return absl::OkStatus();
  }
  const std::vector<std::string>& keys() const { return keys_; }
  size_t asked() const { return asked_; }

 private:
  std::vector<std::string>::const_iterator LowerBound(std::string_view key) const {
    return std::lower_bound(keys_.begin(), keys_.end(), key);
  }

  std::vector<std::string> keys_;
  size_t asked_ = 0;
};

void CheckPartition(const std::vector<PrimaryKeyRange>& ranges, int parts) {
  BOOST_REQUIRE(!ranges.empty());
  BOOST_TEST(ranges.size() <= static_cast<size_t>(parts));
  BOOST_TEST(ranges.front().lower.empty());
  BOOST_TEST(ranges.back().open);
  for (size_t i = 0; i + 1 < ranges.size(); ++i) {
    BOOST_TEST(!ranges[i].open);
    BOOST_TEST((ranges[i].lower < ranges[i].upper));
    BOOST_TEST((ranges[i].upper == ranges[i + 1].lower));
  }
}

uint64_t KeysIn(const std::vector<std::string>& keys, const PrimaryKeyRange& range) {
  return static_cast<uint64_t>(std::count_if(keys.begin(), keys.end(), [&](const auto& key) {
    return key >= range.lower && (range.open || key < range.upper);
  }));
}

BOOST_AUTO_TEST_CASE(a_key_between_two_lies_between_them) {
  std::mt19937_64 random = TestRandom();
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string lower = AdversarialKey(&random);
    std::string upper = AdversarialKey(&random);
    if (upper < lower) std::swap(lower, upper);
    const std::optional<std::string> key = KeyBetween(lower, upper);
    if (!key.has_value()) continue;
    ++found;
    BOOST_TEST_REQUIRE((lower < *key && *key < upper));
  }
  BOOST_TEST(found > 10000);
  BOOST_TEST((KeyBetween("user1000", "user3000") == "user2000"));
  BOOST_TEST((KeyBetween(std::string_view("", 0), "\x80") == "\x40"));
  BOOST_TEST(!KeyBetween("a", "a").has_value());
  BOOST_TEST(!KeyBetween("b", "a").has_value());
  BOOST_TEST(!KeyBetween("a", std::string_view("a\0", 2)).has_value());
}

BOOST_AUTO_TEST_CASE(ranges_are_even_for_any_distribution_of_keys) {
  std::mt19937_64 random = TestRandom();
  std::vector<std::vector<std::string>> sets(4);
  for (int i = 0; i < 20000; ++i) {
    std::string binary;
    for (int byte = 0; byte < 8; ++byte) binary.push_back(static_cast<char>(random()));
    sets[0].push_back(binary);
    sets[1].push_back(RandomKey(&random, 1000000));
    // Clustered: most keys share one long prefix.
    sets[2].push_back((i % 10 == 0 ? binary : "a/very/long/common/prefix/of/paths/" + binary));
    // Skewed: each key ends here with the same probability as it is any longer key.
    std::string skewed;
    while (random() % 2 != 0) skewed.push_back('\xFF');
    sets[3].push_back(skewed + binary);
  }
  for (std::vector<std::string>& keys : sets) {
    for (int parts : {2, 3, 8, 64}) {
      KeySet set(keys);
      std::vector<PrimaryKeyRange> ranges = RequireOk(CutKeyRanges({}, parts, &set));
      CheckPartition(ranges, parts);
      BOOST_TEST(ranges.size() == static_cast<size_t>(parts));
      const double share = static_cast<double>(set.keys().size()) / parts;
      for (const PrimaryKeyRange& range : ranges) {
        BOOST_TEST(static_cast<double>(KeysIn(set.keys(), range)) <= share * 1.3 + 2);
      }
    }
  }
}

// Weights with every kind of error.
class WildSet final : public KeySet {
 public:
  WildSet(std::vector<std::string> keys, std::mt19937_64* random)
      : KeySet(std::move(keys)), random_(random), kind_((*random)() % 4) {}
  absl::StatusOr<std::vector<uint64_t>> Weigh(absl::Span<const KeySpan> spans) override {
    std::vector<uint64_t> weights;
    for (size_t i = 0; i < spans.size(); ++i) {
      if (kind_ == 0) weights.push_back(0);
      if (kind_ == 1) weights.push_back(UINT64_MAX);
      if (kind_ == 2) weights.push_back((*random_)() % 3);
      if (kind_ == 3) weights.push_back((*random_)());
    }
    return weights;
  }

 private:
  std::mt19937_64* const random_;
  const uint64_t kind_;
};

BOOST_AUTO_TEST_CASE(any_estimate_gives_ranges_that_hold_every_key_once) {
  std::mt19937_64 random = TestRandom();
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> keys;
    for (size_t i = random() % 50; i > 0; --i) keys.push_back(AdversarialKey(&random));
    std::vector<std::string> candidates;
    for (size_t i = random() % 40; i > 0; --i) candidates.push_back(AdversarialKey(&random));
    const int parts = 1 + static_cast<int>(random() % 64);
    WildSet set(keys, &random);
    std::vector<PrimaryKeyRange> ranges = RequireOk(CutKeyRanges(candidates, parts, &set));
    CheckPartition(ranges, parts);
    uint64_t total = 0;
    for (const PrimaryKeyRange& range : ranges) total += KeysIn(set.keys(), range);
    BOOST_TEST(total == set.keys().size());
  }
}

BOOST_AUTO_TEST_CASE(boundaries_of_files_are_used_and_thinned_out) {
  std::vector<std::string> keys;
  for (int i = 0; i < 5000; ++i) keys.push_back(std::to_string(10000 + i));
  KeySet set(keys);
  std::vector<PrimaryKeyRange> ranges = RequireOk(CutKeyRanges(keys, 4, &set));
  BOOST_TEST(ranges.size() == 4u);
  BOOST_TEST(set.asked() < 100u);
  for (const PrimaryKeyRange& range : ranges) BOOST_TEST(KeysIn(keys, range) <= 1500u);
}

// Weights in multiples of a hundred, as those of files are in multiples of a block.
class CoarseSet final : public KeySet {
 public:
  using KeySet::KeySet;
  absl::StatusOr<std::vector<uint64_t>> Weigh(absl::Span<const KeySpan> spans) override {
    absl::StatusOr<std::vector<uint64_t>> weights = KeySet::Weigh(spans);
    for (uint64_t& weight : *weights) weight = weight / 100 * 100;
    return weights;
  }
};

BOOST_AUTO_TEST_CASE(candidates_with_nothing_between_them_are_no_cuts) {
  std::vector<std::string> keys;
  for (int i = 0; i < 8000; ++i) keys.push_back(std::to_string(10000 + i));
  // Candidates from files that all start near the first key.
  const std::vector<std::string> candidates(keys.begin(), keys.begin() + 6);
  CoarseSet set(keys);
  std::vector<PrimaryKeyRange> ranges = RequireOk(CutKeyRanges(candidates, 8, &set));
  BOOST_TEST(ranges.size() == 8u);
  for (const PrimaryKeyRange& range : ranges) {
    BOOST_TEST(KeysIn(keys, range) >= 700u);
    BOOST_TEST(KeysIn(keys, range) <= 1300u);
  }
}

class LostSet final : public KeySet {
 public:
  using KeySet::KeySet;
  absl::StatusOr<std::vector<uint64_t>> Weigh(absl::Span<const KeySpan>) override {
    return absl::DataLossError("lost");
  }
};

BOOST_AUTO_TEST_CASE(errors_and_impossible_wishes_are_told) {
  LostSet two({"a", "b"});
  BOOST_TEST(absl::IsDataLoss(CutKeyRanges({}, 2, &two).status()));
  BOOST_TEST(absl::IsInvalidArgument(CutKeyRanges({}, 0, &two).status()));
  BOOST_TEST(absl::IsInvalidArgument(CutKeyRanges({}, -3, &two).status()));
  BOOST_TEST(CutKeyRanges({}, 1, &two)->size() == 1u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
