#include "engine/version/routed_base.h"

#include <string_view>
#include <utility>

#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// The newest scan's part in what the next one is expected to find.
constexpr double kWeightOfLastScan = 0.25;

// The base's file number, which no other base of the index has.
uint64_t BaseNumber(const Manifest& manifest) {
  std::string_view prefix, extension;
  uint64_t number = 0;
  const ManifestFile* const file = manifest.FindFile("base");
  return file != nullptr && ParseIndexFileName(file->name, &prefix, &number, &extension) ? number
                                                                                         : 0;
}

uint64_t BytesOf(const KeyBatch& keys) {
  if (keys.kind() != KeyKind::kBytes) {
    return keys.size() * (keys.kind() == KeyKind::kU32 ? sizeof(uint32_t) : sizeof(uint64_t));
  }
  uint64_t bytes = 0;
  for (std::string_view key : keys.bytes()) bytes += key.size();
  return bytes;
}

uint64_t BytesOf(const Matches& matches) {
  return matches.offsets.size() * sizeof(uint64_t) + matches.row_ids.size() * sizeof(RowId);
}

}  // namespace

RoutedBase::RoutedBase(std::shared_ptr<const Base> base, const OpenOptions& options)
    : base_(std::move(base)),
      router_(std::make_unique<Router>(
          MakeRoutes(base_->resident, Topology::Get().Threads(options.threads)))),
      calibration_(router_->routes(), base_->run(), Topology::Get().Threads(options.threads),
                   base_->directory, BaseNumber(base_->manifest), base_->files.get()) {
  router_->SetCosts(calibration_.Get(options.calibration));
}

absl::Status RoutedBase::Answer(
    const BatchShape& shape, const QueryOptions& options,
    absl::FunctionRef<absl::StatusOr<uint64_t>(const Route&)> answer) const {
  const absl::Status status = router_->Answer(shape, options, answer);
  // Trials take milliseconds, which a caller who is in a hurry is spared.
  if (router_->TrialsAreDue() && options.max_response_time == absl::InfiniteDuration() &&
      !calibrating_.test_and_set()) {
    router_->SetCosts(calibration_.Get(Calibration::kTrials));
    calibrating_.clear();
  }
  return status;
}

double RoutedBase::ExpectedRows(size_t keys) const {
  const RunProperties& properties = base_->run_file.properties;
  if (properties.distinct_keys == 0) return 0;
  return static_cast<double>(keys) * static_cast<double>(properties.entries) /
         static_cast<double>(properties.distinct_keys);
}

absl::Status RoutedBase::Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const {
  return Answer({Operation::kFind, keys.size(), ExpectedRows(keys.size()), options.sorted_input},
                options, [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  RETURN_IF_ERROR(route.Find(keys, options, matches));
                  return BytesOf(keys) + BytesOf(*matches);
                });
}

absl::Status RoutedBase::FindFirst(KeyBatch keys, const QueryOptions& options,
                                   absl::Span<RowId> row_ids) const {
  return Answer({Operation::kFindFirst, keys.size(), 0, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  RETURN_IF_ERROR(route.FindFirst(keys, options, row_ids));
                  return BytesOf(keys) + row_ids.size() * sizeof(RowId);
                });
}

absl::Status RoutedBase::Contains(KeyBatch keys, const QueryOptions& options,
                                  absl::Span<bool> found) const {
  return Answer({Operation::kContains, keys.size(), 0, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  RETURN_IF_ERROR(route.Contains(keys, options, found));
                  return BytesOf(keys) + found.size() * sizeof(bool);
                });
}

absl::Status RoutedBase::Count(const RangeBatch& ranges, const QueryOptions& options,
                               absl::Span<uint64_t> counts) const {
  return Answer({Operation::kCount, ranges.size(), 0, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  RETURN_IF_ERROR(route.Count(ranges, counts));
                  return BytesOf(ranges.lower) + BytesOf(ranges.upper) +
                         counts.size() * sizeof(uint64_t);
                });
}

absl::Status RoutedBase::Scan(const RangeBatch& ranges, const QueryOptions& options,
                              Matches* matches) const {
  const double asked = static_cast<double>(ranges.size());
  const double per_range = rows_per_range_.load(std::memory_order_relaxed);
  return Answer({Operation::kScan, ranges.size(), asked * per_range, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  RETURN_IF_ERROR(route.Scan(ranges, options, matches));
                  if (ranges.size() != 0) {
                    const double found = static_cast<double>(matches->row_ids.size()) / asked;
                    rows_per_range_.store(per_range + (found - per_range) * kWeightOfLastScan,
                                          std::memory_order_relaxed);
                  }
                  return BytesOf(ranges.lower) + BytesOf(ranges.upper) + BytesOf(*matches);
                });
}

absl::Status RoutedBase::Positions(const RangeBatch& ranges, const QueryOptions& options,
                                   absl::Span<Position> begin, absl::Span<Position> end) const {
  return Answer({Operation::kCount, ranges.size(), 0, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  RETURN_IF_ERROR(route.Positions(ranges, begin, end));
                  return BytesOf(ranges.lower) + BytesOf(ranges.upper) +
                         2 * begin.size() * sizeof(Position);
                });
}

}  // namespace cairn
