// MixedOperations/<store>/<mix>/rows:<n>: the mixes of single operations of LevelDB++ (Qader, Cheng
// and Hristidis, SIGMOD 2018) on several stores (stores/store.h). Each case runs in a new process.
//
// A case puts n tweets of 8 + 200 bytes, one per commit, into a store that has an index of the
// user. There are 65,536 users, with a Zipf distribution. Then it executes n / 10 operations, for
// at most 20 seconds, in one thread:
//   put: a new tweet;
//   update: a random tweet gets another user;
//   get: a random tweet by its primary key;
//   lookup: the newest 10 tweets of a user.
// The mixes:
//   write_heavy: 80% puts, 15% gets, 5% lookups;
//   read_heavy: 20% puts, 70% gets, 10% lookups;
//   update_heavy: 40% puts, 40% updates, 15% gets, 5% lookups.
// A model then repeats all operations. If the checksum of all answers is different, the benchmark
// ends.
//
// Counters, in addition to those of the class Phase (stores/phase.h):
//   load_per_s                           the first n puts
//   ops_per_s, operations                the mix: its rate by the sum of all times, and its size
//   put_…, update_…, get_…, lookup_…     the times of each kind
//   waits, waited_ms, compactions        cairn: as those of InsertBenchmark
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "tools/bench/child_process.h"
#include "tools/bench/database.h"
#include "tools/bench/registration.h"
#include "tools/bench/stores/phase.h"
#include "tools/bench/stores/store.h"
#include "tools/bench/temporary_directory.h"
#include "tools/bench/zipf.h"

