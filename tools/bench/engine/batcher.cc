// Batcher/<key>/n:<k>/threads:64/<way>: 64 threads that each query one key at a time, in an index
// of 2^k entries, for one second per way:
//
//   find_one_key, find_first_one_key  each thread calls SecondaryIndex::Find or FindFirst
//   batcher_future                    Batcher::FindFirst, and waits for its future
//   batcher_callback:<w>              a Receiver; a thread goes on until w keys are unanswered
//   batcher_group:<w>                 a Group; a thread adds w keys, one by one, and waits
//   batcher_open:<r>                  a Receiver; threads wake up every millisecond and submit keys
//   one
//                                     by one, at r thousand keys per second in total
//
// The index is a SecondaryIndex's search part, with router and cost models, over a run in memory.
// Queries are random keys of the index; every answer is checked. k is CAIRN_BENCH_LOG2_N, 24 by
// default: choose one whose leaves exceed the last-level cache. Counters: queries_per_s; p50_us and
// p99_us, response times of one key in 16, from its submission until its thread or receiver has the
// answer; within_1ms, the share of these; batch, the mean batch size.
#include "cairn/batcher.h"
#include "cairn/batch_index.h"

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "engine/route/index_router.h"
#include "engine/route/router.h"
#include "index/machine/topology.h"
#include "tools/bench/data.h"

namespace cairn::bench::batcher {
namespace {

using Time = std::chrono::steady_clock::time_point;
using std::chrono::steady_clock;

constexpr size_t kThreads = 64;
constexpr size_t kQueries = size_t{1} << 22;  // repeated
constexpr size_t kSampled = 16;               // one of kSampled queries is timed
constexpr auto kDuration = std::chrono::milliseconds(1000);

// An index over a run, without a database.
class RoutedIndex final : public BatchIndex {
 public:
  explicit RoutedIndex(const SortedRun& run)
      : kind_(run.kind()),
        resident_(*MakeResidentIndexes(OpenOptions(), run)),
        router_(resident_, run, 1, {Calibration::kTrials, Topology::Get().Threads(0)}) {}

  PhysicalType kind() const override { return kind_; }
  absl::Status Execute(const Batch& batch) const override { return router_.Execute(batch); }
  absl::Duration PredictedTime(Operation operation, size_t queries) const override {
    return router_.router().PredictedTime(operation, queries);
  }
  size_t BestBatch(Operation operation) const override {
    return router_.router().BestBatch(operation);
  }

 private:
  const PhysicalType kind_;
  const ResidentIndexes resident_;
  const IndexRouter router_;
};

template <typename Key>
struct Subject {
  explicit Subject(int log2_n) : run(MakeRun(UniformKeys<Key>(size_t{1} << log2_n))), index(run) {
    Random random(kSeed + 3);
    for (size_t i = 0; i < kQueries; ++i) {
      const size_t p = random.Below(run.size());
      if constexpr (sizeof(Key) == 4) {
        keys.push_back(run.u32()[p]);
      } else {
        keys.push_back(run.u64()[p]);
      }
      rows.push_back(run.row_ids()[p]);
    }
  }
  static Subject& Get(int log2_n) {
    static Subject subject(log2_n);
    return subject;
  }

  const SortedRun run;
  const RoutedIndex index;
  std::vector<Key> keys;
  std::vector<RowId> rows;  // the expected answers
};

// Results of one thread.
struct Seen {
  uint64_t answers = 0;
  uint64_t wrong = 0;
  std::vector<float> response_us;

