#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "gpu/runtime/stream.h"
#include "index/files/run_file.h"
#include "test/forged_file.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

// Invalid runs on a GPU are rejected, or answer correctly.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(hostile_run_test, NeedsDevice)
namespace {

constexpr const char* kFactories[] = {"gpu:packed",
                                      "gpu:packed,directory=tree",
                                      "gpu:packed,directory=tree,bits=16",
                                      "gpu:packed,rows",
                                      "gpu:btree",
                                      "gpu:fast",
                                      "gpu:pivot",
                                      "gpu:eytzinger",
                                      "gpu:sorted_array",
                                      "gpu:sorted_array,aos"};

template <typename Key>
OracleData<Key> Data(size_t size) {
  auto random = TestRandom(size);
  std::vector<Key> keys(size);
  for (Key& key : keys) key = static_cast<Key>(random() % 2 == 0 ? random() : random() % size);
  return oracle::FinishIntegers<Key>("hostile", std::move(keys));
}

template <typename Key>
std::string BytesOfRun(const OracleData<Key>& data) {
  TemporaryDirectory directory;
  auto writer = RequireOk(RunFileWriter::Create(
      directory / "run", sizeof(Key) == 4 ? PhysicalType::kU32 : PhysicalType::kU64));
  const SortedRun run = OracleRun(data);
  RequireOk(writer->Begin(run.size(), run.size() * sizeof(Key)));
  if constexpr (sizeof(Key) == 4) {
    RequireOk(writer->Append(run.u32(), run.row_ids()));
  } else {
    RequireOk(writer->Append(run.u64(), run.row_ids()));
  }
  RequireOk(writer->Finish());
  return ReadFile(directory / "run");
}

// A section of a file in memory.
absl::Span<char> SectionOf(std::string* bytes, RunSection id) {
  const auto file = RequireOk(OpenBytes(*bytes, kRunFileFormat, VerifyLevel::kMetadata));
  const Section& section = *file.Find(static_cast<uint32_t>(id));
  return {bytes->data() + section.offset, section.size};
}

// The entries of a run that could be opened, with queries for them.
template <typename Key>
OracleData<Key> Held(const SortedRun& run, const OracleData<Key>& original) {
  OracleData<Key> data = original;
  absl::Span<const Key> keys;
  if constexpr (sizeof(Key) == 4) {
    keys = run.u32();
  } else {
    keys = run.u64();
  }
  data.keys.assign(keys.begin(), keys.end());
  data.row_ids.assign(run.row_ids().begin(), run.row_ids().end());
  return data;
}

// Opens a file with repaired checksums, at every level, and queries it if it opens.
template <typename Key>
void RefuseOrAnswer(std::string bytes, const OracleData<Key>& original, size_t* answered) {
  RepairChecksums(&bytes);
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    auto file = OpenBytes(bytes, kRunFileFormat, level);
    absl::StatusOr<RunFile> run = file.ok() ? OpenRun(*std::move(file)) : file.status();
    if (!run.ok()) {
      BOOST_TEST(absl::IsDataLoss(run.status()), run.status());
      continue;
    }
    ++*answered;
    for (const char* factory : kFactories) {
      const auto index = RequireOk(MakeOrderedIndex(factory, run->run));
      CheckPointsAgainstOracle(*index, Held(run->run, original), 300);
    }
  }
}

