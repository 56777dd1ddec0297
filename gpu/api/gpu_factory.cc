#include "gpu/api/gpu_factory.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/device.h"
#include "cairn/device/group.h"
#include "gpu/api/bytes_factory.h"
#include "gpu/api/packed_options.h"
#include "gpu/btree/b_plus_tree.h"
#include "gpu/host/gpu_index.h"
#include "gpu/packed/packed_index.h"
#include "gpu/packed/packed_size.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_check.h"
#include "gpu/runtime/stream_uses.h"
#include "gpu/search/eytzinger_tree.h"
#include "gpu/search/fast_tree.h"
#include "gpu/search/pivot_tree.h"
#include "gpu/search/sorted_array.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace gpu {
namespace {

// The option aos or soa, if given.
absl::StatusOr<std::optional<EntryLayout>> TakeLayout(FactoryString* factory) {
  ASSIGN_OR_RETURN(const bool aos, factory->TakeFlag("aos"));
  ASSIGN_OR_RETURN(const bool soa, factory->TakeFlag("soa"));
  if (aos && soa) return factory->Bad("expected at most one of aos and soa");
  if (!aos && !soa) return std::optional<EntryLayout>();
  return std::optional(aos ? EntryLayout::kAoS : EntryLayout::kSoA);
}

// The option k.
absl::StatusOr<int> TakeFanOut(FactoryString* factory, int otherwise) {
  const absl::StatusOr<int> k = factory->TakeNumber("k", 2, 33, otherwise);
  if (k.ok() && !IsSearchFanOut(*k)) return factory->Bad("k: expected 2, 9, 17 or 33");
  return k;
}

absl::StatusOr<SortedArrayOptions> TakeSortedArrayOptions(FactoryString* factory) {
  SortedArrayOptions options;
  ASSIGN_OR_RETURN(const std::optional<EntryLayout> layout, TakeLayout(factory));
  options.layout = layout.value_or(options.layout);
  return options;
}

absl::StatusOr<EytzingerTreeOptions> TakeEytzingerOptions(FactoryString* factory) {
  EytzingerTreeOptions options;
  ASSIGN_OR_RETURN(const int k, TakeFanOut(factory, options.fan_out));
  ASSIGN_OR_RETURN(const std::optional<EntryLayout> layout, TakeLayout(factory));
  options.fan_out = k;
  options.layout = layout;
  return options;
}

absl::StatusOr<PivotTreeOptions> TakePivotOptions(FactoryString* factory) {
  PivotTreeOptions options;
  ASSIGN_OR_RETURN(const int k, TakeFanOut(factory, options.fan_out));
  ASSIGN_OR_RETURN(const int levels, factory->TakeNumber("levels", 0, 32, options.levels));
  ASSIGN_OR_RETURN(const std::optional<EntryLayout> layout, TakeLayout(factory));
  options.fan_out = k;
  options.levels = levels;
  options.layout = layout.value_or(options.layout);
  return options;
}

// The options order, fill and method.
template <typename Key>
absl::StatusOr<BPlusTreeOptions> TakeBPlusTreeOptions(FactoryString* factory) {
  BPlusTreeOptions options;
  options.order = kBestOrder<Key>;
  ASSIGN_OR_RETURN(const int order,
                   factory->TakeNumber("order", BPlusTreeLayout::kMinOrder,
                                       BPlusTreeLayout::kGreatestOrder, options.order));
  options.order = order;
  if (!BPlusTreeLayout::IsOrder(order)) return factory->Bad("order: expected 8, 16, 32 or 64");
  if (const auto fill = factory->Take("fill")) {
    const bool is_number =
        absl::SimpleAtod(absl::string_view(fill->data(), fill->size()), &options.fill);
    if (!is_number || !(options.fill >= 0.5 && options.fill <= 1)) {
      return factory->Bad("fill: expected a number from 0.5 to 1");
    }
  }
  if (const auto method = factory->Take("method")) {
    using enum BPlusTreeMethod;
    constexpr BPlusTreeMethod kMethods[] = {kBinary, kCombined, kBrute, kMultiple};
    const auto found = std::ranges::find_if(
        kMethods, [&](BPlusTreeMethod m) { return *method == BPlusTreeMethodName(m); });
    if (found == std::end(kMethods)) {
      return factory->Bad("method: expected binary, combined, brute or multiple");
    }
    options.method = *found;
  }
  return options;
}

// Builds a structure with the options taken from `factory`, and checks that no others are left.
template <typename Key, typename Options, typename Index>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildWith(
    absl::StatusOr<std::unique_ptr<Index>> (*build)(DeviceRun<Key>, const Options&, cudaStream_t),
    const absl::StatusOr<Options>& options, const FactoryString& factory, DeviceRun<Key> run,
    cudaStream_t stream) {
  if (!options.ok()) return options.status();
  RETURN_IF_ERROR(factory.CheckAllTaken());
  return build(std::move(run), *options, stream);
}

// Builds the structure that `factory` names on the current device. The option device= must have
// been removed.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> Build(FactoryString factory, DeviceRun<Key> run,
                                                   cudaStream_t stream) {
  if (factory.structure == "auto") factory.structure = "packed";
  const std::string_view name = factory.structure;
  if (name == "packed") {
    return BuildWith(&BuildPackedIndex<Key>, TakePackedOptions(&factory), factory, std::move(run),
                     stream);
  }
  if (name == "btree") {
    return BuildWith(&BuildBPlusTree<Key>, TakeBPlusTreeOptions<Key>(&factory), factory,
                     std::move(run), stream);
  }
  if (name == "pivot") {
    return BuildWith(&BuildPivotTree<Key>, TakePivotOptions(&factory), factory, std::move(run),
                     stream);
  }
  if (name == "eytzinger") {
    return BuildWith(&BuildEytzingerTree<Key>, TakeEytzingerOptions(&factory), factory,
                     std::move(run), stream);
  }
  if (name == "fast") {
    RETURN_IF_ERROR(factory.CheckAllTaken());
    return BuildFastTree(std::move(run), stream);
  }
  if (name == "sorted_array") {
    return BuildWith(&BuildSortedArray<Key>, TakeSortedArrayOptions(&factory), factory,
                     std::move(run), stream);
  }
  if (name == "partial_key") {
    return absl::UnimplementedError(absl::StrFormat(
        "ordered index '%s': gpu:partial_key expects byte-string keys", factory.text));
  }
  return factory.Bad(
      absl::StrFormat("unknown structure gpu:%s; expected gpu:auto, gpu:packed, gpu:btree, "
                      "gpu:fast, gpu:pivot, gpu:eytzinger, gpu:sorted_array or gpu:partial_key",
                      name));
}

