#include "engine/where/group_columns.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_encoding.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Number of rows whose keys are read between two checks of the flag.
constexpr size_t kKeysOfRowsTogether = 4096;

// Appends one part of the key at a position of a run.
absl::Status AppendKeyPart(const KeyCodec& codec, const SortedRun& run, Position position,
                           size_t part, std::string* scratch, ColumnValues* values) {
  std::string packed;
  std::string_view bytes;
  if (run.kind() == PhysicalType::kBytes) {
    bytes = run.bytes()[position];
  } else {
    size_t width = 0;
    for (size_t i = 0; i < codec.parts().size(); ++i) width += PartLayout::Of(codec, i).width();
    AppendBigEndian(run.kind() == PhysicalType::kU32 ? run.u32()[position] : run.u64()[position],
                    width, &packed);
    bytes = packed;
  }
  scratch->clear();
  scratch->reserve(bytes.size());
  DataValue value;
  for (size_t i = 0; i <= part; ++i) {
    RETURN_IF_ERROR(TakePart(PartLayout::Of(codec, i), &bytes, &value, scratch));
  }
  return values->Append(value);
}

// The key values of a base with few distinct keys. Each key is decoded once.
class CodedKeys {
 public:
  CodedKeys(const GroupMember& member, size_t part, DataType type)
      : member_(member), part_(part), values_(type) {
    if (!member.positions().single().empty()) codes_ = member.version().base->Codes();
    if (codes_ != nullptr) at_.assign(codes_->keys(), kUnknown);
  }

  bool any() const { return codes_ != nullptr; }
  // Appends the value of a row of the base, whose entry is at `position`.
  absl::Status Append(RowId row, Position position, std::string* scratch, ColumnValues* values) {
    const size_t code = codes_->codes8().empty() ? codes_->codes16()[row] : codes_->codes8()[row];
    if (at_[code] == kUnknown) {
      at_[code] = static_cast<uint32_t>(values_.size());
      RETURN_IF_ERROR(AppendKeyPart(member_.codec(), member_.delta().base_run, position, part_,
                                    scratch, &values_));
    }
    values->AppendFrom(values_, at_[code], 1);
    return absl::OkStatus();
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  const GroupMember& member_;
  const size_t part_;
  std::shared_ptr<const RowCodes> codes_;
  std::vector<uint32_t> at_;  // index in values_, by code
  ColumnValues values_;
};

// Returns whether every row of a member's base has exactly one entry, and nothing has changed.
bool HasAllRows(const GroupMember& member) {
  const Delta& delta = member.delta();
  return delta.empty() && !member.positions().single().empty() &&
         delta.base_run.size() == delta.base_rows.rows();
}

}  // namespace

absl::StatusOr<GroupColumns::Column> GroupColumns::Find(std::string_view name) const {
  std::string there;
  Column column;
  size_t found = 0;
  // Included columns have precedence over keys.
  for (size_t i = 0; i < members_.size(); i += members_[i]->shards()) {
    const absl::Span<const ColumnSchema> included = members_[i]->delta().base_columns.columns();
    for (size_t c = 0; c < included.size(); ++c) {
      const std::string full = absl::StrCat(members_[i]->name(), ".", included[c].name);
      absl::StrAppend(&there, there.empty() ? "" : ", ", full);
      if (name != included[c].name && name != full) continue;
      if (name == full) return Column{i, false, c, included[c].type};
      if (found++ == 0) column = {i, false, c, included[c].type};
    }
  }
  if (found == 1) return column;
  for (size_t i = 0; i < members_.size() && found == 0; i += members_[i]->shards()) {
    const absl::Span<const DataType> parts = members_[i]->codec().parts();
    for (size_t p = 0; p < parts.size(); ++p) {
      const std::string full = parts.size() == 1
                                   ? members_[i]->name()
                                   : absl::StrFormat("%s.part%d", members_[i]->name(), p + 1);
      absl::StrAppend(&there, there.empty() ? "" : ", ", full);
      if (name == full) return Column{i, true, p, parts[p]};
    }
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s column %s; columns: %s",
                      found == 0 ? "no index of the group includes or has the key of a"
                                 : "several indexes include a",
                      Quoted(name), there));
}

