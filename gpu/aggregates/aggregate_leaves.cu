#include "gpu/aggregates/aggregate_leaves.h"

#include <type_traits>

#include "gpu/aggregates/segment_scan.cuh"
#include "gpu/packed/packed_size.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// The value of slots without an entry.
template <AggregateKind kKind>
constexpr AggregateValue<kKind> EmptySlot() {
  return HasGroups(kKind) ? Nothing<AggregateValue<kKind>>() : AggregateValue<kKind>{0};
}

// Makes the leaf with as many of the keys [first, end) as fit, linked to `link` if there are too
// many. `primary` is its number if it is a primary leaf.
template <AggregateKind kKind, int kKeyBytes, typename Key>
__device__ void FillOne(const LeafContents<Key>& contents, Position first, Position end,
                        uint32_t link, size_t primary, bool is_primary, Leaf* out) {
  using Filled = AggregateLeaf<kKind, kKeyBytes>;
  using Value = typename Filled::Value;
  const bool continued = end - first > Filled::kEntries;
  const int entries = continued ? Filled::kEntries - 1 : static_cast<int>(end - first);
  Filled leaf;
  leaf.Clear(first, continued ? link : 0, EmptySlot<kKind>());
#pragma unroll
  for (int slot = 0; slot < Filled::kEntries; ++slot) {
    if (slot >= entries) continue;
    leaf.SetKey(slot, contents.keys[first + slot]);
    if constexpr (kKind != AggregateKind::kCounts) {
      leaf.SetValue(slot, static_cast<const Value*>(contents.values)[first + slot]);
    }
  }
  if constexpr (HasSums(kKind)) {
    leaf.SetSumBefore(static_cast<const typename Filled::Sum*>(contents.sums)[first]);
  }
  if constexpr (HasGroups(kKind)) {
    if (is_primary) {
      leaf.SetBeforeAndBehind(static_cast<const Value*>(contents.before)[primary],
                              static_cast<const Value*>(contents.behind)[primary]);
    }
  }
  uint4* const to = reinterpret_cast<uint4*>(out);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[i] = make_uint4(leaf.words[4 * i], leaf.words[4 * i + 1], leaf.words[4 * i + 2],
                       leaf.words[4 * i + 3]);
  }
}

// Fills the primary leaves. FillChains sets the links between leaves.
template <AggregateKind kKind, int kKeyBytes, typename Key>
__global__ void FillPrimaries(LeafContents<Key> contents, const Position* first, size_t primary,
                              Leaf* leaves) {
  ForEachIndex(primary, [=](size_t i) {
    FillOne<kKind, kKeyBytes>(contents, first[i], first[i + 1], 0, i, true, leaves + i);
  });
}
template <AggregateKind kKind, int kKeyBytes, typename Key>
__global__ void FillChains(LeafContents<Key> contents, const LinkedLeaf* linked, size_t count,
                           size_t primary, Leaf* leaves) {
  ForEachIndex(count, [=](size_t i) {
    const LinkedLeaf leaf = linked[i];
    const auto number = static_cast<uint32_t>(primary + i);
    FillOne<kKind, kKeyBytes>(contents, leaf.first, leaf.end, number + 1, 0, false,
                              leaves + number);
    if (leaf.from < primary) {
      constexpr int kLinkWord = AggregateLeaf<kKind, kKeyBytes>::kLinkWord;
      reinterpret_cast<uint32_t*>(leaves + leaf.from)[kLinkWord] = number;
    }
  });
}

template <AggregateKind kKind, int kKeyBytes, typename Key>
absl::Status FillAll(const LeafCut& cut, const LeafContents<Key>& contents, Leaf* leaves,
                     cudaStream_t stream) {
  CAIRN_RETURN_IF_LAUNCH_FAILS("FillPrimaries", SimpleShape(cut.primary), stream,
                               FillPrimaries<kKind, kKeyBytes, Key>, contents, cut.first.data(),
                               cut.primary, leaves);
  if (cut.linked.size() == 0) return absl::OkStatus();
  CAIRN_RETURN_IF_LAUNCH_FAILS("FillChains", SimpleShape(cut.linked.size()), stream,
                               FillChains<kKind, kKeyBytes, Key>, contents, cut.linked.data(),
                               cut.linked.size(), cut.primary, leaves);
  return absl::OkStatus();
}

template <AggregateKind kKind, typename Key>
absl::Status FillKind(const LeafCut& cut, const LeafContents<Key>& contents, Leaf* leaves,
                      cudaStream_t stream) {
  constexpr int kAll = static_cast<int>(sizeof(Key)), kHalf = kAll / 2;
  return cut.bits == 8 * kAll ? FillAll<kKind, kAll>(cut, contents, leaves, stream)
                              : FillAll<kKind, kHalf>(cut, contents, leaves, stream);
}

}  // namespace

template <typename Key>
absl::StatusOr<DeviceBuffer<Leaf>> FillAggregateLeaves(AggregateKind kind, const LeafCut& cut,
                                                       const LeafContents<Key>& contents,
                                                       cudaStream_t stream) {
  DeviceBuffer<Leaf> leaves;
  RETURN_IF_ERROR(Resize(&leaves, cut.leaves(), stream));
  absl::Status filled;
  switch (kind) {
    case AggregateKind::kCounts:
      filled = FillKind<AggregateKind::kCounts>(cut, contents, leaves.data(), stream);
      break;
    case AggregateKind::kSums32:
      filled = FillKind<AggregateKind::kSums32>(cut, contents, leaves.data(), stream);
      break;
    case AggregateKind::kSums64:
      filled = FillKind<AggregateKind::kSums64>(cut, contents, leaves.data(), stream);
      break;
    case AggregateKind::kExtremes32:
      filled = FillKind<AggregateKind::kExtremes32>(cut, contents, leaves.data(), stream);
      break;
    case AggregateKind::kExtremes64:
      filled = FillKind<AggregateKind::kExtremes64>(cut, contents, leaves.data(), stream);
      break;
    case AggregateKind::kFloatSums:
      filled = FillKind<AggregateKind::kFloatSums>(cut, contents, leaves.data(), stream);
      break;
  }
  if (!filled.ok()) return filled;
  return leaves;
}

template absl::StatusOr<DeviceBuffer<Leaf>> FillAggregateLeaves(AggregateKind, const LeafCut&,
                                                                const LeafContents<uint32_t>&,
                                                                cudaStream_t);
template absl::StatusOr<DeviceBuffer<Leaf>> FillAggregateLeaves(AggregateKind, const LeafCut&,
                                                                const LeafContents<uint64_t>&,
                                                                cudaStream_t);

}  // namespace cairn::gpu
