#pragma once

#include <cstdint>

#include "gpu/aggregates/aggregate_search.h"
#include "index/layout/wide_key.h"

// Converts a range's count and sum, minimum or maximum to its result.

namespace cairn::gpu {

inline constexpr uint64_t kSignOf64 = uint64_t{1} << 63;

// The value whose comparison number is `number`, in the low bytes of its type.
__device__ inline uint64_t ValueOfNumber(DataType type, uint64_t number) {
  switch (type) {
    case DataType::kU32:
    case DataType::kU64:
      return number;
    case DataType::kI32:
    case DataType::kI64:
      return number ^ kSignOf64;
    case DataType::kF32: {
      const auto bits = static_cast<uint32_t>(number);
      return (bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : uint32_t{~bits};
    }
    default:
      return (number & kSignOf64) != 0 ? number & ~kSignOf64 : ~number;
  }
}

struct AggregateWriter {
  AggregateOutput output;
  size_t range;

  __device__ void Count(uint64_t count) const {
    if (output.results.counts != nullptr) __stcs(output.results.counts + range, count);
    if (output.function == AggregateFunction::kCount) Put(count, DeviceResult::kValue);
  }
  __device__ void Put(uint64_t value, DeviceResult result) const {
    if (output.results.values != nullptr) {
      __stcs(static_cast<uint64_t*>(output.results.values) + range, value);
    }
    Say(result);
  }
  __device__ void PutDouble(double value) const {
    Put(static_cast<uint64_t>(__double_as_longlong(value)), DeviceResult::kValue);
  }
  // The sum or average of `count` integers whose codes add up to `codes`.
  __device__ void PutSum(WideKey codes, uint64_t count) const {
    const bool is_signed = output.type == DataType::kI32 || output.type == DataType::kI64;
    // The base of the codes as a 128-bit two's complement integer.
    const uint64_t low = is_signed ? output.base ^ kSignOf64 : output.base;
    const bool below = is_signed && low >= kSignOf64;
    const WideKey base = (below ? ~WideKey{0} << 64 : WideKey{0}) | low;
    const WideKey sum = codes + base * count;
    const auto sum_high = static_cast<uint64_t>(sum >> 64), sum_low = static_cast<uint64_t>(sum);
    if (output.function == AggregateFunction::kAvg) {
      PutDouble(Double(sum_high, sum_low) / static_cast<double>(count));
      return;
    }
    const uint64_t fitting_high = is_signed && sum_low >= kSignOf64 ? ~uint64_t{0} : 0;
    if (sum_high == fitting_high) {
      Put(sum_low, DeviceResult::kValue);
    } else {
      Put(0, DeviceResult::kOutOfRange);
    }
  }
  __device__ void PutFloatSum(double sum, uint64_t count) const {
    PutDouble(output.function == AggregateFunction::kAvg ? sum / static_cast<double>(count) : sum);
  }
  // The minimum or maximum whose code is the minimum of the range's codes.
  __device__ void PutExtreme(uint64_t code) const {
    const uint64_t number =
        output.function == AggregateFunction::kMax ? output.base - code : output.base + code;
    PutOfType(ValueOfNumber(output.type, number), DeviceResult::kValue);
  }
  // A null result: the function has no value. Its type may be the column's.
  __device__ void PutNull() const {
    if (output.function == AggregateFunction::kMin || output.function == AggregateFunction::kMax) {
      PutOfType(0, DeviceResult::kNull);
    } else {
      Put(0, DeviceResult::kNull);
    }
  }

 private:
  // Converts a 128-bit two's complement integer to double, rounding once: for 2^53 and above, an
  // odd last bit represents the bits that are cut off.
  __device__ static double Double(uint64_t high, uint64_t low) {
    const bool below = high >= kSignOf64;
    WideKey size = WideKey{high} << 64 | low;
    if (below) size = ~size + 1;
    const auto size_high = static_cast<uint64_t>(size >> 64);
    const auto size_low = static_cast<uint64_t>(size);
    double value = 0;
    if (size_high == 0) {
      value = static_cast<double>(size_low);
    } else {
      const int shift = 64 - __clzll(static_cast<long long>(size_high));
      auto top = static_cast<uint64_t>(size >> shift);
      if (static_cast<WideKey>(top) << shift != size) top |= 1;
      value = ldexp(static_cast<double>(top), shift);
    }
    return below ? -value : value;
  }
  __device__ void PutOfType(uint64_t value, DeviceResult result) const {
    const bool narrow = output.type == DataType::kU32 || output.type == DataType::kI32 ||
                        output.type == DataType::kF32;
    if (!narrow) {
      Put(value, result);
      return;
    }
    if (output.results.values != nullptr) {
      __stcs(static_cast<uint32_t*>(output.results.values) + range, static_cast<uint32_t>(value));
    }
    Say(result);
  }
  __device__ void Say(DeviceResult result) const {
    if (output.results.results != nullptr) output.results.results[range] = result;
  }
};

}  // namespace cairn::gpu
