#pragma once

#include <cstdint>

#include "cairn/device.h"
#include "cairn/query.h"

namespace cairn::gpu {

// What becomes of an answer of 64 bits at its place.
enum class Finish : uint8_t {
  kStore,     // it is written there
  kAtLeast,   // it, or what stands at the same place of `begin` if that is more
  kSubtract,  // the same less what stands there: the number of entries between two positions
};

// Where answers go: an element a query.
struct AnswerColumn {
  void* data = nullptr;  // bool of kContains, else uint64_t if wide, or uint32_t
  bool wide = false;
  Finish finish = Finish::kStore;  // others of wide ones alone
  const uint64_t* begin = nullptr;
};

// What all batches come down to: points, of kFindFirst, kContains, kLowerBound or kUpperBound, in
// one device's memory. Keys are numbers; not empty.
struct PointQuery {
  Operation operation = Operation::kFindFirst;
  DeviceKeys keys;
  AnswerColumn answers;
};

// Bytes of an answer as a DeviceIndex gives it.
inline size_t AnswerBytes(Operation operation) {
  return operation == Operation::kContains ? sizeof(bool) : sizeof(uint32_t);
}
inline size_t KeyBytes(PhysicalType kind) {
  return kind == PhysicalType::kU32 ? sizeof(uint32_t) : sizeof(uint64_t);
}

// The `count` keys from `first` on.
inline DeviceKeys SliceOf(DeviceKeys keys, size_t first, size_t count) {
  return keys.kind() == PhysicalType::kU32 ? DeviceKeys(keys.u32() + first, count)
                                           : DeviceKeys(keys.u64() + first, count);
}
inline DeviceKeys KeysIn(PhysicalType kind, const void* memory, size_t count) {
  return kind == PhysicalType::kU32 ? DeviceKeys(static_cast<const uint32_t*>(memory), count)
                                    : DeviceKeys(static_cast<const uint64_t*>(memory), count);
}

// A batch of points with answers as an index gives them.
inline DeviceBatch PointBatch(Operation operation, DeviceKeys keys, void* answers) {
  DeviceBatch batch{operation, keys};
  batch.values = static_cast<uint32_t*>(answers);
  batch.found = static_cast<bool*>(answers);
  return batch;
}

// The column from answer `first` on.
inline AnswerColumn From(AnswerColumn column, Operation operation, size_t first) {
  const size_t bytes = column.wide ? sizeof(uint64_t) : AnswerBytes(operation);
  column.data = static_cast<char*>(column.data) + first * bytes;
  if (column.begin != nullptr) column.begin += first;
  return column;
}

}  // namespace cairn::gpu
