// Indexes in the memory of a device.
#include "cairn/device.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/c/device.h"
#include "engine/c/device_tensor.h"
#include "engine/c/error.h"
#include "engine/c/handles.h"
#include "engine/c/ranges.h"
#include "index/machine/status_macros.h"

struct cairn_device_index {
  std::unique_ptr<cairn::DeviceIndex> index;
};

namespace cairn {
namespace {

DeviceStream StreamOf(void* stream) {
  return static_cast<DeviceStream>(stream);
}

// Returns all entries of an index by (key, row id), which is the order of a run.
absl::StatusOr<SortedRun> EntriesOf(const cairn_index& index) {
  if (index.ordered != nullptr) return index.ordered->run();
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RETURN_IF_ERROR(
      index.secondary->Scan(RangeBatch::Everything(index.codec.kind()), &matches, options));
  const KeyBatch keys = matches.keys.Batch();
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return SortedRun::FromUnsorted(keys.u32(), matches.row_ids);
    case PhysicalType::kU64:
      return SortedRun::FromUnsorted(keys.u64(), matches.row_ids);
    case PhysicalType::kBytes:
      break;
  }
  return SortedRun::FromUnsorted(keys.bytes(), matches.row_ids);
}

absl::Status DoOpen(const cairn_index* index, const char* structure, int32_t device,
                    cairn_device_index** device_index) {
  RETURN_IF_ERROR(CheckNotNull(index, "index", device_index, "device_index"));
  if (index->in_shards()) {
    return absl::UnimplementedError(
        "expected an index that is not sharded: a device's index has row ids of 32 bits");
  }
  RETURN_IF_ERROR(ListDevices().status());  // check for devices before the entries are copied
  ASSIGN_OR_RETURN(const SortedRun run, EntriesOf(*index));
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceIndex> made,
                   MakeDeviceIndex(structure == nullptr ? "gpu:auto" : structure, run, device));
  *device_index = new cairn_device_index{std::move(made)};
  return absl::OkStatus();
}

absl::StatusOr<DeviceKeys> ReadKeys(const DeviceIndex& index, const cairn_device_keys* given) {
  RETURN_IF_ERROR(CheckNotNull(given, "keys"));
  ASSIGN_OR_RETURN(const cairn_device_keys keys, ReadOptions(given, "keys"));
  if (index.kind() != PhysicalType::kBytes) {
    if (keys.offsets != nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "offsets: expected none, as the index's keys are %s", PhysicalTypeName(index.kind())));
    }
    if (index.kind() == PhysicalType::kU32) {
      ASSIGN_OR_RETURN(const DeviceElements numbers,
                       ReadTensor(keys.keys, "keys", TensorType::kU32, index.device()));
      return DeviceKeys(numbers.as<const uint32_t>(), numbers.size);
    }
    ASSIGN_OR_RETURN(const DeviceElements numbers,
                     ReadTensor(keys.keys, "keys", TensorType::kU64, index.device()));
    return DeviceKeys(numbers.as<const uint64_t>(), numbers.size);
  }
  ASSIGN_OR_RETURN(const DeviceElements bytes,
                   ReadTensor(keys.keys, "keys", TensorType::kByte, index.device()));
  ASSIGN_OR_RETURN(const DeviceElements offsets,
                   ReadTensor(keys.offsets, "offsets", TensorType::kU32OrI32, index.device()));
  if (offsets.size == 0) {
    return absl::InvalidArgumentError("offsets: expected one more than keys, found none");
  }
  return DeviceKeys(bytes.as<const char>(), offsets.as<const uint32_t>(), offsets.size - 1);
}

absl::StatusOr<DeviceRanges> ReadRanges(const DeviceIndex& index,
                                        const cairn_device_ranges* given) {
  RETURN_IF_ERROR(CheckNotNull(given, "ranges"));
  ASSIGN_OR_RETURN(const cairn_device_ranges ranges, ReadOptions(given, "ranges"));
  if (ranges.kind < CAIRN_BETWEEN || ranges.kind > CAIRN_PREFIX || ranges.reserved != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("kind: expected 0 to %d, found %d", CAIRN_PREFIX, ranges.kind));
  }
  const bool between = ranges.kind == CAIRN_BETWEEN;
  if (between ? ranges.lower == nullptr && ranges.upper == nullptr : ranges.lower == nullptr) {
    return absl::InvalidArgumentError("lower: expected keys, found NULL");
  }
  if (!between && (ranges.upper != nullptr || ranges.lower_bound != 0 || ranges.upper_bound != 0)) {
    return absl::InvalidArgumentError(
        "expected no upper keys and no bounds, since kind is not CAIRN_BETWEEN");
  }
  DeviceRanges read;
  if (ranges.lower != nullptr) {
    ASSIGN_OR_RETURN(read.lower, ReadKeys(index, ranges.lower));
    RETURN_IF_ERROR(
        ReadBound(ranges.lower_bound, Bound::kInclusive, "lower_bound", &read.lower_bound));
  }
  if (ranges.upper != nullptr) {
    ASSIGN_OR_RETURN(read.upper, ReadKeys(index, ranges.upper));
    RETURN_IF_ERROR(
        ReadBound(ranges.upper_bound, Bound::kExclusive, "upper_bound", &read.upper_bound));
  }
  if (ranges.lower == nullptr) {
    read.lower = read.upper;
    read.lower_bound = Bound::kOpen;
  } else if (ranges.upper == nullptr) {
    read.upper = read.lower;
    read.upper_bound = ranges.kind == CAIRN_EQUAL    ? Bound::kInclusive
                       : ranges.kind == CAIRN_PREFIX ? Bound::kPrefix
                                                     : Bound::kOpen;
  }
  if (read.lower.size() != read.upper.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected equal numbers of upper and lower keys, found %d and %d",
                        read.upper.size(), read.lower.size()));
  }
  return read;
}

