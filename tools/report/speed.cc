#include "tools/report/speed.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cairn/query.h"
#include "index/machine/status_macros.h"
#include "tools/report/key_sample.h"

namespace cairn::tools {
namespace {

using Clock = std::chrono::steady_clock;

// The number of keys from which batches are drawn.
constexpr size_t kDrawn = size_t{1} << 20;
constexpr size_t kDrawnBytes = size_t{1} << 26;
constexpr size_t kStep = 4;  // from one batch size to the next
constexpr size_t kWorkStep = 16;
constexpr size_t kGroup = 256;  // queries that are timed together, if batches are smaller
constexpr size_t kMaxRuns = 200;
constexpr double kMaxRows = 1 << 21;  // rows that a batch may find
constexpr uint64_t kScanLimit = 10;
constexpr double kShareOfRoutes = 0.6;  // share of the time

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double SecondsOf(absl::Duration duration) {
  return duration == absl::InfiniteDuration() ? 0 : absl::ToDoubleSeconds(duration);
}

// Executes `count` queries from `first` on.
using Ask = std::function<absl::Status(size_t first, size_t count, std::string_view route,
                                       Explain* explain)>;

// Times batches within a total time. Each call of Time uses a share of the remaining time.
class Stopwatch {
 public:
  Stopwatch(double seconds, const std::atomic<bool>* cancelled)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        cancelled_(cancelled) {}

  bool passed() const { return Clock::now() >= end_; }

  // The median time, in seconds, of a batch of `count` of `drawn` queries, using a share of the
  // remaining time. Executes at least one batch, after an untimed one if there is time for that.
  absl::StatusOr<double> Time(const Ask& ask, size_t count, size_t drawn, std::string_view route,
                              double share) {
    if (cancelled_ != nullptr && *cancelled_) return absl::CancelledError("interrupted");
    const double budget =
        std::max(std::chrono::duration<double>(end_ - Clock::now()).count(), 0.0) * share;
    size_t together = 1;  // at first; this warms up
    const Clock::time_point begin = Clock::now();
    std::vector<double> times;
    for (size_t run = 0; run < kMaxRuns; ++run) {
      const Clock::time_point start = Clock::now();
      for (size_t i = 0; i < together; ++i) {
        if (next_ + count > drawn) next_ = 0;
        RETURN_IF_ERROR(ask(next_, count, route, nullptr));
        next_ += count;
      }
      times.push_back(SecondsSince(start) / static_cast<double>(together));
      const double spent = SecondsSince(begin);
      if (spent * (run == 0 ? 1 : 1 + 1.0 / static_cast<double>(run)) > budget) break;
      if (run == 0) {
        // Fewer if one takes long, for example because it finds many rows.
        const double fit = (budget - spent) / std::max(spent, 1e-9);
        const size_t most = std::max<size_t>(kGroup / count, 1);
        together =
            std::max<size_t>(static_cast<size_t>(std::min(fit, static_cast<double>(most))), 1);
      }
    }
    if (times.size() > 1) times.erase(times.begin());  // the first one warms up
    std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }

 private:
  const Clock::time_point end_;
  const std::atomic<bool>* const cancelled_;
  size_t next_ = 0;  // the next query
};

// Keys to query: some existing ones, drawn at random, and some absent ones.
struct Drawn {
  explicit Drawn(PhysicalType kind) : present(kind), behind(kind), absent(kind) {}

