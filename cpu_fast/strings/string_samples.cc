#include "cpu_fast/strings/string_samples.h"

#include <algorithm>
#include <utility>

#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/machine/topology.h"
#include "index/run/gallop.h"
#include "index/strings/string_compare.h"

namespace cairn {
namespace {

// Samples that one task takes.
constexpr size_t kSampleGrain = 4096;

}  // namespace

StringSamples::StringSamples(const BytesColumn& keys, SimdLevel level) : keys_(keys) {
  if (keys.size() == 0) return;
  const std::string_view first = keys[0];
  common_ = first.substr(0, CommonPrefix(first, keys[keys.size() - 1], 0));
  slices_ = AlignedBuffer<uint64_t>((keys.size() + kSample - 1) / kSample);
  FillSlices(0, common_.size(), slices_.span());
  tree_ = FastTreeNodes<uint64_t>(std::as_const(slices_).span(), {}, PageBlocking::kNone, level);

  children_.assign(slices_.size(), kNoNode);
  MakeNested(std::as_const(slices_).span(), 0, common_.size(), 1, children_.data());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node node = nodes_[i];
    if (node.level == kMaxLevels) break;  // all later nodes are at this level, too
    // Copied, because creating nodes below reallocates the vectors.
    const std::vector<uint64_t> slices(nested_slices_.begin() + node.begin,
                                       nested_slices_.begin() + node.begin + node.count);
    std::vector<uint32_t> children(node.count, kNoNode);
    MakeNested(slices, node.first, node.depth, node.level + 1, children.data());
    std::copy(children.begin(), children.end(), nested_children_.begin() + node.begin);
  }
  nodes_.shrink_to_fit();
  nested_slices_.shrink_to_fit();
  nested_children_.shrink_to_fit();
}

void StringSamples::FillSlices(size_t first, size_t depth, absl::Span<uint64_t> slices) const {
  const size_t grains = (slices.size() + kSampleGrain - 1) / kSampleGrain;
  ParallelFor(Topology::Get().cores(), grains, [&](size_t grain) {
    const size_t end = std::min((grain + 1) * kSampleGrain, slices.size());
    for (size_t i = grain * kSampleGrain; i < end; ++i) {
      slices[i] = SliceOf(keys_[(first + i) * kSample].substr(depth));
    }
  });
}

void StringSamples::MakeNested(absl::Span<const uint64_t> slices, size_t first, uint64_t depth,
                               uint32_t level, uint32_t* children) {
  const size_t max_bytes = slices_.size() * kMaxNestedBytes;
  for (size_t i = 0; i < slices.size();) {
    size_t end = i + 1;
    while (end < slices.size() && slices[end] == slices[i]) ++end;
    const size_t tie = std::exchange(i, end);
    const size_t count = end - tie;
    if (count < kNestedLeast || nested_bytes_ + NestedBytes(count) > max_bytes) continue;
    const size_t key = (first + tie) * kSample;
    const size_t shared = CommonPrefix(keys_[key], keys_[(first + end - 1) * kSample], depth);
    // Keys of different lengths may tie only because of their padding, and share no further bytes.
    if (shared == depth) continue;
    nested_bytes_ += NestedBytes(count);
    const size_t begin = nested_slices_.size();
    children[tie] = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({keys_.offset(key), shared, static_cast<uint32_t>(first + tie),
                      static_cast<uint32_t>(count), static_cast<uint32_t>(begin), level});
    nested_slices_.resize(begin + count);
    nested_children_.resize(begin + count, kNoNode);
    FillSlices(first + tie, shared, absl::MakeSpan(nested_slices_).subspan(begin));
  }
}

uint64_t StringSamples::memory_bytes() const {
  return slices_.size() * sizeof(uint64_t) + tree_.memory_bytes() +
         children_.capacity() * sizeof(uint32_t) + nodes_.capacity() * sizeof(Node) +
         nested_slices_.capacity() * sizeof(uint64_t) +
         nested_children_.capacity() * sizeof(uint32_t);
}

struct StringSamples::Descent {
  size_t size = 0;
  uint8_t query[StringGroup::kMax];
  uint32_t node[StringGroup::kMax];
  uint64_t depth[StringGroup::kMax];  // of the slices that led to the node
  uint64_t slice[StringGroup::kMax];
  const uint64_t* at[StringGroup::kMax];
};

void StringSamples::NarrowTo(size_t j, size_t at, size_t behind, size_t first, size_t end,
                             uint64_t depth, StringGroup* group) const {
  if (at > first) {
    group->low[j] = static_cast<Position>((at - 1) * kSample + 1);
    group->low_shared[j] = depth;
  }
  if (behind < end) {
    group->high[j] = static_cast<Position>(behind * kSample);
    group->high_shared[j] = depth;
  }
}

