#include "engine/delta/delta_tuples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

constexpr size_t kMinPlaces = 64;

size_t HashOf(RowId row) {
  return static_cast<size_t>((row * uint64_t{0x9E3779B97F4A7C15}) >> 32);
}

}  // namespace

// Returns the row's slot, or the free slot for it.
std::atomic<uint64_t>& DeltaTuples::Table::PlaceOf(RowId row) const {
  for (size_t i = HashOf(row) & mask;; i = (i + 1) & mask) {
    const uint64_t at = places[i].load(std::memory_order_acquire);
    if (at == 0 || at >> 32 == uint64_t{row} + 1) return places[i];
  }
}

DeltaTuples::DeltaTuples() {
  tables_.push_back(std::make_unique<Table>(kMinPlaces));
  table_ = tables_.back().get();
}

DeltaTuples::DeltaTuples(std::shared_ptr<const DeltaTuples> parent, uint32_t end)
    : first_(end), parent_(std::move(parent)) {
  tables_.push_back(std::make_unique<Table>(kMinPlaces));
  table_ = tables_.back().get();
}

std::optional<std::string_view> DeltaTuples::Find(RowId row, uint32_t end) const {
  const Table& table = *table_.load(std::memory_order_acquire);
  const uint64_t place = table.PlaceOf(row).load(std::memory_order_acquire);
  uint32_t tuple = place == 0 ? kNone : static_cast<uint32_t>(place);
  while (tuple != kNone && tuple >= end) tuple = tuples_[tuple - first_].previous;
  if (tuple != kNone) {
    const Tuple& found = tuples_[tuple - first_];
    return std::string_view(found.bytes, found.size);
  }
  if (parent_ != nullptr) return parent_->Find(row, std::min(end, first_));
  return std::nullopt;
}

void DeltaTuples::Append(RowId row, std::string_view tuple) {
  if (2 * (tables_.back()->used + 1) > tables_.back()->mask + 1) Grow();
  tuples_.MakeRoom();
  const std::string_view copy = heap_.Append(tuple);
  Table& table = *tables_.back();
  std::atomic<uint64_t>& place = table.PlaceOf(row);
  const uint64_t before = place.load(std::memory_order_relaxed);
  table.used += before == 0 ? 1 : 0;
  const uint32_t number = end();
  tuples_.Append({copy.data(), static_cast<uint32_t>(copy.size()), row,
                  before == 0 ? kNone : static_cast<uint32_t>(before)});
  place.store(Place(row, number), std::memory_order_release);
  uint64_t bytes = tuples_.memory_bytes() + heap_.memory_bytes();
  for (const auto& some : tables_) bytes += (some->mask + 1) * sizeof(uint64_t);
  memory_bytes_.store(bytes, std::memory_order_relaxed);
}

absl::StatusOr<bool> DeltaTuples::Give(RowId row, std::string_view tuple) {
  if (Find(row) == tuple) return false;
  if (end() >= kMax) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the index has %d tuples of changed rows, the maximum; compact the index", kMax));
  }
  Append(row, tuple);
  return true;
}

void DeltaTuples::TakeBack(uint32_t end) {
  for (uint32_t i = this->end(); i-- > end;) {
    const Tuple& tuple = tuples_[i - first_];
    std::atomic<uint64_t>& place = tables_.back()->PlaceOf(tuple.row);
    if (static_cast<uint32_t>(place.load(std::memory_order_relaxed)) != i) continue;
    place.store(Place(tuple.row, tuple.previous), std::memory_order_release);
  }
}

void DeltaTuples::Grow() {
  const Table& old = *tables_.back();
  auto table = std::make_unique<Table>(2 * (old.mask + 1));
  for (size_t i = 0; i <= old.mask; ++i) {
    const uint64_t at = old.places[i].load(std::memory_order_relaxed);
    if (at == 0) continue;
    table->PlaceOf(static_cast<RowId>((at >> 32) - 1)).store(at, std::memory_order_relaxed);
    ++table->used;
  }
  tables_.push_back(std::move(table));
  table_.store(tables_.back().get(), std::memory_order_release);
}

}  // namespace cairn
