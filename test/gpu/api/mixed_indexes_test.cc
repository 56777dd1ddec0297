#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Indexes of all structures, of different sizes and key types, are queried by many threads on many
// streams at once, in device memory and from the host. Settings that one of them makes for itself
// must not affect the others.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(mixed_indexes_test, NeedsDevice)
namespace {

constexpr const char* kFactories[] = {"gpu:packed",
                                      "gpu:packed,directory=tree",
                                      "gpu:packed,directory=tree,rows",
                                      "gpu:btree",
                                      "gpu:btree,order=64,method=binary",
                                      "gpu:fast",
                                      "gpu:pivot",
                                      "gpu:eytzinger",
                                      "gpu:eytzinger,k=9",
                                      "gpu:sorted_array",
                                      "gpu:sorted_array,aos"};
// These determine the tops of directories, and the contents of shared memory.
constexpr size_t kSizes[] = {700, 40000, 300000};
// Small batches, and one that is large enough for persistent blocks (packed_search.cuh).
constexpr size_t kBatches[] = {1, 300, 5000, (size_t{1} << 17) + 77};
constexpr size_t kMaxQueries = kBatches[3];
constexpr size_t kThreads = 8;
constexpr int kRounds = 30;

// An index in device memory and one for batches of the host, with the expected answers.
template <typename Key>
struct Subject {
  std::string name;
  std::vector<Key> keys;
  std::vector<RowId> rows;
  std::unique_ptr<DeviceIndex> device;
  std::unique_ptr<OrderedIndex> host;

  Position Lower(Key key) const {
    return static_cast<Position>(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
  }
  Position Upper(Key key) const {
    return static_cast<Position>(std::upper_bound(keys.begin(), keys.end(), key) - keys.begin());
  }
  RowId First(Key key) const {
    const Position lower = Lower(key);
    return lower < keys.size() && keys[lower] == key ? rows[lower] : kNoRow;
  }
};

// A third of the keys occur twice or more; some keys are dense, some sparse.
template <typename Key>
Subject<Key> MakeSubject(const char* factory, size_t size) {
  auto random = TestRandom(size);
  Subject<Key> subject;
  subject.name = absl::StrFormat("%s, %d entries, u%d", factory, size, 8 * sizeof(Key));
  for (size_t i = 0; i < size; ++i) {
    subject.keys.push_back(static_cast<Key>(i % 3 == 0   ? random() % size
                                            : i % 3 == 1 ? 7 * random()
                                                         : random()));
  }
  std::sort(subject.keys.begin(), subject.keys.end());
  for (size_t i = 0; i < size; ++i) subject.rows.push_back(static_cast<RowId>(i));
  const auto run = RequireOk(SortedRun::FromSorted(subject.keys, subject.rows));
  auto device = MakeDeviceIndex(factory, run);
  BOOST_REQUIRE_MESSAGE(device.ok(), subject.name << ": " << device.status());
  subject.device = *std::move(device);
  auto host = MakeOrderedIndex(factory, run);
  BOOST_REQUIRE_MESSAGE(host.ok(), subject.name << ": " << host.status());
  subject.host = *std::move(host);
  return subject;
}

// The resources of a querying thread: a stream, and memory on the device.
template <typename Key>
struct Desk {
  Stream stream = *Stream::Create();
  DeviceArray<Key> lower{kMaxQueries}, upper{kMaxQueries};
  DeviceArray<uint32_t> results{kMaxQueries};
  DeviceArray<uint64_t> offsets{kMaxQueries + 1};
};

// The first error, or OK.
template <typename Key>
class Questions {
 public:
  Questions(const Subject<Key>& subject, const Desk<Key>& desk, std::vector<Key> keys)
      : subject_(subject), desk_(desk), keys_(std::move(keys)) {}

  absl::Status Ask(unsigned operation) const {
    switch (operation % 6) {
      case 0:
        return Points(Operation::kLowerBound, [this](Key key) { return subject_.Lower(key); });
      case 1:
        return Points(Operation::kUpperBound, [this](Key key) { return subject_.Upper(key); });
      case 2:
        return Points(Operation::kFindFirst, [this](Key key) { return subject_.First(key); });
      case 3:
        return Scan();
      case 4:
        return FindOnHost();
      default:
        return FirstOnHost();
    }
  }

