// WhereSearch::Scan: tests rows in order, by the positions of their entries.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "engine/where/where_search.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

// Number of rows per block. One byte per row and leaf stays in the first-level cache.
constexpr size_t kBlock = 2048;
// A leaf with more ranges than this is converted to a bitmap first.
constexpr size_t kMaxRanges = 4;

// Tests the numbers of a block's rows, which are positions in a run or codes of keys. Sets pass[i]
// to whether the number of row i is in one of the ranges. The loops have a fixed length, so that
// the compiler can use wide registers.
template <typename Number>
void InRanges(const Number* numbers, const std::vector<PositionRange>& ranges, Mode mode,
              uint8_t* pass) {
  constexpr Number kNone = std::numeric_limits<Number>::max();
  if (mode == Mode::kAbsent) {
    for (size_t i = 0; i < kBlock; ++i) pass[i] = numbers[i] == kNone;
    return;
  }
  for (const PositionRange& range : ranges) {
    const auto begin = static_cast<Number>(range.begin);
    const auto size = static_cast<Number>(range.end - range.begin);
    for (size_t i = 0; i < kBlock; ++i) {
      pass[i] |= static_cast<uint8_t>(static_cast<Number>(numbers[i] - begin) < size);
    }
  }
  if (mode == Mode::kNoneOf) {
    for (size_t i = 0; i < kBlock; ++i) {
      pass[i] = static_cast<uint8_t>((pass[i] ^ 1) & (numbers[i] != kNone));
    }
  }
}

// The same for the first `size` rows of a block.
template <typename Number>
void InRanges(const Number* numbers, size_t size, const std::vector<PositionRange>& ranges,
              Mode mode, uint8_t* pass) {
  if (size == kBlock) return InRanges(numbers, ranges, mode, pass);
  Number last[kBlock] = {};
  std::copy_n(numbers, size, last);
  InRanges(last, ranges, mode, pass);
  std::memset(pass + size, 0, kBlock - size);
}

void And(const uint8_t* other, uint8_t* pass) {
  for (size_t i = 0; i < kBlock; ++i) pass[i] &= other[i];
}
void Or(const uint8_t* other, uint8_t* pass) {
  for (size_t i = 0; i < kBlock; ++i) pass[i] |= other[i];
}

uint64_t Sum(const uint8_t* pass) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; i += 128) {
    uint8_t some = 0;  // at most 128
    for (size_t j = 0; j < 128; ++j) some = static_cast<uint8_t>(some + pass[i + j]);
    sum += some;
  }
  return sum;
}

// Marks the members of a predicate's leaves.
void MarkMembers(const WhereNode& node, std::vector<bool>* of_member) {
  if (node.kind == Kind::kLeaf) (*of_member)[node.member] = true;
  for (const WhereNode& child : node.children) MarkMembers(child, of_member);
}

void AppendRows(const uint8_t* pass, RowId first, std::vector<RowId>* rows) {
  for (size_t i = 0; i < kBlock; i += 8) {
    uint64_t some = 0;
    std::memcpy(&some, pass + i, 8);
    // Move the lowest bit of each byte, which is 0 or 1, next to each other.
    const uint64_t bits = some * uint64_t{0x0102040810204080} >> 56;
    for (uint64_t left = bits; left != 0; left &= left - 1) {
      rows->push_back(first + static_cast<RowId>(i + static_cast<size_t>(std::countr_zero(left))));
    }
  }
}

}  // namespace

// The data that a leaf's block is tested with.
struct WhereSearch::ScanLeaf {
  absl::Span<const Position> positions;   // one per row of the base
  std::shared_ptr<const RowCodes> codes;  // replaces positions if there are few distinct keys
  std::vector<PositionRange> ranges;      // ranges of positions or codes
  bool has_bitmap = false;
  RowBitmap bitmap;  // replaces ranges
};

absl::StatusOr<bool> WhereSearch::CanScan(const WhereNode& node) const {
  if (node.kind == Kind::kLeaf) {
    const GroupMember& member = *members_[node.member];
    RETURN_IF_ERROR(member.Prepare());
    return member.delta().base_rows.rows() == space_->base_rows() &&
           (space_->base_rows() == 0 ||
            (!member.positions().single().empty() && space_->HasOwnBaseNumbers(node.member)));
  }
  for (const WhereNode& child : node.children) {
    ASSIGN_OR_RETURN(const bool can, CanScan(child));
    if (!can) return false;
  }
  return true;
}

