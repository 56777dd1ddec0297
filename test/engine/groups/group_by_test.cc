// Groups of the rows of predicates and their aggregates, compared with brute force: nulls, NaN and
// -0, changes since the base, compactions of only one index, orders and pages.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_group.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(group_by_test)
namespace {

using Value = std::variant<std::monostate, int64_t, double, std::string>;
using Row = std::map<std::string, Value>;  // by column

// -0 before 0, NaN last; null before all.
bool Less(const Value& a, const Value& b) {
  if (a.index() != b.index()) return a.index() < b.index();
  const auto* const x = std::get_if<double>(&a);
  if (x == nullptr) return a < b;
  const double y = std::get<double>(b);
  if (std::isnan(*x) || std::isnan(y)) return !std::isnan(*x);
  return *x != y ? *x < y : std::signbit(*x) && !std::signbit(y);
}
struct LessValues {
  bool operator()(const std::vector<Value>& a, const std::vector<Value>& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), Less);
  }
};

Value Of(const DataValue& value) {
  if (const auto* n = std::get_if<uint64_t>(&value)) return static_cast<int64_t>(*n);
  if (const auto* n = std::get_if<int64_t>(&value)) return *n;
  if (const auto* n = std::get_if<double>(&value)) return *n;
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
  return {};
}

std::string TextOf(const Value& value) {
  if (const auto* n = std::get_if<int64_t>(&value)) return absl::StrCat(*n);
  if (const auto* n = std::get_if<double>(&value)) {
    return std::isnan(*n) ? "nan" : absl::StrFormat("%s%.17g", std::signbit(*n) ? "" : "+", *n);
  }
  if (const auto* text = std::get_if<std::string>(&value)) return absl::StrCat("'", *text, "'");
  return "null";
}

double NumberIn(const Value& value) {
  const auto* const n = std::get_if<int64_t>(&value);
  return n == nullptr ? std::get<double>(value) : static_cast<double>(*n);
}

Value Aggregated(const Aggregate& aggregate, const std::vector<const Row*>& rows) {
  using Function = AggregateFunction;
  if (aggregate.column.empty()) return static_cast<int64_t>(rows.size());
  std::vector<Value> values;
  for (const Row* row : rows) {
    const Value& value = row->at(aggregate.column);
    if (value.index() != 0) values.push_back(value);
  }
  const auto size = static_cast<int64_t>(values.size());
  if (aggregate.function == Function::kCount) return size;
  if (aggregate.function == Function::kCountDistinct) {
    return static_cast<int64_t>(
        std::set<Value, bool (*)(const Value&, const Value&)>(values.begin(), values.end(), Less)
            .size());
  }
  if (values.empty()) return {};
  if (aggregate.function == Function::kMin) {
    return *std::min_element(values.begin(), values.end(), Less);
  }
  if (aggregate.function == Function::kMax) {
    return *std::max_element(values.begin(), values.end(), Less);
  }
  double sum = 0;
  for (const Value& value : values) sum += NumberIn(value);  // exact: they are few and round
  if (aggregate.function == Function::kAvg) return sum / static_cast<double>(size);
  return values[0].index() == 1 ? Value(static_cast<int64_t>(sum)) : Value(sum);
}

// A database of rows "age|city|status|score|weight", whose last fields may be missing.
class World {
 public:
  World(std::mt19937_64* random, bool together) : random_(*random), together_(together) {}