 private:
  absl::Status Wrong(const char* what, size_t i) const {
    return absl::InternalError(
        absl::StrFormat("%s: %s %d of %d is wrong", subject_.name, what, i, keys_.size()));
  }
  absl::Status Upload(const std::vector<Key>& keys, const DeviceArray<Key>& to) const {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(to.data(), keys.data(), keys.size() * sizeof(Key),
                                               cudaMemcpyHostToDevice, desk_.stream.get()));
    return absl::OkStatus();
  }
  template <typename T>
  absl::Status Download(const T* from, std::vector<T>* to) const {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(to->data(), from, to->size() * sizeof(T),
                                               cudaMemcpyDeviceToHost, desk_.stream.get()));
    return desk_.stream.Wait();
  }

  template <typename Expected>
  absl::Status Points(Operation operation, Expected expected) const {
    RETURN_IF_ERROR(Upload(keys_, desk_.lower));
    DeviceBatch batch{operation, DeviceKeys(desk_.lower.data(), keys_.size())};
    batch.values = desk_.results.data();
    RETURN_IF_ERROR(subject_.device->Execute(batch, desk_.stream.get()));
    std::vector<uint32_t> found(keys_.size());
    RETURN_IF_ERROR(Download<uint32_t>(desk_.results.data(), &found));
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (found[i] != expected(keys_[i])) return Wrong("point", i);
    }
    return absl::OkStatus();
  }

  // Ranges between adjacent keys of the batch, with up to a few entries each.
  absl::Status Scan() const {
    constexpr uint64_t kLimit = 40;
    const size_t size = std::min<size_t>(keys_.size(), 5000);
    std::vector<Key> lower(keys_.begin(), keys_.begin() + static_cast<ptrdiff_t>(size));
    std::vector<Key> upper(lower);
    for (size_t i = 0; i < size; ++i) upper[i] += static_cast<Key>(i % 5 * 10);
    RETURN_IF_ERROR(Upload(lower, desk_.lower));
    RETURN_IF_ERROR(Upload(upper, desk_.upper));
    DeviceRanges ranges;
    ranges.lower = DeviceKeys(desk_.lower.data(), size);
    ranges.upper = DeviceKeys(desk_.upper.data(), size);
    ranges.upper_bound = Bound::kInclusive;
    const Order order = size % 2 == 0 ? Order::kAscending : Order::kDescending;
    const cudaStream_t stream = desk_.stream.get();
    Position* const begin = desk_.results.data();
    RETURN_IF_ERROR(
        subject_.device->PlanScan(ranges, kLimit, order, begin, desk_.offsets.data(), stream));
    std::vector<uint64_t> offsets(size + 1);
    RETURN_IF_ERROR(Download<uint64_t>(desk_.offsets.data(), &offsets));
    ASSIGN_OR_RETURN(auto out, DeviceBuffer<RowId>::Allocate(offsets.back(), stream));
    RETURN_IF_ERROR(subject_.device->CopyRows(begin, desk_.offsets.data(), size, offsets.back(),
                                              order, out.data(), stream));
    std::vector<RowId> rows(offsets.back());
    RETURN_IF_ERROR(Download<RowId>(out.data(), &rows));
    for (size_t i = 0; i < size; ++i) {
      const uint64_t first = subject_.Lower(lower[i]);
      const uint64_t end = std::max<uint64_t>(first, subject_.Upper(upper[i]));
      const uint64_t count = std::min(kLimit, end - first);
      if (offsets[i + 1] - offsets[i] != count) return Wrong("range", i);
      for (uint64_t k = 0; k < count; ++k) {
        const uint64_t position = order == Order::kAscending ? first + k : end - 1 - k;
        if (rows[offsets[i] + k] != subject_.rows[position]) return Wrong("range's row", i);
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindOnHost() const {
    FindResult matches;
    RETURN_IF_ERROR(subject_.host->Execute(Batch::Find(keys_, &matches)));
    if (matches.size() != keys_.size()) return Wrong("size", 0);
    for (size_t i = 0; i < keys_.size(); ++i) {
      const Position first = subject_.Lower(keys_[i]);
      const auto rows =
          absl::MakeConstSpan(subject_.rows).subspan(first, subject_.Upper(keys_[i]) - first);
      if (matches[i] != rows) return Wrong("key's rows", i);
    }
    return absl::OkStatus();
  }

  absl::Status FirstOnHost() const {
    std::vector<RowId> found(keys_.size());
    RETURN_IF_ERROR(subject_.host->Execute(Batch::FindFirst(keys_, absl::MakeSpan(found))));
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (found[i] != subject_.First(keys_[i])) return Wrong("key's first row", i);
    }
    return absl::OkStatus();
  }

  const Subject<Key>& subject_;
  const Desk<Key>& desk_;
  const std::vector<Key> keys_;
};

// Present keys, adjacent keys, and both ends.
template <typename Key>
std::vector<Key> Queries(const Subject<Key>& subject, size_t size, std::mt19937_64& random) {
  std::vector<Key> keys(size);
  for (Key& key : keys) {
    key = random() % 8 == 0
              ? static_cast<Key>(random())
              : static_cast<Key>(subject.keys[random() % subject.keys.size()] + random() % 2);
  }
  return keys;
}

struct Log {
  std::mutex mutex;
  std::vector<std::string> errors;

  void Add(const absl::Status& status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    errors.push_back(status.ToString());
  }
};

template <typename Key>
void AskAll(const std::vector<Subject<Key>>& subjects, const Desk<Key>& desk, uint64_t seed,
            Log* log) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < kRounds; ++round) {
    const Subject<Key>& subject = subjects[random() % subjects.size()];
    const size_t size = kBatches[random() % std::size(kBatches)];
    const Questions<Key> questions(subject, desk, Queries(subject, size, random));
    log->Add(questions.Ask(static_cast<unsigned>(random() % 6)));
  }
}

