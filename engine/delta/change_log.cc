#include "engine/delta/change_log.h"

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

#include "engine/util/sorted_order.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {
namespace {

// Appends rows [begin, end) of `from`.
template <typename Key>
void AppendRows(const KeysOfRows& from, size_t begin, size_t end, KeysOfRows* to) {
  if (begin == end) return;
  const uint64_t first = from.KeysBegin(begin), last = from.key_ends[end - 1];
  const uint64_t offset = to->keys.size() - first;
  if constexpr (std::is_same_v<Key, uint32_t>) {
    std::copy_n(from.keys.u32().data() + first, last - first, to->keys.ExtendU32(last - first));
  } else if constexpr (std::is_same_v<Key, uint64_t>) {
    std::copy_n(from.keys.u64().data() + first, last - first, to->keys.ExtendU64(last - first));
  } else {
    for (uint64_t k = first; k < last; ++k) to->keys.AppendBytes(from.keys.bytes(k));
  }
  for (size_t i = begin; i < end; ++i) {
    to->rows.push_back(from.rows[i]);
    to->key_ends.push_back(from.key_ends[i] + offset);
  }
}

KeysOfRows ByRow(KeysOfRows changes) {
  if (std::is_sorted(changes.rows.begin(), changes.rows.end())) return changes;
  KeysOfRows sorted(changes.keys.kind());
  sorted.rows.reserve(changes.rows.size());
  sorted.key_ends.reserve(changes.rows.size());
  const std::vector<uint32_t> order = SortedOrder<uint32_t>(changes.rows);
  WithPhysicalKey(changes.keys.kind(), [&](auto type) {
    for (uint32_t i : order) AppendRows<typename decltype(type)::type>(changes, i, i + 1, &sorted);
  });
  return sorted;
}

// Returns the index of the first of `rows`, from index `begin` on, that is not less than `row`.
size_t FirstNotBefore(RowId row, const std::vector<RowId>& rows, size_t begin) {
  return Gallop(begin, rows.size(), [&](size_t i) { return rows[i] < row; });
}

// Merges two sets of changes, both by row. If a row is in both, the later keys win.
KeysOfRows Merged(const KeysOfRows& earlier, const KeysOfRows& later) {
  KeysOfRows merged(later.keys.kind());
  merged.rows.reserve(earlier.rows.size() + later.rows.size());
  merged.key_ends.reserve(earlier.rows.size() + later.rows.size());
  WithPhysicalKey(later.keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    size_t i = 0, j = 0;
    while (j < later.rows.size()) {
      const size_t earlier_end = FirstNotBefore(later.rows[j], earlier.rows, i);
      AppendRows<Key>(earlier, i, earlier_end, &merged);
      i = earlier_end;
      if (i < earlier.rows.size() && earlier.rows[i] == later.rows[j]) ++i;
      const size_t later_end = i < earlier.rows.size()
                                   ? FirstNotBefore(earlier.rows[i], later.rows, j)
                                   : later.rows.size();
      AppendRows<Key>(later, j, later_end, &merged);
      j = later_end;
    }
    AppendRows<Key>(earlier, i, earlier.rows.size(), &merged);
  });
  return merged;
}

uint64_t BytesOf(const KeysOfRows& changes) {
  uint64_t bytes = changes.rows.size() * (sizeof(RowId) + sizeof(uint64_t));
  const size_t keys = changes.keys.size();
  if (changes.keys.kind() != PhysicalType::kBytes) {
    return bytes +
           keys * (changes.keys.kind() == PhysicalType::kU32 ? sizeof(uint32_t) : sizeof(uint64_t));
  }
  for (size_t i = 0; i < keys; ++i) bytes += changes.keys.bytes(i).size() + sizeof(uint64_t);
  return bytes;
}

}  // namespace

std::shared_ptr<const ChangeLog::Place> ChangeLog::Begin() {
  std::shared_ptr<ChangeLog> log(new ChangeLog());
  {
    const MutexLock lock(&log->mutex_);
    log->steps_.push_back({0, true, 0, nullptr});
  }
  return std::make_shared<const Place>(std::move(log), 0);
}

