#include "gpu/gpu_factory.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/b_plus_tree.h"
#include "gpu/cuda_status.h"
#include "gpu/device_run.h"
#include "gpu/gpu_index.h"
#include "gpu/packed_index.h"
#include "gpu/stream.h"

namespace cairn {
namespace gpu {
namespace {

absl::StatusOr<PackedIndexOptions> TakePackedOptions(FactoryString* factory) {
  PackedIndexOptions options;
  const std::string_view directory = factory->Take("directory").value_or("auto");
  if (directory == "bitmap") {
    options.directory = LeafDirectory::kBitmap;
  } else if (directory == "tree") {
    options.directory = LeafDirectory::kTree;
  } else if (directory != "auto") {
    return factory->Bad(absl::StrFormat("directory is auto, bitmap or tree, not '%s'", directory));
  }
  const std::string_view bits = factory->Take("bits").value_or("auto");
  options.bits = bits == "16" ? 16 : bits == "32" ? 32 : bits == "48" ? 48 : bits == "64" ? 64 : 0;
  if (options.bits == 0 && bits != "auto") {
    return factory->Bad(absl::StrFormat("bits is auto, 16, 32, 48 or 64, not '%s'", bits));
  }
  return options;
}

// Builds the structure that `factory` names, on the current device; its option device= is taken.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> Build(FactoryString factory, DeviceRun<Key> run,
                                                   cudaStream_t stream) {
  if (factory.structure == "auto") factory.structure = "packed";
  if (factory.structure == "packed") {
    const absl::StatusOr<PackedIndexOptions> options = TakePackedOptions(&factory);
    if (!options.ok()) return options.status();
    if (absl::Status s = factory.CheckAllTaken(); !s.ok()) return s;
    return BuildPackedIndex(std::move(run), *options, stream);
  }
  if (factory.structure == "btree") {
    const absl::StatusOr<BPlusTreeOptions> options = BPlusTreeOptions::Take(&factory);
    if (!options.ok()) return options.status();
    if (absl::Status s = factory.CheckAllTaken(); !s.ok()) return s;
    return BuildBPlusTree(std::move(run), *options, stream);
  }
  return factory.Bad(absl::StrFormat("there is no structure gpu:%s; there are gpu:auto, gpu:btree, gpu:packed",
                                     factory.structure));
}

// OK if the ordinal is a device's; Unavailable, with the reason, where it is none.
absl::Status CheckDevice(const FactoryString& factory, int device) {
  const absl::StatusOr<std::vector<Device>> devices = Devices();
  std::string reason;
  if (!devices.ok()) {
    reason = std::string(devices.status().message());
  } else if (device < 0 || static_cast<size_t>(device) >= devices->size()) {
    reason = absl::StrFormat("no CUDA device %d; there are %d", device, devices->size());
  } else {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrFormat("ordered index '%s': %s", factory.text, reason));
}

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromRun(FactoryString factory,
                                                          const SortedRun& run) {
  absl::StatusOr<Stream> stream = Stream::Create();
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DeviceRun<Key>> uploaded = UploadRun<Key>(run, stream->get());
  if (!uploaded.ok()) return uploaded.status();
  return Build<Key>(std::move(factory), *std::move(uploaded), stream->get());
}

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromEntries(FactoryString factory,
                                                              const Key* keys, const RowId* row_ids,
                                                              size_t size, cudaStream_t stream) {
  absl::StatusOr<DeviceRun<Key>> run = SortToRun(keys, row_ids, size, stream);
  if (!run.ok()) return run.status();
  return Build<Key>(std::move(factory), *std::move(run), stream);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeOnDevice(FactoryString factory,
                                                          const SortedRun& run, int device) {
  if (run.kind() == KeyKind::kBytes) {
    return absl::UnimplementedError(absl::StrFormat(
        "ordered index '%s': structures for GPUs take keys of 32 and 64 bits, not bytes",
        factory.text));
  }
  if (absl::Status s = CheckDevice(factory, device); !s.ok()) return s;
  const OnDevice on_device(device);
  return run.kind() == KeyKind::kU32 ? BuildFromRun<uint32_t>(std::move(factory), run)
                                     : BuildFromRun<uint64_t>(std::move(factory), run);
}

// The parts of a string that must name a GPU's structure.
absl::StatusOr<FactoryString> ParseForDevice(std::string_view text) {
  absl::StatusOr<FactoryString> factory = FactoryString::Parse(text);
  if (factory.ok() && factory->device != "gpu") {
    return factory->Bad("a device index is a structure gpu:…");
  }
  return factory;
}

}  // namespace
}  // namespace gpu

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view text,
                                                             const SortedRun& run, int device) {
  absl::StatusOr<FactoryString> factory = gpu::ParseForDevice(text);
  if (!factory.ok()) return factory.status();
  return gpu::MakeOnDevice(*std::move(factory), run, device);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view text, DeviceKeys keys,
                                                             const RowId* row_ids,
                                                             DeviceStream stream) {
  absl::StatusOr<FactoryString> factory = gpu::ParseForDevice(text);
  if (!factory.ok()) return factory.status();
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  if (absl::Status s = gpu::CheckDevice(*factory, device); !s.ok()) return s;
  return keys.kind() == KeyKind::kU32
             ? gpu::BuildFromEntries(*std::move(factory), keys.u32(), row_ids, keys.size(), stream)
             : gpu::BuildFromEntries(*std::move(factory), keys.u64(), row_ids, keys.size(), stream);
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> gpu::MakeGpuIndex(FactoryString factory,
                                                                SortedRun run) {
  const absl::StatusOr<int> device = factory.TakeNumber("device", 0, 1023, 0);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<DeviceIndex>> index =
      MakeOnDevice(std::move(factory), run, *device);
  if (!index.ok()) return index.status();
  return std::make_unique<gpu::GpuIndex>(std::move(run), *std::move(index));
}

}  // namespace cairn