  void Change(size_t times, size_t keys) {
    for (size_t i = 0; i < times; ++i) {
      const std::string key = absl::StrFormat("k%05d", random_() % keys);
      if (random_() % 5 == 0) {
        db_.Delete(key);
        rows_.erase(key);
        continue;
      }
      Row row = {{"age", {}}, {"city", {}}, {"status", {}}, {"score", {}}, {"weight", {}}};
      std::string value;
      const auto add = [&](const char* name, const Value& of, const std::string& text) {
        row[name] = of;
        absl::StrAppend(&value, value.empty() ? "" : "|", text);
      };
      const uint64_t fields = 1 + random_() % 7;
      const auto age = static_cast<int64_t>(random_() % 20) - 4;
      add("age", age, absl::StrCat(age));
      const auto pick = [&](std::initializer_list<const char*> of) {
        return std::string(of.begin()[random_() % of.size()]);
      };
      if (fields > 1) {
        const std::string city = pick({"", "Lis", "Lisbon", "Oslo", "O'Porto", "x"});
        add("city", city, city);
      }
      if (fields > 2) {
        const std::string status = pick({"open", "shut", "closed"});
        add("status", status, status);
      }
      if (fields > 3) {
        const auto score = static_cast<int64_t>(random_() % 1000);
        add("score", score, absl::StrCat(score));
      }
      if (fields > 4) {
        const std::string weight = pick({"0.5", "-0.0", "0", "2.25", "-7.5", "100"});
        add("weight", std::stod(weight), weight);
      }
      // Columns also have other names.
      row["age.score"] = row["score"];
      row["place.part1"] = fields > 2 ? row["city"] : Value();
      row["place.part2"] = row["status"];
      db_.Put(key, value);
      rows_[key] = row;
    }
  }
  void Build() {
    const char* const specs[] = {
        "age = value.field('|',0):i32, include(score = value.field('|',3):u32, weight = "
        "value.field('|',4):f64)",
        "city = value.field('|',1):text, nulls=first, include(status = value.field('|',2):text)",
        "place = value.field('|',1):text, value.field('|',2):text"};
    std::vector<BuildTarget> targets;
    for (size_t i = 0; i < std::size(specs); ++i) {
      targets.push_back({Spec(specs[i]), db_.Beside(absl::StrFormat("index%d", i))});
      if (together_) continue;
      RequireOk(SecondaryIndex::BuildAll(*db_.Source(), absl::MakeConstSpan(&targets[i], 1)));
      Change(20, 200);
    }
    if (together_) RequireOk(SecondaryIndex::BuildAll(*db_.Source(), targets));
    for (const BuildTarget& target : targets) {
      indexes_.push_back(RequireOk(SecondaryIndex::Open(target.directory)));
    }
    CatchUp();
  }
  void CatchUp() {
    for (auto& index : indexes_) RequireOk(index->CatchUp(*db_.Source()));
  }
  void Merge(size_t i) { RequireOk(indexes_[i % indexes_.size()]->Compact()); }
  std::shared_ptr<const IndexGroup> Group() const {
    std::vector<IndexGroup::Member> members;
    for (const auto& index : indexes_) members.push_back({index});
    return RequireOk(IndexGroup::Create(std::move(members)));
  }
  const std::map<std::string, Row>& rows() const { return rows_; }

 private:
  std::mt19937_64& random_;
  const bool together_;
  TestDatabase db_;
  std::map<std::string, Row> rows_;
  std::vector<std::shared_ptr<SecondaryIndex>> indexes_;
};

struct Where {
  Predicate predicate;
  std::function<bool(const Row&)> is_true;
};

Where MakeWhere(std::mt19937_64& random) {
  const auto lower = static_cast<int64_t>(random() % 26) - 6;
  const auto city = random() % 2 == 0 ? "Lisbon" : "Oslo";
  const auto age_at_least = [lower](const Row& row) {
    return std::get<int64_t>(row.at("age")) >= lower;
  };
  const auto in_city = [city](const Row& row) {
    return row.at("city") == Value(std::string(city));
  };
  const Predicate age = Predicate("age", KeyQuery::AtLeast(lower));
  switch (random() % 6) {
    case 0:
      return {Predicate::All({}), [](const Row&) { return true; }};
    case 1:
      return {age, age_at_least};
    case 2:
      return {age && Predicate("city", city),
              [=](const Row& row) { return age_at_least(row) && in_city(row); }};
    case 3:
      return {!age || Predicate("city", city),
              [=](const Row& row) { return !age_at_least(row) || in_city(row); }};
    case 4:
      return {Predicate::IsNull("city"),
              [](const Row& row) { return row.at("city").index() == 0; }};
    default:
      return {Predicate::Any({}), [](const Row&) { return false; }};
  }
}

std::string LineOf(const std::vector<Value>& values) {
  std::string line;
  for (const Value& value : values) absl::StrAppend(&line, TextOf(value), " ");
  return line;
}

