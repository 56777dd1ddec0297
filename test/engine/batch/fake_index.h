#pragma once

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/batch_index.h"
#include "cairn/batcher.h"
#include "cairn/internal/batcher_clock.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "test/require_ok.h"

namespace cairn {

// A clock that advances only on request. Thread-safe.
class FakeClock : public BatcherClock {
 public:
  absl::Time Now() const override { return absl::FromUnixNanos(now_.load()); }
  void Set(absl::Time time) { now_ = absl::ToUnixNanos(time); }
  void Advance(absl::Duration time) { now_ += absl::ToInt64Nanoseconds(time); }

 private:
  std::atomic<int64_t> now_{1'000'000'000};
};

// A BatchIndex over an ordered index, without database, cursors or router. Tests set its cost model
// and its errors, and it records its calls. Thread-safe except for the settings.
class FakeIndex : public BatchIndex {
 public:
  struct Call {
    Operation operation;
    size_t queries;
    absl::Duration latency_target;
    absl::Time at;  // by `clock`, if there is one
  };

  explicit FakeIndex(SortedRun run) : kind_(run.kind()) {
    index_ = RequireOk(MakeOrderedIndex("cpu:auto", std::move(run)));
  }
  // With 1,000 keys 0, 2, … 1998 of one to three rows each.
  static FakeIndex OfNumbers() {
    std::vector<uint32_t> keys;
    std::vector<RowId> rows;
    for (uint32_t i = 0; i < 1000; ++i) {
      for (uint32_t j = 0; j <= i % 3; ++j) {
        keys.push_back(2 * i);
        rows.push_back(10 * i + j);
      }
    }
    return FakeIndex(*SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  }

  // ---- Settings ----

  std::function<absl::Duration(Operation, size_t queries)> time = [](Operation, size_t) {
    return absl::ZeroDuration();
  };
  size_t best_batch = 1;
  FakeClock* clock = nullptr;      // every call advances it by its time
  absl::Status error;              // every call returns it if it is not OK
  std::atomic<bool> waits{false};  // while true, calls wait

  std::vector<Call> calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }

  // ---- BatchIndex ----

  PhysicalType kind() const override { return kind_; }
  absl::Status Execute(const Batch& batch) const override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      calls_.push_back({batch.operation, batch.size(), batch.options.latency_target,
                        clock != nullptr ? clock->Now() : absl::Time()});
    }
    while (waits) std::this_thread::yield();
    if (clock != nullptr) clock->Advance(time(batch.operation, batch.size()));
    return error.ok() ? index_->Execute(batch) : error;
  }
  absl::Duration PredictedTime(Operation operation, size_t queries) const override {
    return time(operation, queries);
  }
  size_t BestBatch(Operation) const override { return best_batch; }

  // The index with the expected results; calls of it are not recorded.
  const OrderedIndex& index() const { return *index_; }

 private:
  const PhysicalType kind_;
  std::unique_ptr<OrderedIndex> index_;
  mutable std::mutex mutex_;
  mutable std::vector<Call> calls_;  // guarded by mutex_
};

}  // namespace cairn