  void Took(Time from, Time to) {
    response_us.push_back(std::chrono::duration<float, std::micro>(to - from).count());
  }
};

// One thread with one way: queries until `stop`, starting with query `first`.
template <typename Key>
using Way = std::function<void(const Subject<Key>&, Batcher*, size_t first,
                               const std::atomic<bool>& stop, Seen*)>;

template <typename Key>
void FindOneKey(const Subject<Key>& subject, Batcher*, size_t i, const std::atomic<bool>& stop,
                Seen* seen) {
  FindResult matches;
  for (; !stop; i = (i + 1) % kQueries) {
    const bool sampled = i % kSampled == 0;
    const Time begin = sampled ? steady_clock::now() : Time();
    const absl::Status s = subject.index.Find(Batcher::Key(subject.keys[i]).batch(), &matches);
    if (sampled) seen->Took(begin, steady_clock::now());
    seen->wrong += !s.ok() || matches.row_ids.size() != 1 || matches.row_ids[0] != subject.rows[i];
    ++seen->answers;
  }
}

template <typename Key>
void FindFirstOneKey(const Subject<Key>& subject, Batcher*, size_t i, const std::atomic<bool>& stop,
                     Seen* seen) {
  for (; !stop; i = (i + 1) % kQueries) {
    const bool sampled = i % kSampled == 0;
    const Time begin = sampled ? steady_clock::now() : Time();
    RowId row;
    const absl::Status s = subject.index.Execute(
        Batch::FindFirst(Batcher::Key(subject.keys[i]).batch(), absl::MakeSpan(&row, 1)));
    if (sampled) seen->Took(begin, steady_clock::now());
    seen->wrong += !s.ok() || row != subject.rows[i];
    ++seen->answers;
  }
}

template <typename Key>
void Future(const Subject<Key>& subject, Batcher* batcher, size_t i, const std::atomic<bool>& stop,
            Seen* seen) {
  for (; !stop; i = (i + 1) % kQueries) {
    const Time begin = steady_clock::now();
    const absl::StatusOr<RowId> row = batcher->FindFirst(subject.keys[i]).get();
    seen->Took(begin, steady_clock::now());
    seen->wrong += !row.ok() || *row != subject.rows[i];
    ++seen->answers;
  }
}

template <typename Key>
void Group(const Subject<Key>& subject, Batcher* batcher, size_t window, size_t i,
           const std::atomic<bool>& stop, Seen* seen) {
  Batcher::Group<Operation::kFindFirst> group(batcher, window);
  std::vector<Time> sent;
  while (!stop) {
    if (i + window > kQueries) i = 0;
    sent.clear();
    for (size_t j = 0; j < window; ++j) {
      if (j % kSampled == 0) sent.push_back(steady_clock::now());
      seen->wrong += !group.Add(subject.keys[i + j]).ok();
    }
    seen->wrong += !group.Wait().ok();
    const Time now = steady_clock::now();
    for (Time time : sent) seen->Took(time, now);
    seen->wrong +=
        group.answers() != absl::MakeConstSpan(subject.rows).subspan(i, window) ? window : 0;
    seen->answers += window;
    i += window;
    group.Clear();
  }
}

// A thread with callbacks. A cookie is a query's index and, if the query is timed, its submission
// time in nanoseconds since the thread began.
template <typename Key>
class Called {
 public:
  Called(const Subject<Key>& subject, Batcher* batcher, Seen* seen)
      : subject_(subject), batcher_(batcher), seen_(seen) {
    seen->response_us.resize(kMaxSamples);
  }

  void Submit(size_t i) {
    uint64_t cookie = i;
    if (i % kSampled == 0) cookie |= Nanos() * kQueries;
    const Batcher::Key key(subject_.keys[i]);
    const absl::Status s =
        batcher_->Submit(Operation::kFindFirst, key.batch(), {{&Receive, this}, cookie});
    if (!s.ok()) ++seen_->wrong;
    ++submitted_;
  }
  uint64_t unanswered() const { return submitted_ - answered_.load(std::memory_order_relaxed); }

  // Waits for all answers.
  void Finish() {
    while (answered_ < submitted_) std::this_thread::yield();
    seen_->response_us.resize(std::min<size_t>(samples_, kMaxSamples));
    seen_->answers = submitted_;
    seen_->wrong += wrong_;
  }