// A random query, page by page, by any strategy.
void CheckOne(const World& world, const IndexGroup& group, std::mt19937_64& random) {
  const Where where = MakeWhere(random);
  const std::vector<std::string> columns = {"age",       "city",        "status",      "score",
                                            "age.score", "place.part1", "place.part2", "weight"};
  const auto column = [&] { return columns[random() % columns.size()]; };
  GroupByOptions options;
  for (uint64_t n = random() % 4; n > 0; --n) options.group_by.push_back(column());
  std::vector<Aggregate> aggregates;
  for (uint64_t n = (options.group_by.empty() ? 1 : 0) + random() % 4; n > 0; --n) {
    const auto function = static_cast<AggregateFunction>(random() % 6);
    Aggregate aggregate = {function, column()};
    if (function == AggregateFunction::kSum || function == AggregateFunction::kAvg) {
      aggregate.column = std::vector<const char*>{"age", "score", "weight"}[random() % 3];
    }
    if (function == AggregateFunction::kCount && random() % 2 == 0) aggregate.column.clear();
    aggregates.push_back(aggregate);
  }
  const size_t all = options.group_by.size() + aggregates.size();
  for (uint64_t n = random() % 3; n > 0; --n) {
    options.order_by.push_back(
        {random() % all, random() % 2 == 0 ? Order::kAscending : Order::kDescending});
  }
  std::map<std::vector<Value>, std::vector<const Row*>, LessValues> expected_groups;
  if (options.group_by.empty()) expected_groups[{}];
  uint64_t expected_rows = 0;
  for (const auto& [primary_key, row] : world.rows()) {
    if (!where.is_true(row)) continue;
    ++expected_rows;
    std::vector<Value> key;
    for (const std::string& name : options.group_by) key.push_back(row.at(name));
    expected_groups[key].push_back(&row);
  }
  std::vector<std::vector<Value>> expected;
  for (const auto& [key, rows] : expected_groups) {
    expected.push_back(key);
    for (const Aggregate& a : aggregates) expected.back().push_back(Aggregated(a, rows));
  }
  std::stable_sort(expected.begin(), expected.end(), [&](const auto& a, const auto& b) {
    for (const GroupOrder& by : options.order_by) {
      const bool less = Less(a[by.column], b[by.column]), more = Less(b[by.column], a[by.column]);
      if (less || more) return by.order == Order::kAscending ? less : more;
    }
    return false;
  });
  options.limit = random() % 2 == 0 ? std::numeric_limits<uint64_t>::max() : 1 + random() % 9;
  options.strategy = std::vector{WhereStrategy::kAuto, WhereStrategy::kGather,
                                 WhereStrategy::kBitmap}[random() % 3];
  BOOST_TEST_CONTEXT("where " << where.predicate.ToString()) {
    std::vector<std::string> found;
    GroupByResult groups;
    do {
      RequireOk(group.GroupBy(where.predicate, aggregates, options, &groups));
      BOOST_TEST(groups.rows == expected_rows);
      BOOST_REQUIRE(groups.size <= options.limit);
      BOOST_TEST((groups.cursor.empty() || groups.size == options.limit));
      for (size_t i = 0; i < groups.size; ++i) {
        std::vector<Value> line;
        for (const ColumnValues& key : groups.keys) line.push_back(Of(key.value(i)));
        for (const ColumnValues& value : groups.values) line.push_back(Of(value.value(i)));
        found.push_back(LineOf(line));
      }
      options.after = groups.cursor;
    } while (!options.after.empty());
    std::vector<std::string> lines;
    for (const auto& line : expected) lines.push_back(LineOf(line));
    BOOST_TEST(found == lines, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(random_questions_as_by_brute_force) {
  std::mt19937_64 random = TestRandom();
  for (const bool together : {true, false}) {
    for (const size_t keys : {0, 1, 700}) {
      World world(&random, together);
      world.Change(keys * 2, std::max<size_t>(keys, 1));
      world.Build();
      for (int round = 0; round < 3; ++round) {
        const auto group = world.Group();
        for (size_t i = 0; i < FewerSanitized(120, 12, 12); ++i) CheckOne(world, *group, random);
        world.Change(keys / 6 + 1, keys + 50);
        world.CatchUp();
        if (round > 0) world.Merge(random());
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