std::shared_ptr<const ChangeLog::Place> ChangeLog::Append(const Place& last, KeysOfRows changes) {
  ChangeLog& log = *last.log_;
  auto step = std::make_shared<const KeysOfRows>(ByRow(std::move(changes)));
  const uint64_t bytes = BytesOf(*step);
  uint64_t number;
  {
    const MutexLock lock(&log.mutex_);
    number = ++log.last_number_;
    log.steps_.push_back({number, true, bytes, std::move(step)});
  }
  // If this throws, Truncate removes the step.
  auto place = std::make_shared<const Place>(last.log_, number);
  log.MakeOneOfSmall();
  return place;
}

void ChangeLog::MakeOneOfSmall() {
  MutexLock lock(&mutex_);
  // Visits the steps from the last one to the second one. The first one has no changes.
  for (size_t i = steps_.size(); --i > 1;) {
    if (steps_[i - 1].is_place) continue;
    const auto earlier = steps_[i - 1].changes, later = steps_[i].changes;
    if (earlier->rows.size() > later->rows.size()) continue;
    // Concurrently, readers may release places, which removes steps at the beginning.
    const uint64_t earlier_number = steps_[i - 1].number;
    lock.Unlock();
    auto one = std::make_shared<const KeysOfRows>(Merged(*earlier, *later));
    const uint64_t bytes = BytesOf(*one);
    lock.Lock();
    const auto at = Find(earlier_number);
    if (at == steps_.end() || at == steps_.begin()) return;
    std::next(at)->changes = std::move(one);
    std::next(at)->bytes = bytes;
    i = static_cast<size_t>(at - steps_.begin()) + 1;
    steps_.erase(at);
  }
}

std::vector<ChangeLog::Step>::iterator ChangeLog::Find(uint64_t number) {
  const auto at = std::lower_bound(steps_.begin(), steps_.end(), number,
                                   [](const Step& step, uint64_t n) { return step.number < n; });
  return at != steps_.end() && at->number == number ? at : steps_.end();
}

void ChangeLog::Release(uint64_t number) {
  // Changes are freed outside the lock.
  std::shared_ptr<const KeysOfRows> freed;
  for (bool more = true; more; freed = nullptr) {
    const MutexLock lock(&mutex_);
    if (const auto at = Find(number); at != steps_.end()) at->is_place = false;
    more = steps_.size() > 1 && !steps_.front().is_place;
    if (!more) continue;
    steps_.erase(steps_.begin());
    freed.swap(steps_.front().changes);
    steps_.front().bytes = 0;
  }
}

void ChangeLog::RemoveBehind(uint64_t number) {
  const MutexLock lock(&mutex_);
  while (steps_.back().number > number) steps_.pop_back();
}

uint64_t ChangeLog::memory_bytes() const {
  const MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const Step& step : steps_) bytes += step.bytes;
  return bytes;
}

std::vector<std::shared_ptr<const KeysOfRows>> ChangeLog::StepsBetween(uint64_t since,
                                                                       uint64_t until) {
  const MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<const KeysOfRows>> steps;
  for (auto at = Find(since); at != steps_.end() && at->number < until;) {
    steps.push_back((++at)->changes);
  }
  return steps;
}

KeysOfRows ChangeLog::Between(const Place& since, const Place& until, PhysicalType kind) {
  const auto steps = since.log_->StepsBetween(since.number_, until.number_);
  if (steps.empty()) return KeysOfRows(kind);
  KeysOfRows between = *steps.back();
  for (size_t i = steps.size() - 1; i-- > 0;) between = Merged(*steps[i], between);
  return between;
}

uint64_t ChangeLog::MostRowsBetween(const Place& since, const Place& until) {
  uint64_t rows = 0;
  for (const auto& step : since.log_->StepsBetween(since.number_, until.number_)) {
    rows += step->rows.size();
  }
  return rows;
}

}  // namespace cairn