 private:
  static constexpr size_t kMaxSamples = size_t{1} << 16;

  static void Receive(void* context, const Batcher::Answers& answers) {
    auto* called = static_cast<Called*>(context);
    uint64_t wrong = 0;
    for (size_t j = 0; j < answers.cookies.size(); ++j) {
      const uint64_t i = answers.cookies[j] % kQueries;
      wrong += !answers.status.ok() || answers.row_ids[j] != called->subject_.rows[i];
      const uint64_t sent = answers.cookies[j] / kQueries;
      if (sent == 0) continue;
      const size_t sample = called->samples_.fetch_add(1);
      if (sample >= kMaxSamples) continue;
      called->seen_->response_us[sample] = static_cast<float>(called->Nanos() - sent) * 1e-3f;
    }
    if (wrong != 0) called->wrong_ += wrong;
    called->answered_.fetch_add(answers.cookies.size());
  }

  uint64_t Nanos() const {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now() - began_).count());
  }

  const Subject<Key>& subject_;
  Batcher* const batcher_;
  Seen* const seen_;
  const Time began_ = steady_clock::now() - std::chrono::nanoseconds(1);
  uint64_t submitted_ = 0;
  alignas(64) std::atomic<uint64_t> answered_{0};
  std::atomic<uint64_t> wrong_{0};
  std::atomic<size_t> samples_{0};
};

template <typename Key>
void Callback(const Subject<Key>& subject, Batcher* batcher, size_t window, size_t i,
              const std::atomic<bool>& stop, Seen* seen) {
  Called<Key> called(subject, batcher, seen);
  for (; !stop; i = (i + 1) % kQueries) {
    while (called.unanswered() >= window) std::this_thread::yield();
    called.Submit(i);
  }
  called.Finish();
}

template <typename Key>
void Open(const Subject<Key>& subject, Batcher* batcher, size_t per_second, size_t i,
          const std::atomic<bool>& stop, Seen* seen) {
  Called<Key> called(subject, batcher, seen);
  const auto tick = std::chrono::milliseconds(1);
  // The threads' ticks are spread over the millisecond.
  const Time start = steady_clock::now() + tick * (i * kThreads / kQueries) / kThreads;
  uint64_t submitted = 0;
  for (uint64_t t = 0; !stop; ++t) {
    std::this_thread::sleep_until(start + t * tick);
    for (const uint64_t end = t * per_second / kThreads / 1000; submitted < end; ++submitted) {
      called.Submit(i);
      i = (i + 1) % kQueries;
    }
  }
  called.Finish();
}