void StringSamples::Narrow(absl::Span<const std::string_view> queries, StringGroup* group) const {
  uint64_t slices[StringGroup::kMax];
  Position at[StringGroup::kMax];
  const auto size = static_cast<Position>(keys_.size());
  for (size_t j = 0; j < queries.size(); ++j) {
    slices[j] = SliceOf(queries[j].substr(std::min(common_.size(), queries[j].size())));
  }
  tree_.LowerBound({slices, queries.size()}, at);

  Descent descent;
  for (size_t j = 0; j < queries.size(); ++j) {
    group->low[j] = 0;
    group->high[j] = size;
    group->low_shared[j] = group->high_shared[j] = common_.size();
    const size_t shared = common_.empty() ? 0 : CommonPrefix(queries[j], common_, 0);
    if (shared < common_.size()) {  // before or after all keys
      group->low[j] = group->high[j] = CompareBehind(queries[j], common_, shared) < 0 ? 0 : size;
      continue;
    }
    const bool tie = at[j] < slices_.size() && slices_[at[j]] == slices[j];
    const uint32_t child = tie ? children_[at[j]] : kNoNode;
    const size_t behind =
        child != kNoNode
            ? at[j] + nodes_[child].count
            : Gallop(at[j], slices_.size(), [&](size_t i) { return slices_[i] == slices[j]; });
    NarrowTo(j, at[j], behind, 0, slices_.size(), common_.size(), group);
    if (child == kNoNode) continue;
    Prefetch(keys_.heap() + nodes_[child].prefix + common_.size());
    descent.query[descent.size] = static_cast<uint8_t>(j);
    descent.depth[descent.size] = common_.size();
    descent.node[descent.size++] = child;
  }
  while (descent.size > 0) {
    EnterNodes(queries, &descent, group);
    SearchNodes(&descent, group);
  }
}

// Keeps the queries that share their node's prefix. The others are before or after all its keys.
void StringSamples::EnterNodes(absl::Span<const std::string_view> queries, Descent* descent,
                               StringGroup* group) const {
  size_t kept = 0;
  for (size_t a = 0; a < descent->size; ++a) {
    const size_t j = descent->query[a];
    const Node& node = nodes_[descent->node[a]];
    const std::string_view prefix(keys_.heap() + node.prefix, node.depth);
    const size_t shared = CommonPrefix(queries[j], prefix, descent->depth[a]);
    const size_t end = size_t{node.first} + node.count;
    if (shared < node.depth) {
      const bool before = CompareBehind(queries[j], prefix, shared) < 0;
      // Narrows to just before the first of the node's samples, or to just after the last.
      const size_t at = before ? node.first : end;
      NarrowTo(j, at, at, node.first, end, shared, group);
      continue;
    }
    descent->query[kept] = static_cast<uint8_t>(j);
    descent->node[kept] = descent->node[a];
    descent->depth[kept] = node.depth;
    descent->slice[kept] = SliceOf(queries[j].substr(node.depth));
    descent->at[kept] = nested_slices_.data() + node.begin;
    Prefetch(descent->at[kept] + node.count / 2);
    ++kept;
  }
  descent->size = kept;
}

void StringSamples::SearchNodes(Descent* descent, StringGroup* group) const {
  // A branch-free binary search of all queries in lockstep; those in small nodes wait for the
  // others.
  uint32_t length[StringGroup::kMax];
  uint32_t longest = 0;
  for (size_t a = 0; a < descent->size; ++a) {
    length[a] = nodes_[descent->node[a]].count;
    longest = std::max(longest, length[a]);
  }
  for (; longest > 1; longest -= longest / 2) {
    for (size_t a = 0; a < descent->size; ++a) {
      const uint32_t half = length[a] / 2;
      const size_t less = descent->at[a][half - (half > 0)] < descent->slice[a];
      length[a] -= half;
      descent->at[a] += half & (0 - less);
      Prefetch(descent->at[a] + length[a] / 2);
    }
  }
  size_t kept = 0;
  for (size_t a = 0; a < descent->size; ++a) {
    const Node& node = nodes_[descent->node[a]];
    const uint64_t slice = descent->slice[a];
    const uint64_t* slices = nested_slices_.data() + node.begin;
    const size_t at = static_cast<size_t>(descent->at[a] - slices) + (*descent->at[a] < slice);
    const bool tie = at < node.count && slices[at] == slice;
    const uint32_t child = tie ? nested_children_[node.begin + at] : kNoNode;
    const size_t behind =
        child != kNoNode ? at + nodes_[child].count
                         : Gallop(at, node.count, [&](size_t i) { return slices[i] == slice; });
    const size_t j = descent->query[a];
    NarrowTo(j, node.first + at, node.first + behind, node.first, size_t{node.first} + node.count,
             node.depth, group);
    if (child == kNoNode) continue;
    Prefetch(keys_.heap() + nodes_[child].prefix + node.depth);
    descent->query[kept] = static_cast<uint8_t>(j);
    descent->node[kept] = child;
    descent->depth[kept++] = node.depth;
  }
  descent->size = kept;
}

}  // namespace cairn
