#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "absl/time/time.h"
#include "cairn/types.h"
#include "engine/log/update_log.h"

namespace cairn {

// The speed at which a log is followed, and the size of the next slice of it. Only one thread at a
// time may call the methods, except per_second, which any thread may call.
class FollowSpeed {
 public:
  // The time that a step should take. Waiting writers and queries continue at the end of a step.
  // Shorter steps would follow more slowly: a step of 10 ms is about 5% slower than one of 100 ms
  // (InsertBenchmark/cairn/indexes:3/insert).
  static constexpr absl::Duration kStepTime = absl::Milliseconds(10);

  // The number of sequence numbers that the recent steps followed per second of their time.
  double per_second() const { return per_second_.load(std::memory_order_relaxed); }
  // The size of the next slice (UpdateLog::Read).
  size_t slice_bytes() const { return slice_bytes_; }

  // Records a step over `numbers` sequence numbers. `is_full`: the step ended at the end of a slice
  // of slice_bytes(). Other steps do not count if they were short, since rows took little of their
  // time.
  void Note(SequenceNumber numbers, absl::Duration time, bool is_full) {
    if (!is_full && numbers < kShort) return;
    const double seconds = std::max(1e-6, absl::ToDoubleSeconds(time));
    numbers_ += static_cast<double>(numbers);
    seconds_ += seconds;
    per_second_.store(numbers_ / seconds_, std::memory_order_relaxed);
    if (seconds_ > kWindowSeconds) {
      numbers_ *= kWindowSeconds / seconds_;
      seconds_ = kWindowSeconds;
    }
    if (!is_full) return;
    const double factor = std::clamp(absl::ToDoubleSeconds(kStepTime) / seconds, 0.5, 2.0);
    const double bytes = static_cast<double>(slice_bytes_) * factor;
    slice_bytes_ = std::clamp(static_cast<size_t>(bytes), kMinSlice, UpdateLog::kSliceBytes);
  }

 private:
  static constexpr SequenceNumber kShort = 5000;
  static constexpr size_t kMinSlice = size_t{32} << 10;
  static constexpr double kWindowSeconds = 0.5;

  // A guess, which counts like a step of 0.1 s.
  double numbers_ = 50000;
  double seconds_ = 0.1;
  std::atomic<double> per_second_{numbers_ / seconds_};
  size_t slice_bytes_ = UpdateLog::kSliceBytes / 8;
};

}  // namespace cairn
