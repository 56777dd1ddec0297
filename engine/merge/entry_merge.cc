#include "engine/merge/entry_merge.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/machine/cold_reads.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {
namespace {

// Number of entries per piece, including removed ones. It is small enough for a piece to be still
// in the L2 cache when it is written.
constexpr uint64_t kPieceEntries = uint64_t{1} << 15;
// The base is prefetched from disk this many entries ahead of the claimed piece.
constexpr uint64_t kAheadEntries = uint64_t{1} << 20;
// Maximum number of pieces that wait to be written, per thread.
constexpr size_t kPiecesPerThread = 2;

size_t PiecesFor(int threads) {
  return threads <= 1 ? 1 : static_cast<size_t>(threads) * kPiecesPerThread;
}

template <typename Key>
class TypedEntryMerge final : public EntryMerge {
 public:
  TypedEntryMerge(const Delta& delta, const MergedRowIds& ids, int threads, MergePace* pace,
                  EntrySink* sink)
      : EntryMerge(PiecesFor(threads)),
        base_(ColumnOf<Key>(delta.base_run)),
        base_rows_(delta.base_run.row_ids()),
        removed_(delta.removed),
        rows_(delta.base_rows.rows()),
        ids_(ids),
        pace_(pace),
        sink_(sink),
        pieces_(PiecesFor(threads)) {
    for (size_t i = delta.parts.size(); i-- > 0;) MergePart(delta.parts[i], *delta.rows, &added_);
    for (DeltaEntry<Key>& entry : added_) entry.row = ids[entry.row];
  }

  absl::Status BeginSink() {
    return sink_->Begin(base_rows_.size() - removed_.size() + added_.size(), KeyBytes());
  }

 private:
  // A position in the merged sequence: before entry `base` of the base and entry `added` of the
  // added ones.
  struct Place {
    uint64_t base = 0;
    uint64_t added = 0;
  };
  struct Piece {
    Place begin, end;
    std::vector<Key> keys;
    std::vector<RowId> row_ids;
    size_t size = 0;  // number of entries in keys and row_ids
    absl::Status status;
  };

  uint64_t KeyBytes() const {
    if constexpr (std::is_same_v<Key, std::string_view>) {
      const uint64_t end = base_rows_.size();
      uint64_t bytes = end == 0 ? 0 : base_.keys.offset(end);
      for (uint64_t p = removed_.FirstMember(0, end); p < end;
           p = removed_.FirstMember(p + 1, end)) {
        bytes -= base_[p].size();
      }
      for (const auto& entry : added_) bytes += entry.key.size();
      return bytes;
    } else {
      return (base_rows_.size() - removed_.size() + added_.size()) * sizeof(Key);
    }
  }

  // Returns whether entry `p` of the base precedes `entry`. A removed row has the new id of the
  // next remaining row. So a removed entry may be at another position among entries of its key, but
  // always at the same one.
  bool BaseFirst(uint64_t p, const DeltaEntry<Key>& entry) const {
    const std::strong_ordering order = base_[p] <=> entry.key;
    if (order != 0) return order < 0;
    return base_rows_[p] < rows_ && ids_[base_rows_[p]] < entry.row;
  }

  bool Claim(size_t slot) override {
    const uint64_t base_left = base_rows_.size() - next_.base;
    const uint64_t added_left = added_.size() - next_.added;
    if (base_left + added_left == 0 || pace_->stopped()) return false;
    Piece* const piece = &pieces_[slot];
    const uint64_t size = std::min(kPieceEntries, base_left + added_left);
    // The number of entries of the base among the next `size` entries.
    const uint64_t low = PartitionPoint(
        size - std::min(size, added_left), std::min(size, base_left), [&](uint64_t count) {
          return BaseFirst(next_.base + count, added_[next_.added + size - count - 1]);
        });
    piece->begin = next_;
    next_ = {next_.base + low, next_.added + size - low};
    piece->end = next_;
    ReadAhead(piece->begin.base, piece->end.base);
    return true;
  }

  void ReadAhead(uint64_t begin, uint64_t end) const {
    const uint64_t entries = base_rows_.size();
    const uint64_t from = begin == 0 ? 0 : std::min(entries, begin + kAheadEntries);
    const uint64_t to = std::min(entries, end + kAheadEntries);
    WillRead(base_rows_.data() + from, (to - from) * sizeof(RowId));
    if constexpr (std::is_same_v<Key, std::string_view>) {
      const auto& keys = base_.keys;
      if (from == to) return;
      if (keys.offsets32() != nullptr) {
        WillRead(keys.offsets32() + from, (to - from) * sizeof(uint32_t));
      } else {
        WillRead(keys.offsets64() + from, (to - from) * sizeof(uint64_t));
      }
    } else {
      WillRead(base_.keys.data() + from, (to - from) * sizeof(Key));
    }
  }