absl::Status DoFindFirst(const DeviceIndex& index, const cairn_device_keys* given,
                         const DLManagedTensor* row_ids, void* stream) {
  ASSIGN_OR_RETURN(const DeviceKeys keys, ReadKeys(index, given));
  ASSIGN_OR_RETURN(
      const DeviceElements answers,
      ReadTensor(row_ids, "row_ids", TensorType::kU32OrI32, index.device(), keys.size()));
  return index.Execute(DeviceBatch::FindFirst(keys, answers.as<RowId>()), StreamOf(stream));
}

absl::Status DoContains(const DeviceIndex& index, const cairn_device_keys* given,
                        const DLManagedTensor* found, void* stream) {
  ASSIGN_OR_RETURN(const DeviceKeys keys, ReadKeys(index, given));
  ASSIGN_OR_RETURN(const DeviceElements answers,
                   ReadTensor(found, "found", TensorType::kBool, index.device(), keys.size()));
  return index.Execute(DeviceBatch::Contains(keys, answers.as<bool>()), StreamOf(stream));
}

absl::Status DoCount(const DeviceIndex& index, const cairn_device_ranges* given,
                     const DLManagedTensor* counts, void* stream) {
  ASSIGN_OR_RETURN(const DeviceRanges ranges, ReadRanges(index, given));
  ASSIGN_OR_RETURN(const DeviceElements answers, ReadTensor(counts, "counts", TensorType::kU64OrI64,
                                                            index.device(), ranges.size()));
  return index.Execute(DeviceBatch::Count(ranges, answers.as<uint64_t>()), StreamOf(stream));
}

absl::Status DoPlan(const DeviceIndex& index, const cairn_device_ranges* given, uint64_t limit,
                    int32_t given_order, const DLManagedTensor* given_begin,
                    const DLManagedTensor* given_offsets, void* stream) {
  ASSIGN_OR_RETURN(const DeviceRanges ranges, ReadRanges(index, given));
  Order order = Order::kAscending;
  RETURN_IF_ERROR(ReadEnum(given_order, Order::kDescending, "order", &order));
  ASSIGN_OR_RETURN(
      const DeviceElements begin,
      ReadTensor(given_begin, "begin", TensorType::kU32OrI32, index.device(), ranges.size()));
  ASSIGN_OR_RETURN(const DeviceElements offsets,
                   ReadTensor(given_offsets, "offsets", TensorType::kU64OrI64, index.device(),
                              ranges.size() + 1));
  if (limit == 0) limit = std::numeric_limits<uint64_t>::max();
  return index.PlanScan(ranges, limit, order, begin.as<Position>(), offsets.as<uint64_t>(),
                        StreamOf(stream));
}

absl::Status DoScan(const DeviceIndex& index, const cairn_device_ranges* given, uint64_t limit,
                    int32_t given_order, const DLManagedTensor* given_offsets,
                    const DLManagedTensor* row_ids, void* stream) {
  ASSIGN_OR_RETURN(const DeviceRanges ranges, ReadRanges(index, given));
  Order order = Order::kAscending;
  RETURN_IF_ERROR(ReadEnum(given_order, Order::kDescending, "order", &order));
  ASSIGN_OR_RETURN(const DeviceElements offsets,
                   ReadTensor(given_offsets, "offsets", TensorType::kU64OrI64, index.device(),
                              ranges.size() + 1));
  ASSIGN_OR_RETURN(const DeviceElements rows,
                   ReadTensor(row_ids, "row_ids", TensorType::kU32OrI32, index.device()));
  if (limit == 0) limit = std::numeric_limits<uint64_t>::max();
  return index.Scan(ranges, limit, order, offsets.as<uint64_t>(), rows.as<RowId>(), rows.size,
                    StreamOf(stream));
}