template <typename Key>
std::vector<Subject<Key>> MakeSubjects() {
  std::vector<Subject<Key>> subjects;
  for (const char* factory : kFactories) {
    for (size_t size : kSizes) subjects.push_back(MakeSubject<Key>(factory, size));
  }
  return subjects;
}

BOOST_AUTO_TEST_CASE(threads_ask_all_structures_on_streams_of_their_own) {
  const std::vector<Subject<uint32_t>> narrow = MakeSubjects<uint32_t>();
  const std::vector<Subject<uint64_t>> wide = MakeSubjects<uint64_t>();
  std::vector<std::unique_ptr<Desk<uint32_t>>> narrow_desks;
  std::vector<std::unique_ptr<Desk<uint64_t>>> wide_desks;
  for (size_t i = 0; i < kThreads / 2; ++i) {
    narrow_desks.push_back(std::make_unique<Desk<uint32_t>>());
    wide_desks.push_back(std::make_unique<Desk<uint64_t>>());
  }
  Log log;
  const uint64_t seed = TestRandom(81)();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads / 2; ++i) {
    threads.emplace_back([&, i] { AskAll(narrow, *narrow_desks[i], seed + 2 * i, &log); });
    threads.emplace_back([&, i] { AskAll(wide, *wide_desks[i], seed + 2 * i + 1, &log); });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(log.errors.empty(), log.errors.size() << " errors, the first: "
                                                   << (log.errors.empty() ? "" : log.errors[0]));
}

// Two indexes use the same kernel, but their directories take different amounts of shared memory. A
// launch of one must not be rejected because of the other's request.
BOOST_AUTO_TEST_CASE(launches_with_more_and_with_less_shared_memory_do_not_disturb_each_other) {
  constexpr int kLaunches = 1500;
  const Subject<uint64_t> small = MakeSubject<uint64_t>("gpu:packed,directory=tree", 5000);
  const Subject<uint64_t> large = MakeSubject<uint64_t>("gpu:packed,directory=tree", 300000);
  Log log;
  std::vector<std::unique_ptr<Desk<uint64_t>>> desks;
  for (size_t i = 0; i < 4; ++i) {
    desks.push_back(std::make_unique<Desk<uint64_t>>());
    BOOST_REQUIRE(cudaMemset(desks[i]->lower.data(), 0x11, kMaxQueries * sizeof(uint64_t)) ==
                  cudaSuccess);
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < desks.size(); ++i) {
    threads.emplace_back([&, i] {
      const Desk<uint64_t>& desk = *desks[i];
      const DeviceIndex& index = *(i % 2 == 0 ? small : large).device;
      for (int round = 0; round < kLaunches; ++round) {
        log.Add(index.Execute(DeviceBatch::LowerBound(DeviceKeys(desk.lower.data(), kMaxQueries),
                                                      desk.results.data()),
                              desk.stream.get()));
      }
      log.Add(desk.stream.Wait());
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(log.errors.empty(), log.errors.size() << " errors, the first: "
                                                   << (log.errors.empty() ? "" : log.errors[0]));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
