#include "gpu/kary_directory.h"

#include <limits>
#include <utility>

#include "gpu/cuda_status.h"
#include "gpu/kary_directory.cuh"
#include "gpu/launch.h"

namespace cairn::gpu {
namespace {

using Layout = KaryDirectoryLayout;
using Node = KaryDirectoryNode;

template <typename Key>
__global__ void PassOn(const Key* separators, Key* above, size_t size) {
  ForEachIndex(size, [=](size_t i) { above[i] = separators[Layout::PassedOn(i)]; });
}

template <typename Key>
__global__ void MakeNodes(KaryDirectoryLevels<Key> levels, int level, Node* nodes) {
  ForEachIndex(levels.layout.nodes(level), [=](size_t i) {
    const Key* above = levels.separators[level + 1];
    const Key* separators = levels.separators[level] + Layout::FirstSeparator(i);
    const bool is_last = i + 1 == levels.layout.nodes(level);
    nodes[i] = Node::Make(
        i == 0 ? Key{0} : above[i - 1], is_last ? std::numeric_limits<Key>::max() : above[i],
        levels.layout.CountSeparators(level, i), [=](int j) { return separators[j]; });
  });
}

constexpr int kFindThreads = 512;

template <typename Key>
__global__ void __launch_bounds__(kFindThreads)
    FindLeavesOf(KaryDirectoryView<Key> directory, const Key* keys, size_t size, uint32_t* leaves) {
  extern __shared__ uint4 shared[];
  directory.Load(shared);
  __syncthreads();
  ForEachIndex(size, [&](size_t i) {
    const Key key[] = {keys[i]};
    uint32_t leaf[1];
    directory.FindLeaves(key, leaf, shared);
    leaves[i] = leaf[0];
  });
}

size_t CountNodes(const Layout& layout) {
  size_t nodes = 0;
  for (int level = 0; level < layout.levels(); ++level) nodes += layout.nodes(level);
  return nodes;
}

// The separators of the levels above 0, each from a multiple of 16 bytes on.
size_t CountSeparatorsAbove(const Layout& layout) {
  size_t separators = 0;
  for (int level = 1; level <= layout.levels(); ++level) separators += layout.separators(level);
  return separators;
}

}  // namespace

template <typename Key>
size_t KaryDirectory<Key>::PredictBytes(size_t count) {
  const Layout layout(count, kTopBytes / sizeof(Key));
  return CountNodes(layout) * sizeof(Node) + CountSeparatorsAbove(layout) * sizeof(Key);
}

template <typename Key>
absl::StatusOr<KaryDirectory<Key>> KaryDirectory<Key>::Build(const Key* separators, size_t count,
                                                             cudaStream_t stream) {
  if (absl::Status s = CheckDeviceMemory(PredictBytes(count), "a K-ary directory"); !s.ok()) {
    return s;
  }
  KaryDirectory directory;
  KaryDirectoryLevels<Key>& levels = directory.levels_;
  levels.layout = Layout(count, kTopBytes / sizeof(Key));
  const Layout& layout = levels.layout;
  auto nodes = DeviceBuffer<Node>::Allocate(CountNodes(layout), stream);
  if (!nodes.ok()) return nodes.status();
  auto above = DeviceBuffer<Key>::Allocate(CountSeparatorsAbove(layout), stream);
  if (!above.ok()) return above.status();
  Node* next_node = nodes->data();
  Key* next_separator = above->data();
  levels.separators[0] = separators;
  for (int level = 0; level < layout.levels(); ++level) {
    const size_t passed_on = layout.separators(level + 1);
    PassOn<<<SimpleBlocks(passed_on), kSimpleThreads, 0, stream>>>(levels.separators[level],
                                                                   next_separator, passed_on);
    CAIRN_RETURN_IF_LAUNCH_FAILED("PassOn");
    levels.nodes[level] = next_node;
    levels.separators[level + 1] = next_separator;
    MakeNodes<<<SimpleBlocks(layout.nodes(level)), kSimpleThreads, 0, stream>>>(levels, level,
                                                                                next_node);
    CAIRN_RETURN_IF_LAUNCH_FAILED("MakeNodes");
    next_node += layout.nodes(level);
    next_separator += passed_on;
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  directory.nodes_ = *std::move(nodes);
  directory.separators_ = *std::move(above);
  directory.nodes_.SetStream(nullptr);
  directory.separators_.SetStream(nullptr);
  return directory;
}

template <typename Key>
absl::Status FindLeaves(const KaryDirectory<Key>& directory, const Key* keys, size_t size,
                        uint32_t* leaves, cudaStream_t stream) {
  if (size == 0) return absl::OkStatus();
  const KaryDirectoryView<Key> view = directory.view();
  CAIRN_RETURN_IF_CUDA_FAILS(cudaFuncSetAttribute(FindLeavesOf<Key>,
                                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  static_cast<int>(view.shared_bytes())));
  FindLeavesOf<<<SimpleBlocks(size), kFindThreads, view.shared_bytes(), stream>>>(view, keys, size,
                                                                                  leaves);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FindLeavesOf");
  return absl::OkStatus();
}

template class KaryDirectory<uint32_t>;
template class KaryDirectory<uint64_t>;
template absl::Status FindLeaves(const KaryDirectory<uint32_t>&, const uint32_t*, size_t, uint32_t*,
                                 cudaStream_t);
template absl::Status FindLeaves(const KaryDirectory<uint64_t>&, const uint64_t*, size_t, uint32_t*,
                                 cudaStream_t);

}  // namespace cairn::gpu
