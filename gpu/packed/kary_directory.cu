#include "gpu/packed/kary_directory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/packed/kary_directory.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/shared_memory.h"
#include "index/layout/wide_key.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

using Layout = KaryDirectoryLayout;
using Node = KaryDirectoryNode;

template <typename Key>
__global__ void PassOn(const Key* separators, Key* above, size_t size) {
  ForEachIndex(size, [=](size_t i) { above[i] = separators[Layout::PassedOn(i)]; });
}

template <typename Key>
__global__ void FillTop(const Key* separators, Layout layout, Key* top) {
  ForEachIndex(layout.top_slots(), [=](size_t slot) {
    const size_t entry = slot == 0 ? layout.top() : layout.TopEntry(slot);
    top[slot] = entry < layout.top() ? separators[entry] : static_cast<Key>(~Key{0});
  });
}

template <typename Key>
__global__ void MakeNodes(KaryDirectoryLevels<Key> levels, int level, Node* nodes) {
  ForEachIndex(levels.layout.nodes(level), [=](size_t i) {
    const Key* above = levels.separators[level + 1];
    const Key* separators = levels.separators[level] + Layout::FirstSeparator(i);
    const bool is_last = i + 1 == levels.layout.nodes(level);
    nodes[i] = Node::Make(
        i == 0 ? Key{0} : above[i - 1], is_last ? static_cast<Key>(~Key{0}) : above[i],
        levels.layout.CountSeparators(level, i), [=](uint32_t j) { return separators[j]; });
  });
}

constexpr int kFindThreads = 512;

template <typename Key>
__global__ void __launch_bounds__(kFindThreads)
    FindLeavesOf(KaryDirectoryView<Key> directory, const Key* keys, size_t size, uint32_t* leaves) {
  extern __shared__ uint4 shared[];
  directory.Load(shared);
  __syncthreads();
  // Must be called by whole warps.
  ForEachIndex((size + 31) / 32 * 32, [&](size_t i) {
    const Key key[] = {i < size ? keys[i] : Key{0}};
    uint32_t leaf[1];
    directory.template FindLeaves<true>(key, leaf, shared);
    if (i < size) leaves[i] = leaf[0];
  });
}

// With fewer slots, a layout of 2^32 separators would need another level.
constexpr size_t kMinTopSlots = 256;

size_t CountNodes(const Layout& layout) {
  size_t nodes = 0;
  for (int level = 0; level < layout.levels(); ++level) nodes += layout.nodes(level);
  return nodes;
}

size_t CountSeparatorsAbove(const Layout& layout) {
  size_t separators = 0;
  for (int level = 1; level <= layout.levels(); ++level) separators += layout.separators(level);
  return separators;
}

}  // namespace

template <typename Key>
size_t KaryDirectory<Key>::PredictBytes(size_t separators, size_t max_in_top) {
  const Layout layout(separators, max_in_top);
  return CountNodes(layout) * sizeof(Node) +
         (separators + CountSeparatorsAbove(layout) + layout.top_slots()) * sizeof(Key);
}

template <typename Key>
absl::StatusOr<KaryDirectory<Key>> KaryDirectory<Key>::Build(DeviceBuffer<Key> separators,
                                                             cudaStream_t stream) {
  ASSIGN_OR_RETURN(const size_t shared, MostSharedBytes());
  // The number of slots is one more than that of separators, and a power of two.
  const size_t slots = std::bit_floor(std::min(kTopBytes, shared) / sizeof(Key));
  const size_t max_in_top = std::max(slots, kMinTopSlots) - 1;
  const size_t more = PredictBytes(separators.size(), max_in_top) - separators.bytes();
  RETURN_IF_ERROR(CheckDeviceMemory(more, "a K-ary directory"));
  KaryDirectory directory;
  KaryDirectoryLevels<Key>& levels = directory.levels_;
  levels.layout = Layout(separators.size(), max_in_top);
  levels.separators[0] = separators.data();
  const Layout& layout = levels.layout;
  RETURN_IF_ERROR(Resize(&directory.nodes_, CountNodes(layout), stream));
  RETURN_IF_ERROR(Resize(&directory.separators_above_, CountSeparatorsAbove(layout), stream));
  RETURN_IF_ERROR(Resize(&directory.top_, layout.top_slots(), stream));
  Node* nodes = directory.nodes_.data();
  Key* above = directory.separators_above_.data();
  for (int level = 0; level < layout.levels(); ++level) {
    const size_t passed_on = layout.separators(level + 1);
    CAIRN_RETURN_IF_LAUNCH_FAILS("PassOn", SimpleShape(passed_on), stream, PassOn<Key>,
                                 levels.separators[level], above, passed_on);
    levels.nodes[level] = nodes;
    levels.separators[level + 1] = above;
    CAIRN_RETURN_IF_LAUNCH_FAILS("MakeNodes", SimpleShape(layout.nodes(level)), stream,
                                 MakeNodes<Key>, levels, level, nodes);
    nodes += layout.nodes(level);
    above += passed_on;
  }
  levels.top = directory.top_.data();
  CAIRN_RETURN_IF_LAUNCH_FAILS("FillTop", SimpleShape(layout.top_slots()), stream, FillTop<Key>,
                               levels.separators[layout.levels()], layout, directory.top_.data());
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  directory.separators_ = std::move(separators);
  directory.separators_.SetStream(AfterAllUses());
  directory.nodes_.SetStream(AfterAllUses());
  directory.separators_above_.SetStream(AfterAllUses());
  directory.top_.SetStream(AfterAllUses());
  return directory;
}

template <typename Key>
absl::Status FindLeaves(const KaryDirectory<Key>& directory, const Key* keys, size_t size,
                        uint32_t* leaves, cudaStream_t stream) {
  if (size == 0) return absl::OkStatus();
  const KaryDirectoryView<Key> view = directory.view();
  static SharedMemoryOfKernel shared_memory;
  RETURN_IF_ERROR(shared_memory.AllowMost(reinterpret_cast<const void*>(FindLeavesOf<Key>)));
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "FindLeavesOf",
      LaunchShape{static_cast<unsigned>(SimpleBlocks(size)), kFindThreads, view.shared_bytes()},
      stream, FindLeavesOf<Key>, view, keys, size, leaves);
  return absl::OkStatus();
}

template class KaryDirectory<uint32_t>;
template class KaryDirectory<uint64_t>;
template class KaryDirectory<WideKey>;
template absl::Status FindLeaves(const KaryDirectory<uint32_t>&, const uint32_t*, size_t, uint32_t*,
                                 cudaStream_t);
template absl::Status FindLeaves(const KaryDirectory<uint64_t>&, const uint64_t*, size_t, uint32_t*,
                                 cudaStream_t);
template absl::Status FindLeaves(const KaryDirectory<WideKey>&, const WideKey*, size_t, uint32_t*,
                                 cudaStream_t);

}  // namespace cairn::gpu