// CPU time of all threads of the process, including kernel time.
double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <typename Key>
void Ask(benchmark::State& state, const Way<Key>& way, int log2_n) {
  const Subject<Key>& subject = Subject<Key>::Get(log2_n);
  for (auto _ : state) {
    BatcherOptions bo;
    if (getenv("BEST")) bo.best_batch = atoi(getenv("BEST"));
    if (getenv("MBT")) bo.max_batch_time = absl::Microseconds(atoi(getenv("MBT")));
    if (getenv("SHARDS")) bo.shards = atoi(getenv("SHARDS"));
    auto batcher = *Batcher::Make(&subject.index, bo);
    std::vector<Seen> seen(kThreads);
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    std::latch start(kThreads + 1);
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        seen[t].response_us.resize(size_t{1} << 20);  // so that its pages are mapped
        seen[t].response_us.clear();
        start.arrive_and_wait();
        way(subject, batcher.get(), t * (kQueries / kThreads), stop, &seen[t]);
      });
    }
    start.arrive_and_wait();
    const Time begin = steady_clock::now();
    const double cpu_begin = CpuSeconds();
    std::this_thread::sleep_for(kDuration);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    const double cpu = CpuSeconds() - cpu_begin;
    state.SetIterationTime(seconds);

    uint64_t answers = 0, wrong = 0;
    std::vector<float> all;
    for (const Seen& s : seen) {
      answers += s.answers;
      wrong += s.wrong;
      all.insert(all.end(), s.response_us.begin(), s.response_us.end());
    }
    if (wrong != 0) return state.SkipWithError(absl::StrFormat("%d wrong answers", wrong).c_str());
    if (all.empty()) return state.SkipWithError("no answers");
    std::sort(all.begin(), all.end());
    const auto quantile = [&](double q) {
      return all[static_cast<size_t>(q * static_cast<double>(all.size() - 1))];
    };
    state.counters["cpu_ns_per_query"] = cpu * 1e9 / static_cast<double>(answers);
    state.counters["queries_per_s"] = static_cast<double>(answers) / seconds;
    state.counters["p50_us"] = quantile(.5);
    state.counters["p99_us"] = quantile(.99);
    state.counters["within_1ms"] =
        static_cast<double>(std::upper_bound(all.begin(), all.end(), 1000.f) - all.begin()) /
        static_cast<double>(all.size());
    const auto stats = batcher->Stats().operations[static_cast<size_t>(Operation::kFindFirst)];
    state.counters["batch"] = stats.mean_batch();
    if (std::getenv("BATCHER_DEBUG")) {
      std::fprintf(
          stderr,
          "batches %lu queries %lu late %lu full %lu due %lu idle %lu flushed %lu overhead %ld "
          "busy %ld best %zu pred1 %ld predbest %ld\n",
          stats.batches, stats.queries, stats.late, stats.full, stats.due, stats.idle,
          stats.flushed, absl::ToInt64Nanoseconds(batcher->Stats().dispatch_overhead),
          absl::ToInt64Nanoseconds(stats.busy), subject.index.BestBatch(Operation::kFindFirst),
          absl::ToInt64Nanoseconds(subject.index.PredictedTime(Operation::kFindFirst, 1)),
          absl::ToInt64Nanoseconds(subject.index.PredictedTime(Operation::kFindFirst, 1024)));
    }
  }
}

template <typename Key>
void Register(const char* key_name, int log2_n) {
  const auto add = [&](const std::string& way_name, Way<Key> way) {
    const std::string name =
        absl::StrFormat("Batcher/%s/n:%d/threads:%d/%s", key_name, log2_n, kThreads, way_name);
    benchmark::RegisterBenchmark(
        name.c_str(), [way, log2_n](benchmark::State& state) { Ask<Key>(state, way, log2_n); })
        ->UseManualTime()
        ->Iterations(1);
  };
  const auto with = [](auto way, size_t number) -> Way<Key> {
    return [way, number](const Subject<Key>& subject, Batcher* batcher, size_t first,
                         const std::atomic<bool>& stop,
                         Seen* seen) { way(subject, batcher, number, first, stop, seen); };
  };
  add("find_one_key", FindOneKey<Key>);
  add("find_first_one_key", FindFirstOneKey<Key>);
  add("batcher_future", Future<Key>);
  for (size_t window : {1, 16, 64, 256, 1024}) {
    add(absl::StrFormat("batcher_group:%d", window), with(Group<Key>, window));
  }
  for (size_t window : {16, 64, 256, 1024}) {
    add(absl::StrFormat("batcher_callback:%d", window), with(Callback<Key>, window));
  }
  for (size_t thousands : {1000, 5000, 10000, 20000}) {
    add(absl::StrFormat("batcher_open:%d", thousands), with(Open<Key>, thousands * 1000));
  }
}

const bool registered = [] {
  const char* n = std::getenv("CAIRN_BENCH_LOG2_N");
  const int log2_n = n != nullptr ? std::atoi(n) : 24;
  Register<uint32_t>("u32", log2_n);
  Register<uint64_t>("u64", log2_n);
  return true;
}();

}  // namespace
}  // namespace cairn::bench::batcher
