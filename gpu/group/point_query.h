#pragma once

#include <cstdint>

#include "cairn/device.h"
#include "cairn/query.h"
#include "gpu/host/host_batch.h"

namespace cairn::gpu {

// How a 64-bit result is written to its position.
enum class Finish : uint8_t {
  kStore,    // written unchanged
  kAtLeast,  // the maximum of the result and the element of `begin` at the same position
  // The result minus that element of `begin`: the number of entries between two positions.
  kSubtract,
};

// The output of a query batch: one element per query.
struct AnswerColumn {
  void* data = nullptr;  // bool for kContains; otherwise uint64_t if wide, uint32_t if not
  bool wide = false;
  Finish finish = Finish::kStore;  // only kStore unless wide
  const uint64_t* begin = nullptr;
};

// The form to which all batches are reduced: non-empty point queries of kFindFirst, kContains,
// kLowerBound or kUpperBound with integer keys, in one device's memory.
struct PointQuery {
  Operation operation = Operation::kFindFirst;
  DeviceKeys keys;
  AnswerColumn answers;
};

// Bytes per result, as a DeviceIndex writes it.
inline size_t AnswerBytes(Operation operation) {
  return operation == Operation::kContains ? sizeof(bool) : sizeof(uint32_t);
}

// The `count` keys from `first` on.
inline DeviceKeys SliceOf(DeviceKeys keys, size_t first, size_t count) {
  return keys.kind() == PhysicalType::kU32 ? DeviceKeys(keys.u32() + first, count)
                                           : DeviceKeys(keys.u64() + first, count);
}

// The column from result `first` on.
inline AnswerColumn From(AnswerColumn column, Operation operation, size_t first) {
  const size_t bytes = column.wide ? sizeof(uint64_t) : AnswerBytes(operation);
  column.data = static_cast<char*>(column.data) + first * bytes;
  if (column.begin != nullptr) column.begin += first;
  return column;
}

}  // namespace cairn::gpu