absl::Status GroupColumns::Read(absl::Span<const RowId> rows, const Column& column,
                                const StopCondition& stop, ColumnValues* values) const {
  RETURN_IF_ERROR(stop.Check());
  values->Clear(column.type);
  for (size_t s = 0; s < members_[column.member]->shards(); ++s) {
    RETURN_IF_ERROR(members_[column.member + s]->Prepare());
  }
  return column.is_key ? ReadKeys(rows, column, stop, values) : ReadIncluded(rows, column, values);
}

absl::Status GroupColumns::ReadIncluded(absl::Span<const RowId> rows, const Column& column,
                                        ColumnValues* values) const {
  const GroupMember& first = *members_[column.member];
  const size_t shards = first.shards();
  const absl::Span<const size_t> number = absl::MakeConstSpan(&column.number, 1);
  if (shards == 1 && HasAllRows(first) && space_->IsIdentity(column.member) &&
      space_->end_row() == first.delta().base_rows.rows()) {
    return first.delta().Included(rows, number, absl::MakeSpan(values, 1));
  }
  // The values of a row are not kept current when it has no key in the index any more. If several
  // shards have keys of a row, they have the same values of it.
  std::vector<std::vector<RowId>> known(shards);
  std::vector<size_t> shard_of(rows.size(), shards);  // `shards`: none
  for (size_t s = 0; s < shards; ++s) {
    const GroupMember& shard = *members_[column.member + s];
    const EntrySet none(shard.delta());
    known[s].reserve(rows.size() / shards);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (shard_of[i] != shards) continue;
      const RowId local = space_->ToMember(column.member + s, rows[i]);
      if (local == kNoRow || !shard.Look(local, none).any) continue;
      shard_of[i] = s;
      known[s].push_back(local);
    }
  }
  std::vector<ColumnValues> of_shards(shards, ColumnValues(values->type()));
  for (size_t s = 0; s < shards; ++s) {
    RETURN_IF_ERROR(members_[column.member + s]->delta().Included(
        known[s], number, absl::MakeSpan(&of_shards[s], 1)));
    if (known[s].size() != rows.size()) continue;
    *values = std::move(of_shards[s]);
    return absl::OkStatus();
  }
  std::vector<size_t> next(shards);
  for (const size_t s : shard_of) {
    if (s == shards) {
      values->AppendNull();
    } else {
      values->AppendFrom(of_shards[s], next[s]++, 1);
    }
  }
  return absl::OkStatus();
}

absl::Status GroupColumns::ReadKeys(absl::Span<const RowId> rows, const Column& column,
                                    const StopCondition& stop, ColumnValues* values) const {
  const size_t shards = members_[column.member]->shards();
  std::vector<CodedKeys> coded;
  for (size_t s = 0; s < shards; ++s) {
    coded.emplace_back(*members_[column.member + s], column.number, column.type);
  }
  std::string scratch;
  RowEntries::Places places;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % kKeysOfRowsTogether == 0) RETURN_IF_ERROR(stop.Check());
    const RowId row = rows[i];
    size_t shard = 0;  // the shard that has the entry
    RowId local = kNoRow;
    places.clear();
    for (size_t s = 0; s < shards; ++s) {
      const RowId there = space_->ToMember(column.member + s, row);
      if (there == kNoRow) continue;
      const size_t before = places.size();
      members_[column.member + s]->AppendPlaces(there, &places);
      if (places.size() > before) shard = s, local = there;
    }
    if (places.empty()) {
      values->AppendNull();
      continue;
    }
    if (places.size() > 1) return SeveralKeys(column.member, row);
    const GroupMember& member = *members_[column.member + shard];
    const auto [run, position] = places[0];
    if (run == 0 && coded[shard].any()) {
      RETURN_IF_ERROR(coded[shard].Append(local, position, &scratch, values));
    } else {
      const Delta& delta = member.delta();
      RETURN_IF_ERROR(AppendKeyPart(member.codec(),
                                    run == 0 ? delta.base_run : delta.parts[run - 1].segment->run(),
                                    position, column.number, &scratch, values));
    }
  }
  return absl::OkStatus();
}

absl::Status GroupColumns::SeveralKeys(size_t member, RowId row) const {
  StringList keys;
  RETURN_IF_ERROR(space_->PrimaryKeys(absl::MakeConstSpan(&row, 1), &keys));
  return absl::InvalidArgumentError(absl::StrFormat(
      "index '%s' has several keys of row %s, so the row has no single value; include a column "
      "instead",
      members_[member]->name(), Quoted(keys[0])));
}

}  // namespace cairn
