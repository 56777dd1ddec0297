#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/api/gpu_factory.h"
#include "gpu/host/gpu_index.h"
#include "gpu/packed/packed_index.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/text/text_code.h"
#include "gpu/text/text_run.h"
#include "index/layout/wide_key.h"
#include "test/gpu/device_strings.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Packed leaves of the numbers that keys of bytes have.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(text_index_test, NeedsDevice)
namespace {

using oracle::FinishStrings;

std::string Binary(uint64_t high, uint64_t low) {
  std::string key(16, '\0');
  for (size_t i = 0; i < 8; ++i) {
    key[i] = static_cast<char>(high >> 8 * (7 - i));
    key[8 + i] = static_cast<char>(low >> 8 * (7 - i));
  }
  return key;
}

std::string Digits(uint64_t number, size_t count) {
  std::string digits(count, '0');
  for (size_t i = count; i-- > 0; number /= 10) digits[i] = static_cast<char>('0' + number % 10);
  return digits;
}

std::vector<OracleData<std::string>> DataSets(size_t size) {
  auto random = TestRandom(81);
  std::vector<OracleData<std::string>> sets;
  const auto add = [&](const char* name, auto draw) {
    std::vector<std::string> keys(size);
    for (std::string& key : keys) key = draw();
    sets.push_back(FinishStrings(name, std::move(keys)));
    for (std::string more :
         {std::string(17, '\xff'), std::string(16, '\xff'), std::string(15, '\xff'),
          std::string(17, '\0'), std::string(200, 'x')}) {
      sets.back().queries.push_back(std::move(more));
    }
  };
  add("16 random bytes", [&] { return Binary(random(), random()); });
  add("16 bytes, both ends", [&, i = 0]() mutable {
    return ++i % 2 == 0 ? Binary(0, random() % 1000)
                        : Binary(UINT64_MAX, UINT64_MAX - random() % 9);
  });
  add("composites", [&] { return Binary(random() % 50, random() % 100000); });
  add("composites of twelve bytes", [&] { return Binary(random() % 50, random()).substr(4); });
  add("dense composites", [&, i = uint64_t{0}]() mutable {
    ++i;
    return Binary(i / 1000, i % 1000);
  });
  add("few keys", [&] { return Binary(random() % 3, random() % 7); });
  add("crowded", [&] { return Binary(random() >> (random() % 64), random() >> (random() % 64)); });
  add("16 digits", [&] { return Digits(random(), 16); });
  add("numbers", [&] { return std::to_string(random() % 1000000000); });
  add("30 digits", [&] { return Digits(random(), 15) + Digits(random(), 15); });
  add("8 random bytes", [&] { return Binary(0, random()).substr(8); });
  add("up to 15 random bytes", [&] { return Binary(random(), random()).substr(0, random() % 16); });
  add("letters and zeros", [&] {
    std::string key;
    for (size_t length = random() % 12; key.size() < length;) key += "\0ab"[random() % 3];
    return key;
  });
  return sets;
}

// Those that the code fits.
template <typename Check>
void ForEachSet(size_t size, Check check) {
  size_t sets = 0;
  const auto try_one = [&](const OracleData<std::string>& data) {
    const SortedRun run = OracleRun(data);
    const auto code = TextCode::Of(run.bytes(), 1);
    if (!code.has_value()) return;
    ++sets;
    BOOST_TEST_CONTEXT(data.name << ", " << data.keys.size() << " entries") {
      check(data, run, *code);
    }
  };
  for (const auto& data : DataSets(size)) try_one(data);
  BOOST_TEST(sets >= 12u);
  for (const auto& data : OracleCatalogue<std::string>(size)) try_one(data);
}

std::vector<std::string> Factories(const TextCode& code) {
  std::vector<std::string> factories = {"gpu:packed", "gpu:packed,directory=tree",
                                        "gpu:packed,rows", "gpu:packed,bits=64"};
  if (code.is_narrow()) {
    factories.emplace_back("gpu:packed,bits=48,directory=tree");
    factories.emplace_back("gpu:packed,bits=64,directory=tree");
  } else {
    factories.emplace_back("gpu:packed,bits=128");
    factories.emplace_back("gpu:packed,bits=128,directory=tree");
    factories.emplace_back("gpu:packed,bits=64,directory=tree");
  }
  return factories;
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_in_device_memory) {
  for (size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{100}, size_t{5000}}) {
    ForEachSet(size, [](const auto& data, const SortedRun&, const TextCode& code) {
      for (const std::string& factory : Factories(code)) CheckOnDevice(factory, data);
    });
  }
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle) {
  ForEachSet(3000, [](const auto& data, const SortedRun& run, const TextCode& code) {
    for (const char* factory : {"gpu:packed", "gpu:packed,directory=tree"}) {
      CheckAgainstOracle(*RequireOk(MakeOrderedIndex(factory, run)), data);
    }
    (void)code;
  });
}