absl::Status DoCopyRows(const DeviceIndex& index, const DLManagedTensor* given_begin,
                        const DLManagedTensor* given_offsets, int32_t given_order,
                        const DLManagedTensor* row_ids, void* stream) {
  Order order = Order::kAscending;
  RETURN_IF_ERROR(ReadEnum(given_order, Order::kDescending, "order", &order));
  ASSIGN_OR_RETURN(const DeviceElements begin,
                   ReadTensor(given_begin, "begin", TensorType::kU32OrI32, index.device()));
  ASSIGN_OR_RETURN(
      const DeviceElements offsets,
      ReadTensor(given_offsets, "offsets", TensorType::kU64OrI64, index.device(), begin.size + 1));
  ASSIGN_OR_RETURN(const DeviceElements rows,
                   ReadTensor(row_ids, "row_ids", TensorType::kU32OrI32, index.device()));
  return index.CopyRows(begin.as<const Position>(), offsets.as<const uint64_t>(), begin.size,
                        rows.size, order, rows.as<RowId>(), StreamOf(stream));
}

// CFunction for an index that must not be null.
template <typename Function>
cairn_error* OnDevice(const cairn_device_index* index, Function function) {
  return CFunction("querying a device", [&] {
    RETURN_IF_ERROR(CheckNotNull(index, "index"));
    return function(*index->index);
  });
}

}  // namespace
}  // namespace cairn

cairn_error* cairn_devices(int32_t* count) {
  return cairn::CFunction("looking for devices", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(count, "count"));
    ASSIGN_OR_RETURN(const std::vector<cairn::Device> devices, cairn::ListDevices());
    *count = static_cast<int32_t>(devices.size());
    return absl::OkStatus();
  });
}

cairn_error* cairn_device_open(const cairn_index* index, const char* structure, int32_t device,
                               cairn_device_index** device_index) {
  return cairn::CFunction("opening an index on a device",
                          [&] { return cairn::DoOpen(index, structure, device, device_index); });
}

void cairn_device_close(cairn_device_index* index) {
  delete index;
}

int32_t cairn_device_kind(const cairn_device_index* index) {
  return index == nullptr ? 0 : static_cast<int32_t>(index->index->kind());
}

uint64_t cairn_device_entries(const cairn_device_index* index) {
  return index == nullptr ? 0 : index->index->size();
}

uint64_t cairn_device_memory_bytes(const cairn_device_index* index) {
  return index == nullptr ? 0 : index->index->memory_bytes();
}

cairn_error* cairn_device_find_first(const cairn_device_index* index, const cairn_device_keys* keys,
                                     const DLManagedTensor* row_ids, void* stream) {
  return cairn::OnDevice(index, [&](const cairn::DeviceIndex& opened) {
    return cairn::DoFindFirst(opened, keys, row_ids, stream);
  });
}

cairn_error* cairn_device_contains(const cairn_device_index* index, const cairn_device_keys* keys,
                                   const DLManagedTensor* found, void* stream) {
  return cairn::OnDevice(index, [&](const cairn::DeviceIndex& opened) {
    return cairn::DoContains(opened, keys, found, stream);
  });
}

cairn_error* cairn_device_count(const cairn_device_index* index, const cairn_device_ranges* ranges,
                                const DLManagedTensor* counts, void* stream) {
  return cairn::OnDevice(index, [&](const cairn::DeviceIndex& opened) {
    return cairn::DoCount(opened, ranges, counts, stream);
  });
}

cairn_error* cairn_device_plan(const cairn_device_index* index, const cairn_device_ranges* ranges,
                               uint64_t limit, int32_t order, const DLManagedTensor* begin,
                               const DLManagedTensor* offsets, void* stream) {
  return cairn::OnDevice(index, [&](const cairn::DeviceIndex& opened) {
    return cairn::DoPlan(opened, ranges, limit, order, begin, offsets, stream);
  });
}

cairn_error* cairn_device_scan(const cairn_device_index* index, const cairn_device_ranges* ranges,
                               uint64_t limit, int32_t order, const DLManagedTensor* offsets,
                               const DLManagedTensor* row_ids, void* stream) {
  return cairn::OnDevice(index, [&](const cairn::DeviceIndex& opened) {
    return cairn::DoScan(opened, ranges, limit, order, offsets, row_ids, stream);
  });
}

cairn_error* cairn_device_copy_rows(const cairn_device_index* index, const DLManagedTensor* begin,
                                    const DLManagedTensor* offsets, int32_t order,
                                    const DLManagedTensor* row_ids, void* stream) {
  return cairn::OnDevice(index, [&](const cairn::DeviceIndex& opened) {
    return cairn::DoCopyRows(opened, begin, offsets, order, row_ids, stream);
  });
}
