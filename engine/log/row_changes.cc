#include "engine/log/row_changes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/extract/entity.h"
#include "index/sort/sort_entry.h"

namespace cairn {

void SetRow(const RowChange& change, std::vector<ColumnView>* scratch, RowView* row) {
  *row = {change.key, change.value, {}};
  if (change.kind != RowChangeKind::kPutEntity) [[likely]]
    return;
  DecodeEntity(change.value, scratch).IgnoreError();  // checked by RowChanges::PutEntity
  const bool has_default = !scratch->empty() && scratch->front().name.empty();
  row->value = has_default ? scratch->front().value : std::string_view();
  if (!has_default || scratch->size() > 1) row->columns = *scratch;
}

RowChanges& RowChanges::operator=(RowChanges&& other) noexcept {
  memory_ = std::move(other.memory_);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, 0);
  entries_ = std::move(other.entries_);
  other.entries_.clear();
  owners_ = std::move(other.owners_);
  other.owners_.clear();
  shared_bytes_ = std::exchange(other.shared_bytes_, 0);
  return *this;
}

absl::Status RowChanges::PutEntity(std::string_view key, std::string_view entity,
                                   const Owner& owner) {
  const absl::Status s = DecodeEntity(entity, &columns_);
  if (s.ok()) {
    AddOwned(RowChangeKind::kPutEntity, key, entity, owner);
  } else if (absl::IsUnimplemented(s)) {
    LookUp(key);
  } else {
    return s;
  }
  return absl::OkStatus();
}

void RowChanges::Append(const RowChanges& later) {
  Reserve(later.size_);
  owners_.insert(owners_.end(), later.owners_.begin(), later.owners_.end());
  for (size_t i = 0; i < later.size(); ++i) {
    const RowChange change = later[i];
    if (later.entries_[i].is_shared) {
      AddShared(change.kind, change.key, change.value);
    } else {
      Add(change.kind, change.key, change.value);
    }
  }
}

void RowChanges::Clear() {
  size_ = 0;
  entries_.clear();
  owners_.clear();
  shared_bytes_ = 0;
}

RowChange RowChanges::operator[](size_t i) const {
  const Entry& entry = entries_[i];
  const std::string_view key = KeyRecord::GetKey(memory_.get() + entry.offset);
  const char* value = key.data() + key.size();
  if (entry.is_shared) [[unlikely]]
    std::memcpy(&value, value, sizeof value);
  return {entry.kind, key, std::string_view(value, entry.value_size)};
}

void RowChanges::AddShared(RowChangeKind kind, std::string_view key, std::string_view value) {
  const char* const address = value.data();
  Add(kind, key, std::string_view(reinterpret_cast<const char*>(&address), sizeof address));
  entries_.back().value_size = static_cast<uint32_t>(value.size());
  entries_.back().is_shared = true;
  shared_bytes_ += value.size();
}

void RowChanges::Add(RowChangeKind kind, std::string_view key, std::string_view value) {
  Reserve(KeyRecord::Bytes(key.size()) + value.size());
  entries_.push_back({size_, static_cast<uint32_t>(value.size()), kind, false});
  KeyRecord::Write(key, static_cast<uint32_t>(entries_.size() - 1), memory_.get() + size_);
  size_ += KeyRecord::Bytes(key.size());
  if (!value.empty()) std::memcpy(memory_.get() + size_, value.data(), value.size());
  size_ += value.size();
}

void RowChanges::Reserve(size_t more) {
  static_assert(kBytesPerChange == sizeof(Entry) + KeyRecord::kHeaderBytes);
  const size_t needed = size_ + more + KeyRecord::kSlack;
  if (needed <= capacity_) [[likely]]
    return;
  const size_t capacity = std::max(needed, 2 * capacity_);
  std::unique_ptr<char[]> memory(new char[capacity]);
  if (size_ > 0) std::memcpy(memory.get(), memory_.get(), size_);
  memory_ = std::move(memory);
  capacity_ = capacity;
}

}  // namespace cairn
