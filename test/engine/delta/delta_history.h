#pragma once

// Random histories of rows, for tests that write and read deltas.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/delta/delta_changes.h"
#include "test/engine/delta/delta_model.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {

// The parameters of a history.
struct HistoryShape {
  uint64_t salt = 0;
  size_t keys = 400;          // possible keys
  size_t primary_keys = 900;  // possible primary keys
  size_t max_keys_a_row = 1;
  size_t percent_without = 20;  // rows without a key
};

template <typename Key>
class History {
 public:
  explicit History(const HistoryShape& shape) : shape_(shape), random_(TestRandom(shape.salt)) {}

  uint64_t operator()() { return random_(); }

  // Some are prefixes of others, contain zero bytes, or are empty.
  std::string PrimaryKey() {
    const uint64_t k = random_() % shape_.primary_keys;
    return k == 0 ? ""
                  : std::string(k % 3, '\0') + "row" + std::to_string(k) + std::string(k % 2, '\0');
  }
  Key AnyKey() {
    const uint64_t k = random_() % shape_.keys;
    if constexpr (std::is_same_v<Key, std::string>) {
      return std::string(k % 5, '\0') + std::to_string(k / 2) + std::string(k % 2, '\xff');
    } else {
      return k % 50 == 0 ? static_cast<Key>(~Key{0} - k) : static_cast<Key>(k * 37);
    }
  }
  std::set<Key> Keys() {
    std::set<Key> keys;
    if (random_() % 100 < shape_.percent_without) return keys;
    for (size_t i = 1 + random_() % shape_.max_keys_a_row; i > 0; --i) keys.insert(AnyKey());
    return keys;
  }
  ModelRows<Key> Rows(size_t count) {
    ModelRows<Key> rows;
    for (size_t i = 0; i < count; ++i) rows[PrimaryKey()] = Keys();
    return rows;
  }

  // Updates of up to `count` rows, which are applied to the model. A row that they leave without
  // keys is removed from it; a row that the base had without keys stays until it is updated.
  RowUpdates Updates(size_t count, ModelRows<Key>* rows) {
    RowUpdates updates(kKindOf<PhysicalOf<Key>>);
    while (random_() % 4 == 0) {
      const std::string from = PrimaryKey();
      const std::string to = random_() % 3 == 0 ? PrimaryKey() : from + '5';
      updates.DeleteRange(from, to);
      if (from < to) rows->erase(rows->lower_bound(from), rows->lower_bound(to));
    }
    std::map<std::string, std::set<Key>> states;
    for (size_t i = 0; i < count; ++i) states[PrimaryKey()] = Keys();
    std::vector<std::string> order;
    for (const auto& state : states) order.push_back(state.first);
    if (random_() % 2 == 0) std::shuffle(order.begin(), order.end(), random_);
    for (const std::string& primary_key : order) {
      const std::set<Key>& keys = states[primary_key];
      AppendRow(primary_key, keys, &updates);
      if (keys.empty()) {
        rows->erase(primary_key);
      } else {
        (*rows)[primary_key] = keys;
      }
    }
    return updates;
  }

  std::vector<Key> Queries(size_t count) {
    std::vector<Key> queries;
    for (size_t i = 0; i < count; ++i) queries.push_back(AnyKey());
    return queries;
  }

 private:
  const HistoryShape shape_;
  std::mt19937_64 random_;
};

inline std::shared_ptr<const Delta> Apply(DeltaWriter* writer, const RowUpdates& updates) {
  return RequireOk(writer->Apply(updates));
}

// All changes as one batch of updates.
inline RowUpdates UpdatesOf(const absl::StatusOr<DeltaChanges>& changes, PhysicalType kind) {
  RequireOk(changes);
  RowUpdates updates(kind);
  RequireOk(changes->Append(0, changes->rows().size(), &updates));
  return updates;
}

// Checks that a version has the results of an index over the model's rows.
template <typename Key>
void CheckVersion(const Delta& delta, const ModelRows<Key>& rows, History<Key>* history) {
  const IndexSearch base(delta.base_run);
  VersionCheck<Key>(delta, base, rows).CheckAll(history->Queries(100));
}

}  // namespace cairn
