// The class cairn.DeviceIndex: an index whose keys, queries and results are in the memory of one
// GPU.
#include "cairn/device.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/bindings.h"
#include "python/src/device/device_array.h"
#include "python/src/in/arguments.h"
#include "python/src/in/buffer.h"
#include "python/src/queries.h"

namespace cairn::python {
namespace {

// A DeviceIndex that can be closed while calls enqueue on it. Thread-safe.
class OnDevice {
 public:
  OnDevice(std::shared_ptr<const DeviceIndex> index, std::string name)
      : index_(std::move(index)), name_(std::move(name)), generation_(ForkGeneration()) {}
  ~OnDevice() {
    // CUDA does not work in a child of a fork; the memory belongs to the parent.
    if (generation_ != ForkGeneration()) new std::shared_ptr<const DeviceIndex>(std::move(index_));
  }

  std::shared_ptr<const DeviceIndex> Open() const {
    if (generation_ != ForkGeneration()) {
      throw PythonError("Forked",
                        "the device index of " + name_ +
                            " was created before this process was forked, and CUDA does not "
                            "work in a child");
    }
    const std::lock_guard lock(mutex_);
    if (index_ == nullptr)
      throw PythonError("Closed", "the device index of " + name_ + " is closed");
    return index_;
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    if (generation_ == ForkGeneration()) index_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const DeviceIndex> index_;  // guarded by mutex_
  const std::string name_;
  const int generation_;
};

// Keys on a device: an array of uint32 or uint64, or for bytes a pair of uint8 bytes and uint32
// offsets.
class DeviceKeysIn {
 public:
  DeviceKeysIn(nb::handle object, const DeviceIndex& index, DeviceStream stream, const char* name)
      : like_(nb::borrow(object)) {
    const auto read = [&](nb::handle array, DeviceType type, std::optional<DeviceArray>* to) {
      to->emplace(array, type, index.device(), stream, /*writable=*/false, name);
    };
    switch (index.kind()) {
      case PhysicalType::kU32:
        read(object, DeviceType::kU32, &first_);
        keys_ = DeviceKeys(static_cast<const uint32_t*>(first_->data()), first_->size());
        return;
      case PhysicalType::kU64:
        read(object, DeviceType::kU64, &first_);
        keys_ = DeviceKeys(static_cast<const uint64_t*>(first_->data()), first_->size());
        return;
      case PhysicalType::kBytes:
        break;
    }
    if (!PyTuple_Check(object.ptr()) || nb::len(object) != 2) {
      ThrowKeyType(std::string(name) +
                   ": expected a pair of uint8 bytes and uint32 offsets on the "
                   "device, found " +
                   Described(object));
    }
    like_ = nb::object(object[0]);
    read(like_, DeviceType::kU8, &first_);
    read(nb::object(object[1]), DeviceType::kU32, &second_);
    if (second_->size() == 0)
      ThrowKeyType(std::string(name) + ": expected one offset more than keys, found none");
    keys_ = DeviceKeys(static_cast<const char*>(first_->data()),
                       static_cast<const uint32_t*>(second_->data()), second_->size() - 1);
  }

  DeviceKeys keys() const { return keys_; }
  nb::handle like() const { return like_; }

 private:
  nb::object like_;
  std::optional<DeviceArray> first_, second_;
  DeviceKeys keys_;
};

using Bounds = TextArg<"bounds">;
using OrderArg = TextArg<"order">;

uint64_t MostOf(std::optional<Limit> limit) {
  return limit.has_value() ? limit->most : std::numeric_limits<uint64_t>::max();
}

// An output of a given size: the caller's array, or a new one of the same library as the keys.
class DeviceOut {
 public:
  DeviceOut(nb::handle out, nb::handle like, size_t size, DeviceType type, const DeviceIndex& index,
            DeviceStream stream, const char* name)
      : object_(out.is_none() ? NewArrayLike(like, size, type, name) : nb::borrow(out)),
        array_(object_, type, index.device(), stream, /*writable=*/true, name) {
    if (array_.size() != size) {
      throw PythonError("OutputTypeError", std::string(name) + ": expected an array of " +
                                               std::to_string(size) + " elements, found one of " +
                                               std::to_string(array_.size()));
    }
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(array_.data());
  }
  nb::object object() && { return std::move(object_); }