// Also with a bitmap, if keys suit one, and with many keys per cell.
BOOST_AUTO_TEST_CASE(answers_like_the_oracle_under_a_bitmap) {
  size_t built = 0;
  ForEachSet(20000, [&](const auto& data, const SortedRun& run, const TextCode& code) {
    for (const char* bits : {"64", "128"}) {
      if (code.is_narrow() && std::string_view(bits) == "128") continue;
      const std::string factory = std::string("gpu:packed,directory=bitmap,bits=") + bits;
      const auto index = MakeDeviceIndex(factory, run);
      if (absl::IsFailedPrecondition(index.status())) continue;
      ++built;
      CheckOnDevice(factory, data);
    }
  });
  BOOST_TEST(built >= 5u);
}

// In batches of this size, queries stay in their blocks; if sorted, each lane reads its own query.
BOOST_AUTO_TEST_CASE(large_batches_in_any_order) {
  auto sets = DataSets(60000);
  for (OracleData<std::string>& data : sets) {
    const SortedRun run = OracleRun(data);
    const auto code = TextCode::Of(run.bytes(), 1);
    BOOST_REQUIRE(code.has_value() || data.name == "up to 15 random bytes");
    if (!code.has_value()) continue;
    auto random = TestRandom(82);
    const std::vector<std::string> some = data.queries;
    while (data.queries.size() < (size_t{1} << 17) + 77) {
      data.queries.push_back(some[random() % some.size()]);
    }
    for (const bool in_order : {false, true}) {
      if (in_order) std::sort(data.queries.begin(), data.queries.end());
      CheckOnDevice("gpu:packed", data);
      CheckOnDevice("gpu:packed,directory=tree", data);
    }
  }
}

