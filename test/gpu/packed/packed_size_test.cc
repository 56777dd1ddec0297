#include "gpu/packed/packed_size.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/api/gpu_factory.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/injected_failure.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(packed_size_test, NeedsDevice)
namespace {

template <typename Key>
struct Keys {
  std::string name;
  std::vector<Key> keys;
};

template <typename Key, typename Draw>
Keys<Key> Drawn(const char* name, size_t size, Draw draw) {
  Keys<Key> drawn{name, std::vector<Key>(size)};
  for (Key& key : drawn.keys) key = static_cast<Key>(draw());
  std::sort(drawn.keys.begin(), drawn.keys.end());
  return drawn;
}

template <typename Key>
std::vector<Keys<Key>> KeySets(size_t size) {
  auto random = TestRandom(61);
  constexpr int kBits = static_cast<int>(sizeof(Key)) * 8;
  std::vector<Keys<Key>> sets;
  sets.push_back(Drawn<Key>("dense", size, [i = 0]() mutable { return i++; }));
  sets.push_back(Drawn<Key>("multiples of 1000", size, [i = 0]() mutable { return 1000 * i++; }));
  sets.push_back(Drawn<Key>("even", size, random));
  sets.push_back(Drawn<Key>("three rows a key", size, [i = 0]() mutable { return i++ / 3 * 50; }));
  sets.push_back(Drawn<Key>("few keys", size, [&] { return random() % 100 << 20; }));
  sets.push_back(Drawn<Key>("one key", size, [] { return 12345; }));
  sets.push_back(Drawn<Key>("runs of ten", size, [&, start = uint64_t{0}, i = 0]() mutable {
    if (i++ % 10 == 0) start = random();
    return start + static_cast<uint64_t>(i % 10);
  }));
  sets.push_back(Drawn<Key>(
      "logarithmic", size, [&] { return (random() >> (64 - kBits)) >> (random() % (kBits - 8)); }));
  sets.push_back(Drawn<Key>("a dense run in a sparse space", size, [&] {
    return random() % 4 == 0 ? random() : (uint64_t{1} << 31) + random() % (2 * size);
  }));
  return sets;
}

template <typename Key>
SortedRun RunOf(const std::vector<Key>& keys) {
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
  return *SortedRun::FromSorted(keys, rows);
}

// A factory string, and the options that it means.
struct Choice {
  const char* factory;
  PackedIndexOptions options;
};

std::vector<Choice> Choices(int key_bits) {
  using enum LeafDirectory;
  std::vector<Choice> choices = {{"gpu:auto", {}},
                                 {"gpu:packed,rows", {kAuto, 0, true}},
                                 {"gpu:packed,directory=tree", {kTree, 0, false}},
                                 {"gpu:packed,bits=32", {kAuto, 32, false}}};
  if (key_bits == 64) choices.push_back({"gpu:packed,bits=48", {kAuto, 48, false}});
  return choices;
}

template <typename Key>
void CheckBounds(const Keys<Key>& keys, const Choice& choice) {
  const SortedRun run = RunOf(keys.keys);
  const auto factory = RequireOk(FactoryString::Parse(choice.factory));
  const auto predicted = RequireOk(PredictDeviceBytes(factory, run));
  const PackedBounds bounds =
      BoundPackedBytes(run.size(), SurveyOnHost<Key>(keys.keys, 1), choice.options);
  BOOST_TEST(bounds.max_building == predicted.building);
  BOOST_TEST(bounds.max_resident == predicted.resident);

  const size_t before = AllocatedDeviceBytes();
  (void)TakePeakDeviceBytes();
  uint64_t peak = 0;
  {
    // With just so much there is enough.
    LimitDeviceBytes(before + predicted.building);
    const auto index = MakeDeviceIndex(choice.factory, run);
    LimitDeviceBytes(0);
    RequireOk(index);
    peak = TakePeakDeviceBytes() - before;
    const uint64_t resident = (*index)->memory_bytes();
    BOOST_TEST(AllocatedDeviceBytes() - before == resident);
    BOOST_TEST(bounds.min_building <= peak);
    BOOST_TEST(predicted.building >= peak);
    BOOST_TEST(predicted.resident >= resident);
    // Not counting the directory of a small index.
    constexpr uint64_t kSmall = uint64_t{2} << 20;
    BOOST_TEST(static_cast<double>(predicted.building) <=
               1.75 * static_cast<double>(peak) + kSmall);
    BOOST_TEST(static_cast<double>(predicted.resident) <=
               2.5 * static_cast<double>(resident) + kSmall);
    BOOST_TEST_MESSAGE((*index)->description()
                       << ", " << keys.name << ", " << 8 * sizeof(Key) << " bits, " << run.size()
                       << " entries: peak " << peak << ", predicted "
                       << static_cast<double>(predicted.building) / static_cast<double>(peak)
                       << " times as much; " << resident << " bytes, predicted "
                       << static_cast<double>(predicted.resident) / static_cast<double>(resident)
                       << " times as much");
  }
  // Below the minimum nothing is built. For few entries, even the run's survey may exceed the
  // limit.
  LimitDeviceBytes(before + bounds.min_building - 1);
  const auto refused = MakeDeviceIndex(choice.factory, run);
  LimitDeviceBytes(0);
  BOOST_TEST(absl::IsResourceExhausted(refused.status()), refused.status());
  BOOST_TEST(absl::StrContains(
                 refused.status().message(),
                 run.size() < 100 ? "device memory: " : "device memory: building packed leaves"),
             refused.status());
  BOOST_TEST(AllocatedDeviceBytes() == before);
}

template <typename Key>
void CheckAllBounds() {
  for (size_t size : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
    for (const Keys<Key>& keys : KeySets<Key>(size)) {
      for (const Choice& choice : Choices(static_cast<int>(sizeof(Key)) * 8)) {
        BOOST_TEST_CONTEXT(choice.factory << ", " << keys.name << ", " << size << " keys of "
                                          << 8 * sizeof(Key) << " bits") {
          CheckBounds(keys, choice);
        }
      }
    }
  }
}

template <typename Key>
void CompareSurveys() {
  for (size_t size : {size_t{1}, size_t{999}, size_t{1} << 20}) {
    for (const Keys<Key>& keys : KeySets<Key>(size)) {
      const SortedRun run = RunOf(keys.keys);
      const auto uploaded = RequireOk(UploadRun<Key>(run, nullptr));
      const auto device =
          RequireOk(SurveyKeys(uploaded.keys.data(), uploaded.row_ids.data(), size, nullptr));
      const KeySurvey<Key> host = SurveyOnHost<Key>(keys.keys, 2);
      BOOST_TEST_CONTEXT(keys.name << ", " << size << " keys of " << 8 * sizeof(Key) << " bits") {
        BOOST_TEST(host.least == device.least);
        BOOST_TEST(host.greatest == device.greatest);
        BOOST_TEST(host.distinct == device.distinct);
        BOOST_TEST(host.rows_ascend == device.rows_ascend);
        for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
          BOOST_TEST(host.blocks[width] == device.blocks[width]);
          BOOST_TEST(host.gaps[width] == device.gaps[width]);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_build_takes_no_more_than_predicted_and_not_much_less) {
  CheckAllBounds<uint32_t>();
  CheckAllBounds<uint64_t>();
}

BOOST_AUTO_TEST_CASE(host_and_device_survey_alike) {
  CompareSurveys<uint32_t>();
  CompareSurveys<uint64_t>();
}

BOOST_AUTO_TEST_CASE(what_is_not_packed_is_not_predicted) {
  const SortedRun run = RunOf<uint32_t>({1, 2, 3});
  const auto predict = [&](const char* text) {
    return PredictDeviceBytes(*FactoryString::Parse(text), run).status();
  };
  BOOST_TEST(predict("gpu:auto").ok());
  BOOST_TEST(predict("gpu:packed,rows,device=1").ok());
  BOOST_TEST(absl::IsUnimplemented(predict("gpu:btree")));
  BOOST_TEST(absl::IsInvalidArgument(predict("gpu:packed,directory=none")));
  BOOST_TEST(absl::IsInvalidArgument(predict("gpu:packed,k=2")));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