 private:
  nb::object object_;
  DeviceArray array_;
};

void Enqueue(const DeviceIndex& index, const DeviceBatch& batch, DeviceStream stream) {
  absl::Status status;
  {
    const GilReleased released;
    status = index.Execute(batch, stream);
  }
  Check(status);
}

nb::object FindFirst(const OnDevice& self, nb::handle keys, nb::handle out, nb::handle stream) {
  const auto index = self.Open();
  const DeviceStream on = StreamOf(stream);
  const DeviceKeysIn in(keys, *index, on, "keys");
  DeviceOut rows(out, in.like(), in.keys().size(), DeviceType::kU32, *index, on, "out");
  Enqueue(*index, DeviceBatch::FindFirst(in.keys(), rows.as<RowId>()), on);
  return std::move(rows).object();
}

nb::object Contains(const OnDevice& self, nb::handle keys, nb::handle out, nb::handle stream) {
  const auto index = self.Open();
  const DeviceStream on = StreamOf(stream);
  const DeviceKeysIn in(keys, *index, on, "keys");
  DeviceOut found(out, in.like(), in.keys().size(), DeviceType::kBool, *index, on, "out");
  Enqueue(*index, DeviceBatch::Contains(in.keys(), found.as<bool>()), on);
  return std::move(found).object();
}

// Ranges by their two ends, or ranges of equal keys if there is no upper end.
class DeviceRangesIn {
 public:
  DeviceRangesIn(nb::handle lower, nb::handle upper, const std::string& bounds,
                 const DeviceIndex& index, DeviceStream stream)
      : lower_(lower, index, stream, "lower") {
    ranges_.lower = ranges_.upper = lower_.keys();
    if (upper.is_none()) {
      ranges_.upper_bound = Bound::kInclusive;
      return;
    }
    upper_.emplace(upper, index, stream, "upper");
    ranges_.upper = upper_->keys();
    if (bounds.size() != 2 || (bounds[0] != '[' && bounds[0] != '(') ||
        (bounds[1] != ']' && bounds[1] != ')')) {
      ThrowInvalid("bounds: expected '[)', '[]', '(]' or '()', found '" + bounds + "'");
    }
    ranges_.lower_bound = bounds[0] == '[' ? Bound::kInclusive : Bound::kExclusive;
    ranges_.upper_bound = bounds[1] == ']' ? Bound::kInclusive : Bound::kExclusive;
    if (ranges_.lower.size() != ranges_.upper.size()) {
      ThrowInvalid("expected equal numbers of lower and upper ends, found " +
                   std::to_string(ranges_.lower.size()) + " lower and " +
                   std::to_string(ranges_.upper.size()) + " upper");
    }
  }
  const DeviceRanges& ranges() const { return ranges_; }
  nb::handle like() const { return lower_.like(); }