// Strings of a batch begin at any address, and offsets at any number.
BOOST_AUTO_TEST_CASE(strings_begin_anywhere) {
  const auto data = DataSets(2000)[0];
  const SortedRun run = OracleRun(data);
  for (const char* factory : {"gpu:packed", "gpu:partial_key", "gpu:partial_key,hash"}) {
    const auto index = RequireOk(MakeDeviceIndex(factory, run));
    for (uint32_t skipped : {1u, 2u, 3u, 4u, 101u}) {
      std::vector<char> heap(skipped, 'z');
      std::vector<uint32_t> offsets;
      std::vector<Position> lowers, uppers, prefix_ends;
      for (const std::string& key : data.queries) {
        offsets.push_back(static_cast<uint32_t>(heap.size()));
        heap.insert(heap.end(), key.begin(), key.end());
        const auto lower = std::lower_bound(data.keys.begin(), data.keys.end(), key);
        lowers.push_back(static_cast<Position>(lower - data.keys.begin()));
        uppers.push_back(static_cast<Position>(std::upper_bound(lower, data.keys.end(), key) -
                                               data.keys.begin()));
        auto end = lower;
        while (end != data.keys.end() && absl::StartsWith(*end, key)) ++end;
        prefix_ends.push_back(static_cast<Position>(end - data.keys.begin()));
      }
      offsets.push_back(static_cast<uint32_t>(heap.size()));
      heap.resize((heap.size() + 8) / 4 * 4, '\xEE');
      const size_t size = data.queries.size();
      const DeviceArray<char> bytes(heap);
      DeviceArray<Position> begin(size), end(size);
      // Offsets above 0; and the same bytes with offsets from 0 on.
      for (const bool moved : {false, true}) {
        std::vector<uint32_t> from = offsets;
        if (moved) {
          for (uint32_t& offset : from) offset -= skipped;
        }
        const DeviceArray<uint32_t> on_device(from);
        const DeviceKeys keys(bytes.data() + (moved ? skipped : 0), on_device.data(), size);
        RequireOk(index->Execute(DeviceBatch::LowerBound(keys, begin.data()), nullptr));
        BOOST_REQUIRE(begin.ToHost() == lowers);
        DeviceRanges ranges;
        ranges.lower = ranges.upper = keys;
        ranges.upper_bound = Bound::kPrefix;
        RequireOk(
            index->Execute(DeviceBatch::Positions(ranges, begin.data(), end.data()), nullptr));
        BOOST_REQUIRE(begin.ToHost() == lowers);
        BOOST_REQUIRE(end.ToHost() == prefix_ends);
        // After the prefix itself, and from the first key on.
        ranges.lower_bound = Bound::kExclusive;
        RequireOk(
            index->Execute(DeviceBatch::Positions(ranges, begin.data(), end.data()), nullptr));
        BOOST_REQUIRE(begin.ToHost() == uppers);
        std::vector<Position> mended = prefix_ends;
        for (size_t i = 0; i < size; ++i) mended[i] = std::max(mended[i], uppers[i]);
        BOOST_REQUIRE(end.ToHost() == mended);
        ranges.lower_bound = Bound::kOpen;
        RequireOk(
            index->Execute(DeviceBatch::Positions(ranges, begin.data(), end.data()), nullptr));
        BOOST_REQUIRE(begin.ToHost() == std::vector<Position>(size, 0));
        BOOST_REQUIRE(end.ToHost() == prefix_ends);
      }
    }
  }
}

template <typename Key>
void CompareSurveys(const SortedRun& run, const TextCode& code) {
  const auto uploaded = RequireOk(UploadNumbers<Key>(run, code, 2, nullptr));
  if (run.empty()) return;
  const KeySurvey<Key> host = SurveyNumbers<Key>(code, run.bytes(), 2), device = *uploaded.survey;
  BOOST_TEST((host.least == device.least && host.greatest == device.greatest));
  BOOST_TEST(host.distinct == device.distinct);
  for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
    BOOST_TEST(host.blocks[width] == device.blocks[width]);
    BOOST_TEST(host.gaps[width] == device.gaps[width]);
  }
}