// Parses a string that must name a GPU structure.
absl::StatusOr<FactoryString> ParseForDevice(std::string_view text) {
  absl::StatusOr<FactoryString> factory = FactoryString::Parse(text);
  if (factory.ok() && factory->device != "gpu") {
    return factory->Bad("a device index expects a gpu: structure");
  }
  return factory;
}

// OK if a device with this ordinal exists, otherwise Unavailable with the reason.
absl::Status CheckDevice(const FactoryString& factory, int device) {
  absl::Status usable = CheckUsableDevice(device);
  if (usable.ok()) return usable;
  return absl::UnavailableError(
      absl::StrFormat("ordered index '%s': %s", factory.text, usable.message()));
}

// Calls build(), which enqueues the work, and waits for it.
template <typename Enqueue>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildAndWait(cudaStream_t stream, Enqueue build) {
  const auto build_all = [&] {
    const KeepsFreedMemory keeps;
    return build();
  };
  absl::StatusOr<std::unique_ptr<DeviceIndex>> built = build_all();
  if (built.ok()) CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return built;
}

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromRun(FactoryString factory,
                                                          const SortedRun& run) {
  ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  return BuildAndWait(stream.get(), [&]() -> absl::StatusOr<std::unique_ptr<DeviceIndex>> {
    ASSIGN_OR_RETURN(DeviceRun<Key> uploaded, UploadRun<Key>(run, stream.get()));
    return Build<Key>(std::move(factory), std::move(uploaded), stream.get());
  });
}

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromEntries(FactoryString factory,
                                                              const Key* keys, const RowId* row_ids,
                                                              size_t size, cudaStream_t stream) {
  return BuildAndWait(stream, [&]() -> absl::StatusOr<std::unique_ptr<DeviceIndex>> {
    ASSIGN_OR_RETURN(DeviceRun<Key> run, SortToRun(keys, row_ids, size, stream));
    return Build<Key>(std::move(factory), std::move(run), stream);
  });
}