template <typename Key>
void ForgeFiles() {
  auto random = TestRandom(91);
  const OracleData<Key> data = Data<Key>(400);
  const std::string good = BytesOfRun(data);
  size_t answered = 0;
  RefuseOrAnswer(good, data, &answered);
  BOOST_TEST(answered == 2u);
  // Wrong properties.
  const std::vector<std::function<void(RunProperties*)>> lies = {
      [](RunProperties* p) { p->key_kind = 3 - p->key_kind; },
      [](RunProperties* p) { p->entries -= 1; },
      [](RunProperties* p) { p->entries += 1; },
      [](RunProperties* p) { p->entries = kMaxEntries; },
      [](RunProperties* p) { p->distinct_keys = 1; },
      [](RunProperties* p) { p->rows_bound = 1; },
      [](RunProperties* p) { p->rows_bound = kNoRow; },
  };
  answered = 0;
  for (const auto& lie : lies) {
    std::string bytes = good;
    lie(reinterpret_cast<RunProperties*>(SectionOf(&bytes, RunSection::kProperties).data()));
    RefuseOrAnswer(bytes, data, &answered);
  }
  BOOST_TEST(answered == 0u);
  // Keys and row ids with some changed bits: most are out of order, some are not.
  answered = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bytes = good;
    const auto section =
        SectionOf(&bytes, round % 2 == 0 ? RunSection::kKeys : RunSection::kRowIds);
    for (int i = 0; i <= round % 5; ++i) {
      section[random() % section.size()] ^= static_cast<char>(1 << random() % 8);
    }
    RefuseOrAnswer(bytes, data, &answered);
  }
  BOOST_TEST_MESSAGE(answered << " of 120 forged runs were in order");
}

// A run whose memory has changed since it was checked, or was never checked.
template <typename Key>
void BuildOverDisorder() {
  const auto spoil = [](auto change) {
    OracleData<Key> data = Data<Key>(30000);
    const SortedRun run = OracleRun(data);
    change(&data.keys, &data.row_ids);
    const auto owner = std::make_shared<OracleData<Key>>(std::move(data));
    return SortedRun::Wrap(absl::MakeConstSpan(owner->keys), absl::MakeConstSpan(owner->row_ids),
                           owner);
  };
  using Keys = std::vector<Key>;
  using Rows = std::vector<RowId>;
  const SortedRun spoiled[] = {
      spoil([](Keys* keys, Rows*) { std::reverse(keys->begin(), keys->end()); }),
      spoil([](Keys* keys, Rows*) { (*keys)[12345] = std::numeric_limits<Key>::max(); }),
      spoil([](Keys* keys, Rows*) { keys->back() = 0; }),
      spoil([](Keys* keys, Rows*) { std::swap((*keys)[0], (*keys)[20000]); }),
      spoil([](Keys* keys, Rows*) {
        std::mt19937_64 random(5);
        for (Key& key : *keys) key = static_cast<Key>(random());
      }),
      spoil([](Keys* keys, Rows* rows) {
        std::fill(keys->begin(), keys->end(), Key{7});
        std::reverse(rows->begin(), rows->end());
        std::sort(rows->begin(), rows->end(), std::greater<>());
      }),
      spoil([](Keys*, Rows* rows) { (*rows)[777] = kNoRow; }),
      spoil([](Keys*, Rows* rows) { rows->back() = kNoRow; }),
  };
  for (const SortedRun& run : spoiled) {
    for (const char* factory : kFactories) {
      const absl::Status status = MakeOrderedIndex(factory, run).status();
      BOOST_TEST(absl::IsDataLoss(status), factory << ": " << status);
    }
  }
}

BOOST_AUTO_TEST_CASE(forged_files_are_refused_or_answered_rightly) {
  ForgeFiles<uint32_t>();
  ForgeFiles<uint64_t>();
}

BOOST_AUTO_TEST_CASE(entries_out_of_order_are_refused_by_every_structure) {
  BuildOverDisorder<uint32_t>();
  BuildOverDisorder<uint64_t>();
}

BOOST_AUTO_TEST_CASE(entries_without_a_row_are_refused) {
  const DeviceArray<uint64_t> keys(std::vector<uint64_t>{5, 3, 4});
  const DeviceArray<RowId> rows(std::vector<RowId>{0, kNoRow, 2});
  for (const char* factory : kFactories) {
    const absl::Status status =
        MakeDeviceIndex(factory, DeviceKeys(keys.data(), 3), rows.data(), nullptr).status();
    BOOST_TEST(absl::IsInvalidArgument(status), factory << ": " << status);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