absl::Status WhereSearch::PrepareScan(const WhereNode& node, std::vector<ScanLeaf>* leaves,
                                      const StopCondition& stop) const {
  for (const WhereNode& child : node.children) RETURN_IF_ERROR(PrepareScan(child, leaves, stop));
  if (node.kind != Kind::kLeaf) return absl::OkStatus();
  RETURN_IF_ERROR(members_[node.member]->Prepare());
  ScanLeaf leaf;
  leaf.positions = members_[node.member]->positions().single();
  leaf.ranges = node.set.run(0);
  if (leaf.ranges.size() > kMaxRanges && node.mode != Mode::kAbsent) {
    leaf.has_bitmap = true;
    RETURN_IF_ERROR(Bitmap(node, &leaf.bitmap, stop));
  } else {
    leaf.codes = members_[node.member]->version().base->Codes();
    for (PositionRange& range : leaf.ranges) {
      if (leaf.codes == nullptr) break;
      range = {leaf.codes->CodeOf(range.begin), leaf.codes->CodeOf(range.end)};
    }
  }
  leaves->push_back(std::move(leaf));
  return absl::OkStatus();
}

void WhereSearch::ScanBlock(const WhereNode& node, const std::vector<ScanLeaf>& leaves, RowId first,
                            uint8_t* pass, size_t* leaf, int level,
                            std::vector<uint8_t>* scratch) const {
  std::memset(pass, 0, kBlock);
  if (node.kind == Kind::kNothing) return;
  if (node.kind == Kind::kLeaf) {
    const ScanLeaf& of = leaves[(*leaf)++];
    const RowId end = std::min<RowId>(space_->base_rows() - first, kBlock);
    if (of.has_bitmap) {
      for (RowId i = 0; i < end; ++i) pass[i] = of.bitmap.Contains(first + i);
      return;
    }
    if (of.codes == nullptr) {
      InRanges(of.positions.data() + first, end, of.ranges, node.mode, pass);
    } else if (!of.codes->codes8().empty()) {
      InRanges(of.codes->codes8().data() + first, end, of.ranges, node.mode, pass);
    } else {
      InRanges(of.codes->codes16().data() + first, end, of.ranges, node.mode, pass);
    }
    return;
  }
  if (scratch->size() < static_cast<size_t>(level + 1) * kBlock) {
    scratch->resize(static_cast<size_t>(level + 1) * kBlock);
  }
  ScanBlock(node.children[0], leaves, first, pass, leaf, level, scratch);
  for (size_t i = 1; i < node.children.size(); ++i) {
    std::vector<uint8_t> deeper;  // of nested nodes, which are rare
    const bool is_leaf = node.children[i].kind == Kind::kLeaf;
    uint8_t* other = scratch->data() + static_cast<size_t>(level) * kBlock;
    if (!is_leaf) {
      deeper.resize(kBlock);
      other = deeper.data();
    }
    ScanBlock(node.children[i], leaves, first, other, leaf, level + 1, scratch);
    if (node.kind == Kind::kAnd) {
      And(other, pass);
    } else {
      Or(other, pass);
    }
  }
}

std::vector<RowId> WhereSearch::ChangedRows(const WhereNode& node) const {
  std::vector<bool> of_member(members_.size());
  MarkMembers(node, &of_member);
  std::vector<RowId> changed;
  for (size_t m = 0; m < of_member.size(); ++m) {
    if (!of_member[m]) continue;
    for (const RowId row : members_[m]->ChangedRows()) {
      changed.push_back(space_->FromMember(m, row));
    }
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

absl::Status WhereSearch::Scan(const WhereNode& node, uint64_t* count, std::vector<RowId>* rows,
                               const StopCondition& stop) const {
  std::vector<ScanLeaf> leaves;
  RETURN_IF_ERROR(PrepareScan(node, &leaves, stop));
  std::vector<RowId> changed = ChangedRows(node);
  size_t next = 0;
  *count = 0;
  std::vector<uint8_t> pass(kBlock), scratch;
  for (uint64_t first = 0; first < space_->base_rows(); first += kBlock) {
    RETURN_IF_ERROR(stop.Check());
    size_t leaf = 0;
    ScanBlock(node, leaves, static_cast<RowId>(first), pass.data(), &leaf, 0, &scratch);
    // Changed rows are tested separately.
    for (; next < changed.size() && changed[next] < first + kBlock &&
           changed[next] < space_->base_rows();
         ++next) {
      pass[changed[next] - first] = 0;
    }
    *count += Sum(pass.data());
    if (rows != nullptr) AppendRows(pass.data(), static_cast<RowId>(first), rows);
  }
  RETURN_IF_ERROR(Filter(node, &changed, stop));
  *count += changed.size();
  if (rows != nullptr) rows->insert(rows->end(), changed.begin(), changed.end());
  return absl::OkStatus();
}

}  // namespace cairn