  EncodedKeys present;
  EncodedKeys behind;  // one per key of `present`: a key some distance after it
  EncodedKeys absent;
};

// Appends a key near a present one; some of these are absent.
void AppendNear(const EncodedKeys& keys, size_t i, std::mt19937_64* random, EncodedKeys* near) {
  const uint64_t noise = (*random)() % 1024 + 1;
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return near->AppendU32(keys.u32(i) + static_cast<uint32_t>(noise));
    case PhysicalType::kU64:
      return near->AppendU64(keys.u64(i) + noise);
    case PhysicalType::kBytes: {
      std::string key(keys.bytes(i));
      if (key.empty()) key.push_back(' ');
      key.back() = static_cast<char>('!' + noise % 94);
      return near->AppendBytes(key);
    }
  }
}

absl::StatusOr<Drawn> Draw(const SecondaryIndex& index, const EncodedKeys& keys) {
  Drawn drawn(index.kind());
  std::mt19937_64 random(2);
  // Ranges of about a thousandth of the keys, but not very long ones.
  const size_t behind = std::clamp<size_t>(keys.size() / 4096, 1, 64);
  EncodedKeys near(index.kind());
  for (size_t i = 0; i < kDrawn && drawn.present.heap().size() < kDrawnBytes; ++i) {
    const size_t key = random() % keys.size();
    AppendKey(keys, key, &drawn.present);
    AppendKey(keys, std::min(key + behind, keys.size() - 1), &drawn.behind);
    AppendNear(keys, key, &random, &near);
  }
  const auto found = std::make_unique<bool[]>(near.size());
  RETURN_IF_ERROR(index.Contains(near.Batch(), absl::MakeSpan(found.get(), near.size())));
  for (size_t i = 0; i < near.size(); ++i) {
    if (!found[i]) AppendKey(near, i, &drawn.absent);
  }
  return drawn;
}

std::vector<size_t> Sizes(size_t drawn, size_t step) {
  std::vector<size_t> sizes;
  for (size_t size = 1; size <= drawn; size *= step) sizes.push_back(size);
  return sizes;
}

// Times every route for all sizes, smallest first.
absl::Status TimeRoutes(const Ask& ask, size_t drawn, Stopwatch* watch, SpeedFacts* facts) {
  const std::vector<size_t> sizes = Sizes(drawn, kStep);
  for (size_t s = 0; s < sizes.size(); ++s) {
    Explain explain;
    RETURN_IF_ERROR(ask(0, sizes[s], {}, &explain));
    if (facts->routes.empty()) {
      for (const Explain::Candidate& candidate : explain.candidates) {
        facts->routes.push_back({candidate.route, {}});
      }
      std::sort(facts->routes.begin(), facts->routes.end(),
                [](const auto& a, const auto& b) { return a.route < b.route; });
    }
    for (size_t r = 0; r < facts->routes.size(); ++r) {
      RouteTimes& route = facts->routes[r];
      const auto candidate =
          std::find_if(explain.candidates.begin(), explain.candidates.end(),
                       [&](const Explain::Candidate& one) { return one.route == route.route; });
      if (candidate == explain.candidates.end() || !candidate->note.empty() ||
          candidate->predicted == absl::InfiniteDuration()) {
        continue;  // the route does not support such batches
      }
      if (watch->passed()) return absl::OkStatus();
      // Large batches are few and long, so they get twice the time of smaller ones.
      const double left = static_cast<double>((sizes.size() - s) * facts->routes.size() - r);
      const double share = std::min(1.0, (s + 1 == sizes.size() ? 1.0 : 0.8) / left);
      ASSIGN_OR_RETURN(const double seconds, watch->Time(ask, sizes[s], drawn, route.route, share));
      route.times.push_back(
          {sizes[s], seconds, SecondsOf(candidate->predicted), candidate->route == explain.route});
    }
  }
  return absl::OkStatus();
}

// Times one kind of query on the routes that the router chooses; a query finds `rows` rows on
// average.
absl::StatusOr<WorkTimes> TimeWork(std::string name, const Ask& ask, size_t drawn, double rows,
                                   Stopwatch* watch) {
  WorkTimes work{std::move(name), {}};
  const std::vector<size_t> sizes = Sizes(drawn, kWorkStep);
  for (size_t s = 0; s < sizes.size() && !watch->passed(); ++s) {
    // A batch must not find more rows than fit easily in memory.
    if (s != 0 && rows * static_cast<double>(sizes[s]) > kMaxRows) break;
    Explain explain;
    RETURN_IF_ERROR(ask(0, sizes[s], {}, &explain));
    const double share = 1 / static_cast<double>(sizes.size() - s);
    ASSIGN_OR_RETURN(const double seconds, watch->Time(ask, sizes[s], drawn, {}, share));
    work.times.push_back({sizes[s], seconds, SecondsOf(explain.predicted), true});
  }
  return work;
}

// The average number of entries per key, over some keys.
absl::StatusOr<double> EntriesAKey(const SecondaryIndex& index, KeyBatch keys) {
  const KeyBatch some = keys.Slice(0, std::min<size_t>(keys.size(), 1024));
  std::vector<uint64_t> counts(some.size());
  RETURN_IF_ERROR(index.Count(RangeBatch::Equal(some), absl::MakeSpan(counts)));
  uint64_t sum = 0;
  for (const uint64_t count : counts) sum += count;
  return static_cast<double>(sum) / static_cast<double>(some.size());
}

}  // namespace