namespace cairn::bench::mixed_operations {
namespace {

constexpr uint64_t kRows = 2'000'000;
constexpr uint64_t kUsers = 1 << 16;
constexpr size_t kTweetBytes = 200;
constexpr size_t kNewest = 10;
constexpr double kMaxSeconds = 20;

struct Mix {
  const char* name;
  uint64_t puts, updates, gets;  // percent; the rest are lookups
};
constexpr Mix kMixes[] = {
    {"write_heavy", 80, 0, 15}, {"read_heavy", 20, 0, 70}, {"update_heavy", 40, 40, 15}};

uint64_t Scramble(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

Row MakeTweet(uint64_t key, uint64_t user) {
  Row row;
  row.key = key;
  row.value.reserve(kTweetBytes);
  AppendNumber(user, 4, &row.value);
  // Half of the text is random.
  for (uint64_t i = 0; row.value.size() < kTweetBytes; ++i) {
    AppendNumber(Scramble((key << 16 | user) + i * 0x9e3779b97f4a7c15), 8, &row.value);
    row.value.append("a tweet ");
  }
  row.value.resize(kTweetBytes);
  return row;
}

enum Kind : size_t { kPut, kUpdate, kGet, kLookup, kKinds };
constexpr const char* kKindNames[kKinds] = {"put", "update", "get", "lookup"};

struct Operation {
  Kind kind = kPut;
  uint64_t key = 0;   // of a tweet, if it is no lookup
  uint64_t user = 0;  // if it is no get
};

// The same operations for all stores: first the load, then the mix.
class Operations {
 public:
  Operations(const Mix& mix, uint64_t rows) : mix_(mix), rows_(rows), users_(kUsers) {}

  Operation Next() {
    Operation next;
    if (end_ < rows_) {
      next.kind = kPut;
    } else {
      const uint64_t percent = Random() % 100;
      next.kind = percent < mix_.puts                              ? kPut
                  : percent < mix_.puts + mix_.updates             ? kUpdate
                  : percent < mix_.puts + mix_.updates + mix_.gets ? kGet
                                                                   : kLookup;
    }
    next.key = next.kind == kPut ? end_++ : Random() % end_;
    // Ranks and users are not in the same order.
    next.user = users_.Rank(Random()) * 40503 % kUsers;
    return next;
  }

 private:
  uint64_t Random() { return Scramble(state_ += 0x9e3779b97f4a7c15); }

  const Mix mix_;
  const uint64_t rows_;
  const Zipf users_;
  uint64_t end_ = 0;
  uint64_t state_ = 1;
};

// A checksum of answers, which depends on their order.
class Answers {
 public:
  void Add(const Row& row) {
    Add(row.key);
    for (size_t at = 0; at + 8 <= row.value.size(); at += 64) {
      Add(ReadNumber(row.value.data() + at, 8));
    }
    Add(row.value.size());
  }
  void Add(uint64_t number) { sum_ = Scramble(sum_ ^ number) + 1; }
  uint64_t sum() const { return sum_; }

 private:
  uint64_t sum_ = 0;
};

// The checksum of a mix's answers, by a model in memory.
uint64_t Expected(Operations operations, uint64_t rows, uint64_t count) {
  std::vector<uint64_t> user_of;
  std::vector<std::set<uint64_t>> tweets_of(kUsers);
  Answers answers;
  for (uint64_t i = 0; i < rows + count; ++i) {
    const Operation next = operations.Next();
    switch (next.kind) {
      case kPut:
        user_of.push_back(next.user);
        tweets_of[next.user].insert(tweets_of[next.user].end(), next.key);
        break;
      case kUpdate:
        tweets_of[user_of[next.key]].erase(next.key);
        user_of[next.key] = next.user;
        tweets_of[next.user].insert(next.key);
        break;
      case kGet:
        answers.Add(MakeTweet(next.key, user_of[next.key]));
        break;
      default: {
        const std::set<uint64_t>& tweets = tweets_of[next.user];
        size_t found = 0;
        for (auto at = tweets.rbegin(); at != tweets.rend() && found < kNewest; ++at, ++found) {
          answers.Add(MakeTweet(*at, next.user));
        }
        answers.Add(found);
      }
    }
  }
  return answers.sum();
}

// Executes the operations of a mix, after the load.
class Client {
 public:
  Client(Store* store, StoreReader* reader) : store_(*store), reader_(*reader) {}

  void Execute(const Operation& next) {
    Row row;
    if (next.kind == kPut || next.kind == kUpdate) row = MakeTweet(next.key, next.user);
    const auto begin = PhaseClock::now();
    switch (next.kind) {
      case kPut:
        store_.Insert({row});
        break;
      case kUpdate:
        store_.Update({row});
        break;
      case kGet:
        row.key = next.key;
        if (!reader_.Get(next.key, &row.value)) throw std::runtime_error("a row is missing");
        break;
      default:
        reader_.Newest(next.user, kNewest, &rows_);
    }
    times_[next.kind].Add(SecondsSince(begin));
    if (next.kind == kGet) answers_.Add(row);
    if (next.kind == kLookup) {
      for (const Row& found : rows_) answers_.Add(found);
      answers_.Add(rows_.size());
    }
  }

  void Report(Counters* counters) {
    double seconds = 0;
    uint64_t count = 0;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      seconds += times_[kind].sum();
      count += times_[kind].count();
      times_[kind].Report(kKindNames[kind], counters);
    }
    (*counters)["operations"] = static_cast<double>(count);
    (*counters)["ops_per_s"] = static_cast<double>(count) / seconds;
  }

  uint64_t answers() const { return answers_.sum(); }

 private:
  Store& store_;
  StoreReader& reader_;
  Latencies times_[kKinds];
  Answers answers_;
  std::vector<Row> rows_;
};

// Arguments: store, mix, rows.
Counters Measure(const std::vector<std::string>& arguments) {
  Phase::SetBaseline();
  uint64_t rows = 0;
  if (!absl::SimpleAtoi(arguments[2], &rows)) throw std::runtime_error("expected a number");
  const Mix* mix = std::begin(kMixes);
  while (arguments[1] != mix->name) ++mix;
  Schema schema;
  schema.value_bytes = kTweetBytes;
  schema.fields = {{"user", 0, 4}};
  schema.indexes = {{0}};
  schema.newest_first = true;
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = OpenStore(arguments[0], schema, directory.path());
  store->CreateIndexes();
  const std::unique_ptr<StoreReader> reader = store->NewReader();

  Counters counters;
  Operations operations(*mix, rows);
  double seconds = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    const Operation put = operations.Next();
    const Row row = MakeTweet(put.key, put.user);
    const auto begin = PhaseClock::now();
    store->Insert({row});
    seconds += SecondsSince(begin);
  }
  counters["load_per_s"] = static_cast<double>(rows) / seconds;

  Client client(store.get(), reader.get());
  uint64_t count = 0;
  const Phase phase(store.get());
  for (; count < rows / 10 && phase.seconds() < kMaxSeconds; ++count) {
    client.Execute(operations.Next());
  }
  phase.Report("op", static_cast<double>(count), &counters);
  client.Report(&counters);
  if (client.answers() != Expected(Operations(*mix, rows), rows, count)) {
    throw std::runtime_error("the answers are not those of the model");
  }
  return counters;
}

const ChildMeasurement measurement("mixed_operations", Measure);

const RegisterInMain registered([] {
  const std::string rows = std::to_string(BenchRows(kRows));
  for (const std::string& store : StoreNames()) {
    for (const Mix& mix : kMixes) {
      measurement.RegisterBenchmark(
          absl::StrFormat("MixedOperations/%s/%s/rows:%s", store, mix.name, rows),
          {store, mix.name, rows});
    }
  }
});

}  // namespace
}  // namespace cairn::bench::mixed_operations
