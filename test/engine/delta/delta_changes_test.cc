#include "engine/delta/delta_changes.h"

#include <boost/test/unit_test.hpp>

#include "test/engine/delta/delta_model.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(delta_changes_test)
namespace {

// The states that changes result in.
template <typename Key>
std::vector<std::pair<std::string, std::set<Key>>> StatesOf(const DeltaChanges& changes) {
  using Physical = PhysicalOf<Key>;
  std::vector<std::pair<std::string, std::set<Key>>> states;
  for (size_t first = 0; first < changes.rows().size(); first += 100) {
    RowUpdates updates(kKindOf<Physical>);
    const size_t count = std::min<size_t>(100, changes.rows().size() - first);
    RequireOk(changes.Append(first, count, &updates));
    uint64_t key = 0;
    for (size_t row = 0; row < count; ++row) {
      std::set<Key> keys;
      for (; key < updates.row_ends[row]; ++key) {
        keys.insert(Key(KeyAt<Physical>(updates.keys, key)));
      }
      states.emplace_back(updates.primary_keys[row], keys);
    }
  }
  return states;
}

// Applies changes, in several batches.
void MustApplyAll(const DeltaChanges& changes, DeltaWriter* writer) {
  for (size_t first = 0; first < changes.rows().size(); first += 77) {
    RowUpdates updates(changes.rows().empty() ? PhysicalType::kU32
                                              : writer->delta()->base_run.kind());
    const size_t count = std::min<size_t>(77, changes.rows().size() - first);
    RequireOk(changes.Append(first, count, &updates));
    RequireOk(writer->Apply(updates));
  }
}

template <typename Key>
void CheckChanges(uint64_t salt) {
  auto random = TestRandom(salt);
  const auto key = [&] {
    if constexpr (std::is_same_v<Key, std::string>) {
      return std::to_string(random() % 500);
    } else {
      return static_cast<Key>(random() % 500);
    }
  };
  const auto change = [&](ModelRows<Key>* rows) {
    RowUpdates updates(kKindOf<PhysicalOf<Key>>);
    ModelRows<Key> states;
    for (int i = 0; i < 60; ++i) {
      std::set<Key>& keys = states["row" + std::to_string(random() % 900)];
      for (uint64_t k = random() % 4; k > 0; --k) keys.insert(key());
    }
    for (const auto& [primary_key, keys] : states) {
      AppendRow(primary_key, keys, &updates);
      (*rows)[primary_key] = keys;
    }
    return updates;
  };
  ModelRows<Key> base_rows;
  for (int i = 0; i < 10; ++i) change(&base_rows);
  const auto writer = MakeWriter(base_rows);
  const std::shared_ptr<const Delta> base = writer->delta();
  ModelRows<Key> rows = base_rows;
  ModelRows<Key> since_rows;
  std::shared_ptr<const Delta> since;
  for (int batch = 0; batch < 20; ++batch) {
    if (batch == 9) {
      since = writer->delta();
      since_rows = rows;
    }
    RequireOk(writer->Apply(change(&rows)));
  }
  const std::shared_ptr<const Delta> now = writer->delta();

  // Since the base: in order, each with its current state, and all that differ from the base.
  const auto changes = RequireOk(DeltaChanges::Since(*base, now));
  const auto states = StatesOf<Key>(changes);
  BOOST_TEST(std::is_sorted(states.begin(), states.end()));
  ModelRows<Key> applied = base_rows;
  for (const auto& [primary_key, keys] : states) {
    BOOST_REQUIRE((keys == rows[primary_key]));
    applied[primary_key] = keys;
  }
  for (const auto& [primary_key, keys] : rows) {
    BOOST_REQUIRE((applied[primary_key] == keys));
  }
  // A writer that applies them has the state of the version.
  const auto second = MakeWriter(base_rows);
  MustApplyAll(changes, second.get());
  VersionCheck<Key>(*second->delta(), IndexSearch(now->base_run), rows)
      .CheckAll({key(), key(), key(), key(), key(), key()});
  BOOST_TEST(second->delta()->Stats().dead_rows == now->Stats().dead_rows);

  // Since a version, over a base that was merged from it.
  ModelRows<Key> merged;
  for (const auto& [primary_key, keys] : since_rows) {
    if (!keys.empty()) merged[primary_key] = keys;
  }
  const auto third = MakeWriter(merged);
  const auto later = RequireOk(DeltaChanges::Since(*since, now));
  MustApplyAll(later, third.get());
  VersionCheck<Key>(*third->delta(), IndexSearch(third->delta()->base_run), rows)
      .CheckAll({key(), key(), key(), key(), key(), key()});
  BOOST_TEST(*DeltaChanges::MostRowsSince(*since, *now) >= later.rows().size());
  BOOST_TEST(DeltaChanges::Since(*now, now)->rows().empty());
  // Deltas of different writers, or in the wrong order.
  for (const auto& [from, to] : {std::pair{second->delta(), now}, {now, since}}) {
    BOOST_TEST(absl::IsInvalidArgument(DeltaChanges::Since(*from, to).status()));
    BOOST_TEST(absl::IsInvalidArgument(DeltaChanges::MostRowsSince(*from, *to).status()));
  }
}

RowUpdates OneRow(const std::string& primary_key, const std::set<uint64_t>& keys) {
  RowUpdates updates(PhysicalType::kU64);
  AppendRow(primary_key, keys, &updates);
  return updates;
}

// The states of all rows that changed, as `name=key,key`.
std::vector<std::string> Texts(const absl::StatusOr<DeltaChanges>& changes) {
  RequireOk(changes);
  std::vector<std::string> texts;
  for (const auto& [primary_key, keys] : StatesOf<uint64_t>(*changes)) {
    std::string text = primary_key + "=";
    for (uint64_t key : keys) text += std::to_string(key) + ",";
    texts.push_back(text);
  }
  return texts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(changes_lead_to_the_version_u32) {
  CheckChanges<uint32_t>(1);
}
BOOST_AUTO_TEST_CASE(changes_lead_to_the_version_u64) {
  CheckChanges<uint64_t>(2);
}
BOOST_AUTO_TEST_CASE(changes_lead_to_the_version_bytes) {
  CheckChanges<std::string>(3);
}

using Texted = std::vector<std::string>;

BOOST_AUTO_TEST_CASE(what_did_not_change_between_is_not_named) {
  ModelRows<uint64_t> rows;
  for (uint64_t i = 0; i < 100'000; ++i) rows["row" + std::to_string(100'000 + i)] = {i};
  const auto writer = MakeWriter(rows);
  RowUpdates most(PhysicalType::kU64);
  for (const auto& [primary_key, keys] : rows) {
    AppendRow<uint64_t>(primary_key, {*keys.begin() + 1}, &most);
  }
  RequireOk(writer->Apply(most));
  const std::shared_ptr<const Delta> since = writer->delta();
  RequireOk(writer->Apply(OneRow("row100007", {5, 3})));
  RequireOk(writer->Apply(OneRow("new", {1})));
  RequireOk(writer->Apply(OneRow("row100009", {10})));  // unchanged
  RequireOk(writer->Apply(OneRow("row100008", {})));
  const auto now = writer->delta();
  BOOST_TEST((Texts(DeltaChanges::Since(*since, now)) ==
              Texted{"new=1,", "row100007=3,5,", "row100008="}));
  BOOST_TEST(*DeltaChanges::MostRowsSince(*since, *now) == 3u);
}

BOOST_AUTO_TEST_CASE(what_was_rolled_back_did_not_change) {
  const auto writer = MakeWriter(ModelRows<uint64_t>{{"a", {1}}, {"b", {2}}});
  const auto base = writer->delta();
  RequireOk(writer->Apply(OneRow("c", {3})));
  const auto kept = writer->delta();
  for (int round = 0; round < 3; ++round) {
    RequireOk(writer->Apply(OneRow("a", {7})));
    RequireOk(writer->Apply(OneRow("d" + std::to_string(round), {7})));
    writer->RollBack(kept);
    BOOST_TEST((Texts(DeltaChanges::Since(*base, writer->delta())) == Texted{"c=3,"}));
  }
  RequireOk(writer->Apply(OneRow("e", {5})));
  BOOST_TEST((Texts(DeltaChanges::Since(*kept, writer->delta())) == Texted{"e=5,"}));
  BOOST_TEST((Texts(DeltaChanges::Since(*base, writer->delta())) == Texted{"c=3,", "e=5,"}));
}

BOOST_AUTO_TEST_CASE(an_update_that_fails_did_not_change_anything) {
  const auto writer = MakeWriter(ModelRows<uint64_t>{{"a", {1}}});
  const auto base = writer->delta();
  RowUpdates twice = OneRow("b", {2});
  AppendRow<uint64_t>("b", {3}, &twice);
  BOOST_TEST(!writer->Apply(twice).ok());
  BOOST_TEST(Texts(DeltaChanges::Since(*base, writer->delta())).empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