absl::StatusOr<SpeedFacts> MeasureSpeed(const SecondaryIndex& index, EncodedKeys* keys,
                                        double seconds, const std::atomic<bool>* cancelled) {
  SpeedFacts facts;
  if (keys->empty()) return facts;
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(Drawn drawn, Draw(index, *keys));
  facts.measured = true;
  facts.distinct_queries = keys->size();
  const KeyBatch present = drawn.present.Batch();
  const KeyBatch absent = drawn.absent.Batch();
  RangeBatch ranges = RangeBatch::HalfOpen(present, drawn.behind.Batch());
  RangeBatch onward = ranges;
  onward.upper_bound = Bound::kOpen;

  std::vector<GlobalRowId> rows(present.size());
  std::vector<uint64_t> counts(present.size());
  FindResult matches;
  const auto answer = [&](Batch batch, std::string_view route, Explain* explain) {
    batch.options.route = route;
    batch.explain = explain;
    return index.Execute(batch);
  };
  const auto first_of = [&](KeyBatch all) {
    return [&, all](size_t first, size_t count, std::string_view route, Explain* explain) {
      return answer(Batch::FindFirst(all.Slice(first, count), absl::MakeSpan(rows.data(), count)),
                    route, explain);
    };
  };
  {
    Stopwatch watch(seconds * kShareOfRoutes, cancelled);
    RETURN_IF_ERROR(TimeRoutes(first_of(present), present.size(), &watch, &facts));
  }
  ASSIGN_OR_RETURN(const double entries_a_key, EntriesAKey(index, present));
  const Ask find = [&](size_t first, size_t count, std::string_view route, Explain* explain) {
    return answer(Batch::Find(present.Slice(first, count), &matches), route, explain);
  };
  const Ask count_ranges = [&](size_t first, size_t count, std::string_view route,
                               Explain* explain) {
    return answer(Batch::Count(ranges.Slice(first, count), absl::MakeSpan(counts.data(), count)),
                  route, explain);
  };
  const Ask scan = [&](size_t first, size_t count, std::string_view route, Explain* explain) {
    Batch batch = Batch::Scan(onward.Slice(first, count), &matches);
    batch.options.limit = kScanLimit;
    return answer(batch, route, explain);
  };
  struct Work {
    const char* name;
    Ask ask;
    size_t drawn;
    double rows;  // rows per query
  };
  const Work works[] = {
      {"First row, key exists", first_of(present), present.size(), 0},
      {"First row, key does not exist", first_of(absent), absent.size(), 0},
      {"All rows of a key", find, present.size(), entries_a_key},
      {"Entries in a range", count_ranges, present.size(), 0},
      {"The next 10 rows from a key", scan, present.size(), kScanLimit},
  };
  for (const Work& work : works) {
    Stopwatch watch(seconds * (1 - kShareOfRoutes) / std::size(works), cancelled);
    ASSIGN_OR_RETURN(WorkTimes times, TimeWork(work.name, work.ask, work.drawn, work.rows, &watch));
    if (!times.times.empty()) facts.works.push_back(std::move(times));
  }
  facts.seconds = SecondsSince(start);
  return facts;
}

}  // namespace cairn::tools