BOOST_AUTO_TEST_CASE(host_and_device_survey_alike) {
  for (const size_t size : {size_t{1}, size_t{1100000}}) {
    for (const auto& data : DataSets(size)) {
      if (size > 1 && data.name != "composites" && data.name != "16 digits") continue;
      const SortedRun run = OracleRun(data);
      const auto code = TextCode::Of(run.bytes(), 2);
      BOOST_REQUIRE(code.has_value());
      BOOST_TEST_CONTEXT(data.name << ", " << data.keys.size() << " entries") {
        if (code->is_narrow()) CompareSurveys<uint64_t>(run, *code);
        CompareSurveys<WideKey>(run, *code);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_is_predicted_from_above_and_refused_below) {
  for (size_t size : {size_t{1}, size_t{1000}, size_t{200000}}) {
    ForEachSet(size, [](const auto&, const SortedRun& run, const TextCode& code) {
      for (const std::string& factory : Factories(code)) {
        const DeviceBytes predicted =
            RequireOk(PredictDeviceBytes(RequireOk(FactoryString::Parse(factory)), run));
        const size_t before = AllocatedDeviceBytes();
        (void)TakePeakDeviceBytes();
        LimitDeviceBytes(before + predicted.building);
        const auto index = MakeDeviceIndex(factory, run);
        LimitDeviceBytes(0);
        RequireOk(index);
        BOOST_TEST((*index)->memory_bytes() <= predicted.resident, factory);
        BOOST_TEST((*index)->memory_bytes() == AllocatedDeviceBytes() - before, factory);
        BOOST_TEST(TakePeakDeviceBytes() - before <= predicted.building, factory);
      }
      if (run.empty()) return;
      const size_t before = AllocatedDeviceBytes();
      LimitDeviceBytes(before + run.size());
      const auto refused = MakeDeviceIndex("gpu:packed", run);
      LimitDeviceBytes(0);
      BOOST_TEST(absl::IsResourceExhausted(refused.status()), refused.status());
      BOOST_TEST(AllocatedDeviceBytes() == before);
    });
  }
}

BOOST_AUTO_TEST_CASE(every_allocation_may_fail) {
  const SortedRun run = OracleRun(DataSets(2000)[0]);
  for (const char* factory : {"gpu:packed", "gpu:packed,directory=tree"}) {
    FailEveryAllocation([&] { return MakeDeviceIndex(factory, run).status(); });
  }
}

BOOST_AUTO_TEST_CASE(keys_out_of_order_or_without_rows_are_refused) {
  const std::vector<uint32_t> offsets = {0, 1, 2, 3, 4};
  const auto build = [&](const std::string& heap, const std::vector<RowId>& rows) {
    const SortedRun run =
        SortedRun::Wrap(BytesColumn(heap.data(), absl::MakeConstSpan(offsets)), rows, nullptr);
    return MakeOrderedIndex("gpu:packed", run).status();
  };
  BOOST_TEST(build("abcd", {0, 1, 2, 3}).ok());
  for (const char* heap : {"bacd", "acbd", "abdc"}) {
    BOOST_TEST(absl::IsDataLoss(build(heap, {0, 1, 2, 3})));
  }
  BOOST_TEST(absl::IsDataLoss(build("abbc", {0, 2, 1, 3})));
  BOOST_TEST(absl::IsDataLoss(build("abcd", {0, 1, kNoRow, 3})));
}

BOOST_AUTO_TEST_CASE(says_what_it_is_and_what_it_does_not_take) {
  const auto describe = [](const char* factory, std::vector<std::string> keys) {
    const SortedRun run = OracleRun(FinishStrings("", std::move(keys)));
    return RequireOk(MakeOrderedIndex(factory, run))->description();
  };
  auto random = TestRandom(83);
  std::vector<std::string> bytes, digits, composites;
  for (int i = 0; i < 30000; ++i) {
    bytes.push_back(Binary(random(), random()));
    digits.push_back(Digits(random(), 16));
    composites.push_back(Binary(random() % 3, random()));
  }
  BOOST_TEST(describe("gpu:auto", bytes) == "gpu:packed,directory=bitmap,bits=128");
  BOOST_TEST(absl::StartsWith(describe("gpu:auto", digits), "gpu:packed,directory="));
  BOOST_TEST(absl::StrContains(describe("gpu:auto", composites), "bits=64"));
  BOOST_TEST(describe("gpu:packed,directory=tree,bits=128,rows", bytes) ==
             "gpu:packed,directory=tree,bits=128,rows");
  BOOST_TEST(describe("gpu:auto,hash", bytes) == "gpu:partial_key,hash");
  bytes.emplace_back(15, 'x');
  BOOST_TEST(describe("gpu:auto", bytes) == "gpu:partial_key");
  const SortedRun run = OracleRun(FinishStrings("", bytes));
  const absl::Status refused = MakeOrderedIndex("gpu:packed", run).status();
  BOOST_TEST(absl::IsUnimplemented(refused));
  BOOST_TEST(absl::StrContains(refused.message(), "128 bits"), refused);
  const SortedRun narrow = OracleRun(FinishStrings("", digits));
  BOOST_TEST(absl::IsInvalidArgument(MakeOrderedIndex("gpu:packed,bits=128", narrow).status()));
  BOOST_TEST(absl::IsInvalidArgument(MakeOrderedIndex("gpu:packed,bits=24", narrow).status()));
  BOOST_TEST(absl::IsInvalidArgument(MakeOrderedIndex("gpu:packed,hash", narrow).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
