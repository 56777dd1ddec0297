#include "engine/route/query_sample.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "index/machine/splitmix.h"
#include "index/query/physical_key.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

constexpr int64_t kMaxNanoseconds = 4'000'000;
constexpr size_t kMaxBytes = size_t{8} << 20;
// Number of keys that are prefetched together, and between reads of the clock. It is smaller for
// long keys.
constexpr size_t kBlock = 32;

// Appends the run's keys at `positions`. If the run is empty, appends one zero key or empty
// string per position.
void AppendKeys(const SortedRun& run, absl::Span<const Position> positions, EncodedKeys* to) {
  if (!run.empty()) {
    return WithColumn(run, [&](const auto& column) {
      PrefetchKeys(column, run.size(), positions);
      for (const Position position : positions) column.Append(position, to);
    });
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    WithPhysicalKey(run.kind(), [&](auto type) { AppendKey(typename decltype(type)::type(), to); });
  }
}

size_t HeapBytes(const SortedRun& run, absl::Span<const Position> positions) {
  size_t bytes = 0;
  if (run.kind() == PhysicalType::kBytes && !run.empty()) {
    for (const Position position : positions) bytes += run.bytes()[position].size();
  }
  return bytes;
}

size_t BlockOf(const SortedRun& run) {
  if (run.kind() != PhysicalType::kBytes || run.empty()) return kBlock;
  const size_t key_bytes = run.bytes().offset(run.size()) / run.size();
  return std::clamp<size_t>(kMaxBytes / kBlock / (key_bytes + 1), 1, kBlock);
}

}  // namespace

QuerySample::QuerySample(const SortedRun& run, const std::function<int64_t()>& now_ns)
    : run_(run),
      points_(run.kind()),
      lower_(run.kind()),
      upper_(run.kind()),
      ascending_(run.kind()) {
  const size_t last = std::max<size_t>(run.size(), 1) - 1;
  Position block[kBlock];
  const auto positions = absl::MakeSpan(block, BlockOf(run));
  const auto draw = [&](size_t most, int64_t max_ns, absl::FunctionRef<size_t()> draw_block) {
    const int64_t start = now_ns();
    size_t drawn = 0, bytes = 0;
    do {
      bytes += draw_block();
      drawn += positions.size();
    } while (drawn < most && bytes < kMaxBytes && now_ns() - start < max_ns);
  };
  draw(kMaxKeys, kMaxNanoseconds, [&] {
    for (Position& position : positions) position = static_cast<Position>(Below(last + 1));
    return points_.Draw(run, positions);
  });
  draw(kMaxRanges, kMaxNanoseconds / 2, [&] {
    for (Position& position : positions) position = static_cast<Position>(Below(last + 1));
    const size_t bytes = lower_.Draw(run, positions);
    for (Position& position : positions) {
      position = static_cast<Position>(std::min(position + kRangeEntries, last));
    }
    return bytes + upper_.Draw(run, positions);
  });
  for (Column* column : {&points_, &lower_, &upper_}) column->batch = column->keys.Batch();
}

size_t QuerySample::Column::Draw(const SortedRun& run, absl::Span<const Position> positions) {
  AppendKeys(run, positions, &keys);
  drawn += positions.size();
  return HeapBytes(run, positions);
}

void QuerySample::Column::Repeat(size_t count) {
  if (count <= batch.size()) return;
  if (keys.kind() == PhysicalType::kBytes) {
    if (views.empty()) views.assign(batch.bytes().begin(), batch.bytes().end());
    for (size_t i = views.size(); i < count; ++i) views.push_back(views[i - drawn]);
    batch = views;
    return;
  }
  for (size_t i = batch.size(); i < count; ++i) {
    if (keys.kind() == PhysicalType::kU32) keys.AppendU32(keys.u32(i - drawn));
    if (keys.kind() == PhysicalType::kU64) keys.AppendU64(keys.u64(i - drawn));
  }
  batch = keys.Batch();
}

size_t QuerySample::Below(size_t n) {
  return static_cast<size_t>((NextRandom(&random_) >> 32) * uint64_t{n} >>
                             32);  // positions take 32 bits
}

KeyBatch QuerySample::Next(size_t count) {
  points_.Repeat(count);
  if (next_point_ + count > points_.batch.size()) next_point_ = 0;
  next_point_ += count;
  return points_.batch.Slice(next_point_ - count, count);
}

RangeBatch QuerySample::NextRanges(size_t count) {
  lower_.Repeat(count);
  upper_.Repeat(count);
  if (next_range_ + count > lower_.batch.size()) next_range_ = 0;
  next_range_ += count;
  const size_t first = next_range_ - count;
  return RangeBatch::HalfOpen(lower_.batch.Slice(first, count), upper_.batch.Slice(first, count));
}

KeyBatch QuerySample::NextAscending(size_t count, size_t of) {
  const size_t entries = std::max<size_t>(run_.size(), 1);
  const size_t window = of <= count ? entries : entries * count / of;  // positions that the batch
                                                                       // falls into
  const size_t first = Below(entries - window + 1);
  std::vector<Position> positions(count);
  for (size_t i = 0; i < count; ++i) {
    // Draws one position in each of `count` parts of the window.
    const size_t begin = window * i / count;
    const size_t end = window * (i + 1) / count;
    positions[i] = static_cast<Position>(
        std::min(first + begin + Below(std::max<size_t>(end - begin, 1)), entries - 1));
  }
  if (HeapBytes(run_, positions) > kMaxBytes) {
    long_keys_.clear();
    for (const Position position : positions) long_keys_.push_back(run_.bytes()[position]);
    return long_keys_;
  }
  ascending_.Clear(run_.kind());
  AppendKeys(run_, positions, &ascending_);
  return ascending_.Batch();
}

}  // namespace cairn