// The same without waiting, for a structure whose size depends only on that of the run.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> Enqueue(FactoryString factory, const Key* keys,
                                                     const RowId* row_ids, size_t size,
                                                     bool rows_ascend, cudaStream_t stream) {
  ASSIGN_OR_RETURN(DeviceRun<Key> run, EnqueueSort(keys, row_ids, size, rows_ascend, stream));
  return Build<Key>(std::move(factory), std::move(run), stream);
}

// For entries in the memory of the stream's device: checks the arguments, then calls make(factory)
// with that device current.
template <typename Make>
absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeOnStream(std::string_view text, PhysicalType kind,
                                                          DeviceStream stream, Make make) {
  ASSIGN_OR_RETURN(FactoryString factory, ParseForDevice(text));
  RETURN_IF_ERROR(
      CheckNotCapturing(absl::StrFormat("ordered index '%s'", text), "building", stream));
  const BesideCaptures beside;
  ASSIGN_OR_RETURN(const int device, DeviceOfStream(stream));
  RETURN_IF_ERROR(CheckDevice(factory, device));
  const OnDevice on_device(device);
  if (kind == PhysicalType::kBytes) {
    return absl::UnimplementedError(absl::StrFormat(
        "ordered index '%s': byte-string keys can only be indexed from a run in host memory",
        text));
  }
  return make(std::move(factory));
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromStrings(FactoryString factory,
                                                              const SortedRun& run) {
  ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  return BuildFromBytes(std::move(factory), run, Topology::Get().Threads(0), stream.get());
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeOnDevice(FactoryString factory,
                                                          const SortedRun& run, int device) {
  if (run.kind() == PhysicalType::kBytes) RETURN_IF_ERROR(CheckForBytes(factory));
  RETURN_IF_ERROR(CheckDevice(factory, device));
  const OnDevice on_device(device);
  const BesideCaptures beside;
  if (run.kind() == PhysicalType::kBytes) return BuildFromStrings(std::move(factory), run);
  return run.kind() == PhysicalType::kU32 ? BuildFromRun<uint32_t>(std::move(factory), run)
                                          : BuildFromRun<uint64_t>(std::move(factory), run);
}

template <typename Key>
DeviceBytes PredictPackedBytes(absl::Span<const Key> keys, const PackedIndexOptions& options,
                               int threads) {
  const PackedBounds bounds =
      BoundPackedBytes(keys.size(), SurveyOnHost(keys, Topology::Get().Threads(threads)), options);
  return {bounds.max_building, bounds.max_resident};
}

// An index on one device.
class IndexOnDevice final : public GpuIndex {
 public:
  IndexOnDevice(SortedRun run, std::unique_ptr<const DeviceIndex> index, int device)
      : GpuIndex(std::move(run), std::move(index)), device_(device) {}

  std::string description() const override {
    return absl::StrCat(GpuIndex::description(), " on device ", device_);
  }

 private:
  const int device_;
};

// An index on several devices, each with all entries. Returns Unavailable if all devices are lost;
// the caller can then use the CPU.
class IndexOnDevices final : public OrderedIndex {
 public:
  IndexOnDevices(SortedRun run, absl::Span<const int> devices, std::unique_ptr<DeviceGroup> group)
      : OrderedIndex(std::move(run)),
        devices_(absl::StrJoin(devices, ", ")),
        group_(std::move(group)) {}

  std::string description() const override {
    const size_t lost = group_->lost_members();
    return absl::StrCat(group_->member(0).description(), " on devices ", devices_,
                        lost == 0 ? "" : absl::StrCat(" (", lost, " lost)"));
  }
  uint64_t memory_bytes() const override { return group_->memory_bytes(); }
  absl::Status Execute(const Batch& batch) const override { return group_->Execute(batch); }

 private:
  const std::string devices_;
  const std::unique_ptr<const DeviceGroup> group_;
};

// MakeGpuIndex on each of a list of one or more devices; the factory string names no device.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOnDevices(std::string_view factory, SortedRun run,
                                                            absl::Span<const int> devices) {
  if (devices.size() == 1) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceIndex> index,
                     MakeDeviceIndex(factory, run, devices.front()));
    return std::make_unique<IndexOnDevice>(std::move(run), std::move(index), devices.front());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceGroup> group,
                   DeviceGroup::Replicate(factory, run, devices));
  return std::make_unique<IndexOnDevices>(std::move(run), devices, std::move(group));
}

}  // namespace
}  // namespace gpu

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view text,
                                                             const SortedRun& run, int device) {
  ASSIGN_OR_RETURN(FactoryString factory, gpu::ParseForDevice(text));
  return gpu::MakeOnDevice(std::move(factory), run, device);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view text, DeviceKeys keys,
                                                             const RowId* row_ids,
                                                             DeviceStream stream) {
  return gpu::MakeOnStream(text, keys.kind(), stream, [&](FactoryString factory) {
    return keys.kind() == PhysicalType::kU32
               ? gpu::BuildFromEntries(std::move(factory), keys.u32(), row_ids, keys.size(), stream)
               : gpu::BuildFromEntries(std::move(factory), keys.u64(), row_ids, keys.size(),
                                       stream);
  });
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> EnqueueDeviceIndex(std::string_view text,
                                                                DeviceKeys keys,
                                                                const RowId* row_ids,
                                                                bool rows_ascend,
                                                                DeviceStream stream) {
  return gpu::MakeOnStream(
      text, keys.kind(), stream,
      [&](FactoryString factory) -> absl::StatusOr<std::unique_ptr<DeviceIndex>> {
        if (factory.structure == "auto" || factory.structure == "packed") {
          return absl::UnimplementedError(absl::StrFormat(
              "ordered index '%s': the size of packed leaves depends on the keys, so building them "
              "must wait; use gpu:fast, gpu:btree, gpu:pivot, gpu:eytzinger or gpu:sorted_array",
              text));
        }
        return keys.kind() == PhysicalType::kU32
                   ? gpu::Enqueue(std::move(factory), keys.u32(), row_ids, keys.size(), rows_ascend,
                                  stream)
                   : gpu::Enqueue(std::move(factory), keys.u64(), row_ids, keys.size(), rows_ascend,
                                  stream);
      });
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> gpu::MakeGpuIndex(FactoryString factory,
                                                                SortedRun run,
                                                                absl::Span<const int> devices) {
  if (!devices.empty()) return MakeOnDevices(factory.text, std::move(run), devices);
  ASSIGN_OR_RETURN(const int device, factory.TakeNumber("device", 0, 1023, 0));
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceIndex> index,
                   MakeOnDevice(std::move(factory), run, device));
  return std::make_unique<gpu::GpuIndex>(std::move(run), std::move(index));
}

absl::StatusOr<gpu::DeviceBytes> gpu::PredictDeviceBytes(FactoryString factory,
                                                         const SortedRun& run, int threads) {
  const bool strings = run.kind() == PhysicalType::kBytes;
  if (factory.structure != "auto" && factory.structure != "packed" &&
      !(strings && factory.structure == "partial_key")) {
    return absl::UnimplementedError(
        absl::StrFormat("ordered index '%s': the size can be predicted for gpu:auto, gpu:packed "
                        "and gpu:partial_key only",
                        factory.text));
  }
  const absl::StatusOr<int> device = factory.TakeNumber("device", 0, 1023, 0);
  if (!device.ok()) return device.status();
  if (strings) return PredictFromBytes(std::move(factory), run, Topology::Get().Threads(threads));
  ASSIGN_OR_RETURN(const PackedIndexOptions options, TakePackedOptions(&factory));
  RETURN_IF_ERROR(factory.CheckAllTaken());
  if (run.empty()) return DeviceBytes();
  return run.kind() == PhysicalType::kU32
             ? PredictPackedBytes<uint32_t>(run.u32(), options, threads)
             : PredictPackedBytes<uint64_t>(run.u64(), options, threads);
}

}  // namespace cairn
