// WhereSearch::Scan: rows in their order, by where their entries are.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/where/where_search.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

// Rows of a block: bytes of each leaf, which stay in the first-level cache.
constexpr size_t kBlock = 2048;
// Of more ranges than this a leaf is made a bitmap first.
constexpr size_t kMostRanges = 4;

// pass[i] = whether position i is in a range, or was; of a fixed number, for the compiler to use
// wide registers.
void InRange(const Position* positions, PositionRange range, uint8_t* pass) {
  const Position size = range.end - range.begin;
  for (size_t i = 0; i < kBlock; ++i) {
    pass[i] |= static_cast<uint8_t>(positions[i] - range.begin < size);
  }
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

void AppendRows(const uint8_t* pass, RowId first, std::vector<RowId>* rows) {
  for (size_t i = 0; i < kBlock; i += 8) {
    uint64_t some = 0;
    std::memcpy(&some, pass + i, 8);
    // The lowest bits of the bytes, each 0 or 1, side by side.
    const uint64_t bits = some * uint64_t{0x0102040810204080} >> 56;
    for (uint64_t left = bits; left != 0; left &= left - 1) {
      rows->push_back(first + static_cast<RowId>(i + static_cast<size_t>(std::countr_zero(left))));
    }
  }
}

}  // namespace

// What a leaf's block is read from.
struct WhereSearch::ScanLeaf {
  absl::Span<const Position> positions;  // of the base's rows
  std::vector<PositionRange> ranges;
  bool negated = false;  // of rows with entries
  bool has_bitmap = false;
  RowBitmap bitmap;  // in place of ranges
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

absl::Status WhereSearch::PrepareScan(const WhereNode& node, std::vector<ScanLeaf>* leaves) const {
  for (const WhereNode& child : node.children) RETURN_IF_ERROR(PrepareScan(child, leaves));
  if (node.kind != Kind::kLeaf) return absl::OkStatus();
  RETURN_IF_ERROR(members_[node.member]->Prepare());
  ScanLeaf leaf;
  leaf.positions = members_[node.member]->positions().single();
  leaf.ranges = node.set.run(0);
  leaf.negated = node.mode == Mode::kNoneOf;
  if (node.mode == Mode::kAbsent) {
    leaf.ranges = {{RowPositions::kNone, RowPositions::kNone}};  // the one position of no entry
  } else if (leaf.ranges.size() > kMostRanges) {
    leaf.has_bitmap = true;
    RETURN_IF_ERROR(Bitmap(node, &leaf.bitmap));
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
    const Position* positions = of.positions.data() + first;
    Position last[kBlock];
    if (end < kBlock) {
      // Behind the last row there is none, which no leaf may take for one without entries.
      std::copy_n(positions, end, last);
      std::fill(last + end, last + kBlock, RowPositions::kNone);
      positions = last;
    }
    if (node.mode == Mode::kAbsent) {
      for (size_t i = 0; i < kBlock; ++i) pass[i] = positions[i] == RowPositions::kNone;
    } else {
      for (const PositionRange& range : of.ranges) InRange(positions, range, pass);
      if (of.negated) {
        for (size_t i = 0; i < kBlock; ++i) {
          pass[i] = static_cast<uint8_t>((pass[i] ^ 1) & (positions[i] != RowPositions::kNone));
        }
      }
    }
    if (end < kBlock) std::memset(pass + end, 0, kBlock - end);
    return;
  }
  if (scratch->size() < static_cast<size_t>(level + 1) * kBlock) {
    scratch->resize(static_cast<size_t>(level + 1) * kBlock);
  }
  ScanBlock(node.children[0], leaves, first, pass, leaf, level, scratch);
  for (size_t i = 1; i < node.children.size(); ++i) {
    std::vector<uint8_t> deeper;  // of nodes below, which are rare
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
  std::vector<RowId> changed;
  if (node.kind == Kind::kLeaf) {
    for (const RowId row : members_[node.member]->ChangedRows()) {
      changed.push_back(space_->FromMember(node.member, row));
    }
  }
  for (const WhereNode& child : node.children) {
    const std::vector<RowId> more = ChangedRows(child);
    changed.insert(changed.end(), more.begin(), more.end());
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

absl::Status WhereSearch::Scan(const WhereNode& node, uint64_t* count,
                               std::vector<RowId>* rows) const {
  std::vector<ScanLeaf> leaves;
  RETURN_IF_ERROR(PrepareScan(node, &leaves));
  std::vector<RowId> changed = ChangedRows(node);
  size_t next = 0;
  *count = 0;
  std::vector<uint8_t> pass(kBlock), scratch;
  for (uint64_t first = 0; first < space_->base_rows(); first += kBlock) {
    size_t leaf = 0;
    ScanBlock(node, leaves, static_cast<RowId>(first), pass.data(), &leaf, 0, &scratch);
    // Rows that changed are asked for by themselves.
    for (; next < changed.size() && changed[next] < first + kBlock &&
           changed[next] < space_->base_rows();
         ++next) {
      pass[changed[next] - first] = 0;
    }
    *count += Sum(pass.data());
    if (rows != nullptr) AppendRows(pass.data(), static_cast<RowId>(first), rows);
  }
  Filter(node, &changed);
  *count += changed.size();
  if (rows != nullptr) rows->insert(rows->end(), changed.begin(), changed.end());
  return absl::OkStatus();
}

}  // namespace cairn