 private:
  DeviceKeysIn lower_;
  std::optional<DeviceKeysIn> upper_;
  DeviceRanges ranges_;
};

nb::object Count(const OnDevice& self, nb::handle lower, nb::handle upper, Bounds bounds,
                 nb::handle out, nb::handle stream) {
  const auto index = self.Open();
  const DeviceStream on = StreamOf(stream);
  const DeviceRangesIn in(lower, upper, *bounds, *index, on);
  DeviceOut counts(out, in.like(), in.ranges().size(), DeviceType::kU64, *index, on, "out");
  Enqueue(*index, DeviceBatch::Count(in.ranges(), counts.as<uint64_t>()), on);
  return std::move(counts).object();
}

Order OrderOf(const std::string& order) {
  if (order != "asc" && order != "desc")
    ThrowInvalid("order: expected 'asc' or 'desc', found '" + order + "'");
  return order == "asc" ? Order::kAscending : Order::kDescending;
}

nb::object PlanScan(const OnDevice& self, nb::handle lower, nb::handle upper, Bounds bounds,
                    LimitArg<"limit"> limit, OrderArg order, nb::handle begin, nb::handle offsets,
                    nb::handle stream) {
  const auto index = self.Open();
  const DeviceStream on = StreamOf(stream);
  const DeviceRangesIn in(lower, upper, *bounds, *index, on);
  const size_t size = in.ranges().size();
  DeviceOut first(begin, in.like(), size, DeviceType::kU32, *index, on, "begin");
  DeviceOut where(offsets, in.like(), size + 1, DeviceType::kU64, *index, on, "offsets");
  const Order direction = OrderOf(*order);
  const uint64_t most = MostOf(*limit);
  absl::Status status;
  {
    const GilReleased released;
    status = index->PlanScan(in.ranges(), most, direction, first.as<Position>(),
                             where.as<uint64_t>(), on);
  }
  Check(status);
  return nb::make_tuple(std::move(first).object(), std::move(where).object());
}

nb::object Scan(const OnDevice& self, nb::handle lower, nb::handle upper,
                NaturalArg<"capacity"> capacity_given, Bounds bounds, LimitArg<"limit"> limit,
                OrderArg order, nb::handle offsets, nb::handle row_ids, nb::handle stream) {
  const uint64_t capacity = *capacity_given;
  const auto index = self.Open();
  const DeviceStream on = StreamOf(stream);
  const DeviceRangesIn in(lower, upper, *bounds, *index, on);
  DeviceOut where(offsets, in.like(), in.ranges().size() + 1, DeviceType::kU64, *index, on,
                  "offsets");
  DeviceOut rows(row_ids, in.like(), capacity, DeviceType::kU32, *index, on, "row_ids");
  const Order direction = OrderOf(*order);
  const uint64_t most = MostOf(*limit);
  absl::Status status;
  {
    const GilReleased released;
    status = index->Scan(in.ranges(), most, direction, where.as<uint64_t>(), rows.as<RowId>(),
                         capacity, on);
  }
  Check(status);
  return nb::make_tuple(std::move(where).object(), std::move(rows).object());
}

nb::object CopyRows(const OnDevice& self, nb::handle begin, nb::handle offsets,
                    NaturalArg<"rows"> rows_given, OrderArg order, nb::handle out,
                    nb::handle stream) {
  const uint64_t rows = *rows_given;
  const auto index = self.Open();
  const DeviceStream on = StreamOf(stream);
  const DeviceArray first(begin, DeviceType::kU32, index->device(), on, false, "begin");
  const DeviceArray where(offsets, DeviceType::kU64, index->device(), on, false, "offsets");
  if (where.size() != first.size() + 1) {
    ThrowInvalid("offsets: expected one more than begin, " + std::to_string(first.size() + 1) +
                 ", found " + std::to_string(where.size()));
  }
  DeviceOut found(out, begin, rows, DeviceType::kU32, *index, on, "out");
  const Order direction = OrderOf(*order);
  absl::Status status;
  {
    const GilReleased released;
    status = index->CopyRows(static_cast<const Position*>(first.data()),
                             static_cast<const uint64_t*>(where.data()), first.size(), rows,
                             direction, found.as<RowId>(), on);
  }
  Check(status);
  return std::move(found).object();
}

// All current entries of an index.
absl::StatusOr<SortedRun> EntriesOf(const BatchIndex& index) {
  FindResult all;
  QueryOptions options;
  options.with_keys = true;
  const absl::Status status =
      index.Execute(Batch::Scan(RangeBatch::Everything(index.kind()), &all, options));
  if (!status.ok()) return status;
  const KeyBatch keys = all.keys.Batch();
  switch (index.kind()) {
    case PhysicalType::kU32:
      return SortedRun::FromUnsorted(keys.u32(), all.row_ids);
    case PhysicalType::kU64:
      return SortedRun::FromUnsorted(keys.u64(), all.row_ids);
    case PhysicalType::kBytes:
      break;
  }
  return SortedRun::FromUnsorted(keys.bytes(), all.row_ids);
}

OnDevice* MakeOnDevice(const Queries& self, Argument<int, "device"> device_given,
                       TextArg<"structure"> structure_given) {
  const auto index = self.Open();
  const int device = *device_given;
  const std::string structure = *structure_given;
  if (self.in_shards()) {
    throw PythonError("Unimplemented",
                      "on_device: expected an index that is not sharded, got a sharded one; open "
                      "one shard with cairn.shards.ShardMap");
  }
  absl::StatusOr<std::unique_ptr<DeviceIndex>> made = nullptr;
  {
    const GilReleased released;
    // Checks first, so that entries are not read in vain.
    if (const auto devices = ListDevices(); !devices.ok()) {
      made = devices.status();
    } else if (auto run = EntriesOf(*index); !run.ok()) {
      made = run.status();
    } else {
      made = MakeDeviceIndex(structure, *run, device);
    }
  }
  return new OnDevice(ValueOf(std::move(made)), self.name());
}

}  // namespace

void BindDevice(nb::module_& module) {
  const auto out = nb::arg("out") = nb::none();
  const auto stream = nb::arg("stream") = nb::none();
  nb::class_<OnDevice>(
      module, "DeviceIndex",
      R"doc(An index in the memory of one GPU, from Index.on_device or ColumnIndex.on_device.

Keys, queries and results stay on the device. They are arrays of CuPy or PyTorch, or of any library with
DLPack or the CUDA array interface. Calls enqueue their work on `stream` (a stream of CuPy or PyTorch, or an
address; None is the default stream) and return without waiting. Results are written to `out`. Without `out`,
a new array is created if the keys are of CuPy or PyTorch. Arrays must live until the stream has done the
work.

Keys are physical, of the type that `kind` returns. uint32 and uint64 keys are the values of u32 and u64
indexes. Keys of text and bytes are a pair of uint8 bytes and uint32[keys + 1] offsets.

It has the entries that the index had when it was created; catch_up does not change it.)doc")
      .def("find_first", &FindFirst, nb::arg("keys").none(), nb::kw_only(), out, stream,
           nb::sig("def find_first(self, keys: typing.Any, *, out: typing.Any = None, stream: "
                   "typing.Any = None) -> typing.Any"),
           "uint32[keys]: the lowest row of each key, or cairn.NO_ROW.")
      .def("contains", &Contains, nb::arg("keys").none(), nb::kw_only(), out, stream,
           nb::sig("def contains(self, keys: typing.Any, *, out: typing.Any = None, stream: "
                   "typing.Any = None) -> typing.Any"),
           "bool[keys]: whether any row has each key.")
      .def("count", &Count, nb::arg("lower").none(), nb::arg("upper") = nb::none(), nb::kw_only(),
           nb::arg("bounds") = "[)", out, stream,
           nb::sig("def count(self, lower: typing.Any, upper: typing.Any = None, *, bounds: str = "
                   "'[)', out: typing.Any = None, "
                   "stream: typing.Any = None) -> typing.Any"),
           "uint64[ranges]: entries from lower[i] to upper[i]; without `upper`, those of each key.")
      .def(
          "plan_scan", &PlanScan, nb::arg("lower").none(), nb::arg("upper") = nb::none(),
          nb::kw_only(), nb::arg("bounds") = "[)", nb::arg("limit") = nb::none(),
          nb::arg("order") = "asc", nb::arg("begin") = nb::none(), nb::arg("offsets") = nb::none(),
          stream,
          nb::sig("def plan_scan(self, lower: typing.Any, upper: typing.Any = None, *, bounds: str "
                  "= '[)', "
                  "limit: int | None = None, order: str = 'asc', begin: typing.Any = None, "
                  "offsets: typing.Any = None, "
                  "stream: typing.Any = None) -> tuple[typing.Any, typing.Any]"),
          R"doc(The first step of finding rows: (uint32[ranges] begin, uint64[ranges + 1] offsets) for copy_rows.

offsets[-1] is the number of rows; reading it waits for the stream.)doc")
      .def("copy_rows", &CopyRows, nb::arg("begin"), nb::arg("offsets"), nb::arg("rows"),
           nb::kw_only(), nb::arg("order") = "asc", out, stream,
           nb::sig("def copy_rows(self, begin: typing.Any, offsets: typing.Any, rows: int, *, "
                   "order: str = 'asc', "
                   "out: typing.Any = None, stream: typing.Any = None) -> typing.Any"),
           "The second step: uint32[rows]; range i starts at offsets[i]. `rows` is offsets[-1].")
      .def(
          "scan", &Scan, nb::arg("lower").none(), nb::arg("upper") = nb::none(), nb::kw_only(),
          nb::arg("capacity"), nb::arg("bounds") = "[)", nb::arg("limit") = nb::none(),
          nb::arg("order") = "asc", nb::arg("offsets") = nb::none(),
          nb::arg("row_ids") = nb::none(), stream,
          nb::sig("def scan(self, lower: typing.Any, upper: typing.Any = None, *, capacity: int, "
                  "bounds: str = '[)', limit: int | None = None, order: str = 'asc', "
                  "offsets: typing.Any = None, row_ids: typing.Any = None, "
                  "stream: typing.Any = None) -> tuple[typing.Any, typing.Any]"),
          R"doc(Both steps in one call: (uint64[ranges + 1] offsets, uint32[capacity] row_ids), without a wait between them.

offsets[-1] is the number of rows. row_ids contains the first `capacity` of them; its other elements are
unspecified.)doc")
      .def("close", &OnDevice::Close, "Frees the index's memory after the enqueued work.")
      .def("__len__", [](const OnDevice& self) { return self.Open()->size(); })
      .def("__bool__", [](const OnDevice&) { return true; })
      .def_prop_ro(
          "kind",
          [](const OnDevice& self) { return std::string(PhysicalTypeName(self.Open()->kind())); })
      .def_prop_ro("device", [](const OnDevice& self) { return self.Open()->device(); })
      .def_prop_ro("structure", [](const OnDevice& self) { return self.Open()->description(); })
      .def_prop_ro("memory_bytes",
                   [](const OnDevice& self) { return self.Open()->memory_bytes(); });
  module.def("on_device", &MakeOnDevice, nb::arg("index"), nb::arg("device"), nb::arg("structure"),
             nb::sig("def on_device(index: Queries, device: int, structure: str) -> DeviceIndex"),
             "The implementation of Index.on_device.");
}

}  // namespace cairn::python
