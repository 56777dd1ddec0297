// InsertBenchmark/<store>/indexes:<k>/<phase>/rows:<n>: Mark Callaghan's Insert Benchmark
// (github.com/mdcallag/mytools) on several stores (stores/store.h). Each case runs in a new
// process.
//
// Every case first does these steps:
//   load n rows of 8 + 34 bytes in commits of 100;
//   make the first k of three indexes: (price, customer); (register, price, customer); (price,
//     time, customer);
//   insert n / 4 rows in commits of 50. A commit that deletes the 50 oldest rows follows each.
// The phases:
//   insert: the last of these steps;
//   query: one thread reads ranges of 10 primary keys of a random index. Another thread inserts and
//     deletes, at 1,000 inserted rows per second;
//   steady: inserts and deletes continue at half of the rate of the steps above.
// The phases query and steady take one second per 100,000 rows, at least 0.2 and at most 30. Each
// case ends with 1,000 ranges per index and 1,000 reads of rows, which it compares with a model. A
// difference ends the benchmark.
//
// Counters, in addition to those of the class Phase (stores/phase.h):
//   load_rows_per_s, index_s      the load, and the creation of all indexes
//   rows_per_s                    inserted rows; the same number is deleted
//   write_…                       the times of commits, of inserts and deletes
//   write_max_scheduled_ms        the longest commit, without the time for which its thread was
//                                 ready to run but had no core
//   over_20ms                     commits that took longer than 20 ms, without that time
//   first_query_ms                the first range after the inserts; it waits until the index has
//                                 applied them
//   query_…, queries_per_s        ranges
//   planned_rows_per_s, late_ms   steady: half of the rate, and the longest delay of an insert
//   waits, waited_ms              cairn: writes that waited for indexes (BacklogStats)
//   compactions                   cairn: of all indexes
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "tools/bench/child_process.h"
#include "tools/bench/database.h"
#include "tools/bench/registration.h"
#include "tools/bench/stores/phase.h"
#include "tools/bench/stores/store.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::insert_benchmark {
namespace {

constexpr uint64_t kRows = 2'000'000;
constexpr uint64_t kLoadCommit = 100;
constexpr uint64_t kCommit = 50;
constexpr uint64_t kCustomers = 100'000, kRegisters = 1'000, kProducts = 10'000;
constexpr double kQueryWriterRate = 1'000;
constexpr size_t kRangeRows = 10;
constexpr size_t kChecks = 1'000;

enum FieldNumber : size_t { kTime, kRegister, kCustomer, kProduct, kPrice };

Schema MakeSchema(size_t indexes) {
  Schema schema;
  schema.value_bytes = 34;
  schema.fields = {{"time", 0, 8},
                   {"register", 8, 4},
                   {"customer", 12, 4},
                   {"product", 16, 4},
                   {"price", 20, 4}};
  schema.indexes = {
      {kPrice, kCustomer}, {kRegister, kPrice, kCustomer}, {kPrice, kTime, kCustomer}};
  schema.indexes.resize(indexes);
  return schema;
}

Row MakeRow(uint64_t key) {
  // splitmix64.
  uint64_t state = key * 0x9e3779b97f4a7c15;
  const auto random = [&] {
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  };
  const uint64_t customer = random() % kCustomers;
  Row row;
  row.key = key;
  row.value.reserve(34);
  AppendNumber(1'700'000'000'000'000 + 1'000 * key, 8, &row.value);
  AppendNumber(random() % kRegisters, 4, &row.value);
  AppendNumber(customer, 4, &row.value);
  AppendNumber(random() % kProducts, 4, &row.value);
  AppendNumber(customer + random() % 500, 4, &row.value);
  uint64_t letters = random();
  for (int i = 0; i < 10; ++i, letters >>= 6) row.value += static_cast<char>('0' + letters % 64);
  return row;
}

// A lower bound of an index's first field with more than 10 entries after it, if there are enough
// rows.
uint64_t RandomBound(const Schema& schema, size_t index, uint64_t random) {
  return random % (schema.indexes[index][0] == kRegister ? kRegisters - 20 : kCustomers - 5'000);
}

// The rows of a store: keys from the oldest one to the newest one, without gaps.
class Client {
 public:
  explicit Client(Store* store) : store_(*store) {}

  void Load(uint64_t rows) {
    std::vector<Row> batch;
    while (end_ < rows) {
      batch.clear();
      for (uint64_t i = 0; i < kLoadCommit && end_ < rows; ++i) batch.push_back(MakeRow(end_++));
      store_.Insert(batch);
    }
  }

  // Inserts new rows by one commit, and deletes the same number by another.
  void Step() {
    std::vector<Row> batch;
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < kCommit; ++i) {
      batch.push_back(MakeRow(end_++));
      keys.push_back(first_++);
    }
    Time([&] { store_.Insert(batch); });
    Time([&] { store_.Delete(keys); });
    inserted_ += kCommit;
  }

  // Steps at a rate of inserted rows, until `seconds` are over or `*stop`.
  void StepAtRate(double rows_per_s, double seconds, const std::atomic<bool>* stop) {
    const auto begin = PhaseClock::now();
    const std::chrono::duration<double> interval(kCommit / rows_per_s);
    for (uint64_t step = 0; SecondsSince(begin) < seconds && !*stop; ++step) {
      const auto planned = begin + std::chrono::duration_cast<PhaseClock::duration>(
                                       static_cast<double>(step) * interval);
      std::this_thread::sleep_until(planned);
      late_ = std::max(late_, SecondsSince(planned));
      Step();
    }
  }

  // Reports what was written since the last call.
  void Report(double seconds, Counters* counters) {
    (*counters)["rows_per_s"] = static_cast<double>(inserted_) / seconds;
    (*counters)["over_20ms"] = static_cast<double>(scheduled_.Above(0.020));
    (*counters)["write_max_scheduled_ms"] = 1e3 * scheduled_.max();
    writes_.Report("write", counters);
    writes_ = scheduled_ = Latencies();
    inserted_ = 0;
  }

  uint64_t first() const { return first_; }
  uint64_t end() const { return end_; }
  uint64_t inserted() const { return inserted_; }
  double late() const { return late_; }

 private:
  template <typename Commit>
  void Time(const Commit& commit) {
    const double queued = QueuedSeconds();
    const auto begin = PhaseClock::now();
    commit();
    const double seconds = SecondsSince(begin);
    writes_.Add(seconds);
    scheduled_.Add(seconds - (QueuedSeconds() - queued));
  }

  Store& store_;
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  uint64_t inserted_ = 0;
  double late_ = 0;
  Latencies writes_;
  Latencies scheduled_;  // without the time in the queue for a core
};

// Compares answers with those of a model.
void Check(const Schema& schema, const Client& client, StoreReader* reader) {
  std::mt19937_64 random(3);
  std::string value;
  for (size_t i = 0; i < kChecks; ++i) {
    const uint64_t key = random() % (client.end() + 10);
    const bool exists = key >= client.first() && key < client.end();
    if (reader->Get(key, &value) != exists || (exists && value != MakeRow(key).value)) {
      throw std::runtime_error(absl::StrFormat("a wrong answer for row %d", key));
    }
  }
  for (size_t index = 0; index < schema.indexes.size(); ++index) {
    using Entry = std::array<uint64_t, 4>;  // up to three fields, zeros, and the primary key
    std::vector<Entry> entries;
    for (uint64_t key = client.first(); key < client.end(); ++key) {
      const Row row = MakeRow(key);
      Entry entry = {0, 0, 0, key};
      for (size_t i = 0; i < schema.indexes[index].size(); ++i) {
        const NumberField& field = schema.fields[schema.indexes[index][i]];
        entry[i] = ReadNumber(row.value.data() + field.offset, field.bytes);
      }
      entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end());
    std::vector<uint64_t> keys;
    for (size_t i = 0; i < kChecks; ++i) {
      const uint64_t from = random() % (entries.back()[0] + 2);
      reader->Range(index, from, kRangeRows, &keys);
      auto at = std::lower_bound(entries.begin(), entries.end(), Entry{from, 0, 0, 0});
      std::vector<uint64_t> expected;
      for (; at != entries.end() && expected.size() < kRangeRows; ++at)
        expected.push_back((*at)[3]);
      if (keys != expected) {
        throw std::runtime_error(absl::StrFormat("a wrong answer: index %d, from %d", index, from));
      }
    }
  }
}

void QueryBesideWriter(const Schema& schema, double seconds, Store* store, Client* client,
                       StoreReader* reader, Counters* counters) {
  const Phase phase(store);
  std::atomic<bool> stop{false};
  std::exception_ptr error;
  std::thread writer([&] {
    try {
      client->StepAtRate(kQueryWriterRate, seconds, &stop);
    } catch (...) {
      error = std::current_exception();
    }
  });
  Latencies queries;
  std::mt19937_64 random(5);
  std::vector<uint64_t> keys;
  try {
    while (phase.seconds() < seconds) {
      const size_t index = random() % schema.indexes.size();
      const uint64_t from = RandomBound(schema, index, random());
      const auto begin = PhaseClock::now();
      reader->Range(index, from, kRangeRows, &keys);
      queries.Add(SecondsSince(begin));
      if (keys.size() != kRangeRows) throw std::runtime_error("a range has too few rows");
    }
  } catch (...) {
    error = std::current_exception();
  }
  stop = true;
  writer.join();
  if (error != nullptr) std::rethrow_exception(error);
  client->Report(phase.seconds(), counters);
  (*counters)["queries_per_s"] = static_cast<double>(queries.count()) / phase.seconds();
  phase.Report("query", static_cast<double>(queries.count()), counters);
  queries.Report("query", counters);
}

// Arguments: store, indexes, phase, rows.
Counters Measure(const std::vector<std::string>& arguments) {
  Phase::SetBaseline();
  const std::string& until = arguments[2];
  uint64_t indexes = 0, rows = 0;
  if (!absl::SimpleAtoi(arguments[1], &indexes) || !absl::SimpleAtoi(arguments[3], &rows)) {
    throw std::runtime_error("expected numbers");
  }
  const double seconds = std::clamp(static_cast<double>(rows) / 100'000, 0.2, 30.0);
  const Schema schema = MakeSchema(indexes);
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = OpenStore(arguments[0], schema, directory.path());
  Client client(store.get());
  Counters counters;
  auto begin = PhaseClock::now();
  client.Load(rows);
  counters["load_rows_per_s"] = static_cast<double>(rows) / SecondsSince(begin);
  begin = PhaseClock::now();
  store->CreateIndexes();
  if (indexes > 0) counters["index_s"] = SecondsSince(begin);
  const std::unique_ptr<StoreReader> reader = store->NewReader();

  double rate = 0;
  {
    const Phase phase(store.get());
    while (client.inserted() < rows / 4) client.Step();
    const double elapsed = phase.seconds();
    const auto inserted = static_cast<double>(client.inserted());
    rate = inserted / elapsed;
    Counters of_inserts;
    phase.Report("row", inserted, &of_inserts);
    client.Report(elapsed, &of_inserts);
    if (until == "insert") counters.insert(of_inserts.begin(), of_inserts.end());
  }
  if (indexes > 0) {
    std::vector<uint64_t> keys;
    begin = PhaseClock::now();
    reader->Range(0, 0, kRangeRows, &keys);
    counters["first_query_ms"] = 1e3 * SecondsSince(begin);
  }
  if (until == "query") {
    QueryBesideWriter(schema, seconds, store.get(), &client, reader.get(), &counters);
  } else if (until == "steady") {
    const Phase phase(store.get());
    const std::atomic<bool> stop{false};
    client.StepAtRate(rate / 2, seconds, &stop);
    phase.Report("row", static_cast<double>(client.inserted()), &counters);
    client.Report(phase.seconds(), &counters);
    counters["planned_rows_per_s"] = rate / 2;
    counters["late_ms"] = 1e3 * client.late();
  }
  Check(schema, client, reader.get());
  return counters;
}

const ChildMeasurement measurement("insert_benchmark", Measure);

const RegisterInMain registered([] {
  const std::string rows = std::to_string(BenchRows(kRows));
  for (const std::string& store : StoreNames()) {
    std::vector<int> indexes = {3};
    if (store == "plain") indexes = {0};
    if (store == "by_hand" || store == "cairn") indexes = {1, 2, 3};
    for (const int count : indexes) {
      for (const char* phase : {"insert", "query", "steady"}) {
        if (count == 0 && std::string(phase) == "query") continue;
        measurement.RegisterBenchmark(
            absl::StrFormat("InsertBenchmark/%s/indexes:%d/%s/rows:%s", store, count, phase, rows),
            {store, std::to_string(count), phase, rows});
      }
    }
  }
});

}  // namespace
}  // namespace cairn::bench::insert_benchmark