  void Make(size_t slot) override {
    Piece* const piece = &pieces_[slot];
    const auto [base, added] = piece->begin;
    const auto [base_end, added_end] = piece->end;
    const uint64_t most = base_end - base + added_end - added;
    if (piece->keys.size() < most) {
      piece->keys.resize(most);
      piece->row_ids.resize(most);
    }
    piece->size = 0;
    piece->status = CheckRows(base, base_end);
    if (!piece->status.ok()) return;
    uint64_t p = base;
    for (uint64_t i = added; i < added_end; ++i) {
      const uint64_t to =
          Gallop(p, base_end, [&](uint64_t at) { return BaseFirst(at, added_[i]); });
      Copy(p, to, piece);
      p = to;
      piece->keys[piece->size] = added_[i].key;
      piece->row_ids[piece->size++] = added_[i].row;
    }
    Copy(p, base_end, piece);
  }

  // Appends the base's remaining entries in [begin, end).
  void Copy(uint64_t begin, uint64_t end, Piece* piece) const {
    while ((begin = removed_.FirstAbsent(begin, end)) < end) {
      const uint64_t stop = removed_.FirstMember(begin, end);
      const size_t size = stop - begin;
      Key* const keys = piece->keys.data() + piece->size;
      if constexpr (std::is_same_v<Key, std::string_view>) {
        for (size_t i = 0; i < size; ++i) keys[i] = base_[begin + i];
      } else {
        std::memcpy(keys, base_.keys.data() + begin, size * sizeof(Key));
      }
      RowId* const row_ids = piece->row_ids.data() + piece->size;
      for (size_t i = 0; i < size; ++i) row_ids[i] = ids_[base_rows_[begin + i]];
      piece->size += size;
      begin = stop;
    }
  }

  absl::Status CheckRows(uint64_t begin, uint64_t end) const {
    RowId highest = 0;
    for (uint64_t p = begin; p < end; ++p) highest = std::max(highest, base_rows_[p]);
    if (highest < rows_ || begin == end) return absl::OkStatus();
    return absl::DataLossError(absl::StrFormat(
        "one of the entries %d to %d of the base has row %d, but there are only %d rows", begin,
        end - 1, highest, rows_));
  }

  void Take(size_t slot) override {
    if (status_.ok()) status_ = Write(pieces_[slot]);
    if (!status_.ok()) pace_->Stop();
  }

  absl::Status Write(const Piece& piece) {
    if (!piece.status.ok()) return piece.status;
    const auto keys = absl::MakeConstSpan(piece.keys).first(piece.size);
    uint64_t bytes = piece.size * sizeof(RowId);
    if constexpr (std::is_same_v<Key, std::string_view>) {
      for (std::string_view key : keys) bytes += key.size() + sizeof(uint32_t);
    } else {
      bytes += piece.size * sizeof(Key);
    }
    RETURN_IF_ERROR(pace_->Step(piece.size, bytes));
    return sink_->Append(keys, absl::MakeConstSpan(piece.row_ids).first(piece.size));
  }

  const decltype(ColumnOf<Key>(SortedRun())) base_;
  const absl::Span<const RowId> base_rows_;
  const PositionSet& removed_;
  const uint64_t rows_;  // of the base
  const MergedRowIds& ids_;
  MergePace* const pace_;
  EntrySink* const sink_;
  std::vector<DeltaEntry<Key>> added_;  // with their rows' new ids
  std::vector<Piece> pieces_;           // by slot
  Place next_;                          // where the next piece begins
};

}  // namespace

absl::StatusOr<std::unique_ptr<EntryMerge>> EntryMerge::Begin(const Delta& delta,
                                                              const MergedRowIds& ids, int threads,
                                                              MergePace* pace, EntrySink* sink) {
  return WithPhysicalKey(
      delta.base_run.kind(), [&](auto type) -> absl::StatusOr<std::unique_ptr<EntryMerge>> {
        using Key = typename decltype(type)::type;
        auto merge = std::make_unique<TypedEntryMerge<Key>>(delta, ids, threads, pace, sink);
        RETURN_IF_ERROR(merge->BeginSink());
        return merge;
      });
}

}  // namespace cairn
