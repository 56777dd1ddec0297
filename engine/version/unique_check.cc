#include "engine/version/unique_check.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "engine/build/unique_filter.h"
#include "engine/delta/delta_changes.h"
#include "engine/util/make_room.h"
#include "engine/version/versioned_search.h"
#include "index/keys/key_nulls.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

constexpr size_t kChangesAtATime = size_t{1} << 16;

bool KeyLess(const EncodedKeys& keys, size_t a, size_t b) {
  return WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    return KeyAt<Key>(keys, a) < KeyAt<Key>(keys, b);
  });
}

// The rows of updates; their earlier entries in the index are removed.
class TouchedRows {
 public:
  explicit TouchedRows(const RowUpdates& updates) : updates_(updates) {
    for (size_t i = 0; i < updates.rows(); ++i) {
      MakeRoomForOne(&listed_);
      listed_.insert(updates.primary_keys[i]);
    }
  }
  bool Has(std::string_view primary_key) const {
    if (listed_.contains(primary_key)) return true;
    for (size_t i = 0; i < updates_.deleted_from.size(); ++i) {
      if (updates_.deleted_from[i] <= primary_key && primary_key < updates_.deleted_to[i]) {
        return true;
      }
    }
    return false;
  }

 private:
  const RowUpdates& updates_;
  absl::flat_hash_set<std::string_view> listed_;
};

// The keys of updated rows that no other row may have: those without nulls, which are equal to
// nothing.
struct KeysToCheck {
  EncodedKeys keys;
  std::vector<size_t> row_of;

  static absl::StatusOr<KeysToCheck> Of(const IndexVersion& version, const RowUpdates& updates) {
    const KeyCodec& codec = version.base->codec;
    KeysToCheck all{EncodedKeys(updates.keys.kind()), {}};
    const bool keeps_nulls = codec.nulls() != NullPolicy::kSkip;
    if (!keeps_nulls) all.keys = updates.keys;
    for (size_t row = 0, i = 0; row < updates.rows(); ++row) {
      for (; i < updates.row_ends[row]; ++i) {
        if (keeps_nulls) {
          ASSIGN_OR_RETURN(const bool has_null, HasNull(codec, updates.keys, i));
          if (has_null) continue;
          WithPhysicalKey(updates.keys.kind(), [&](auto type) {
            using Key = typename decltype(type)::type;
            AppendKey<Key>(KeyAt<Key>(updates.keys, i), &all.keys);
          });
        }
        all.row_of.push_back(row);
      }
    }
    return all;
  }
};

// Checks that no two of the updated rows have the same key. `row_has_key` is for rows that are, or
// were, in the database as in the updates; null for others.
absl::Status CheckAmongUpdates(const IndexVersion& version, const KeysToCheck& of,
                               const RowUpdates& updates, const RowHasKey& row_has_key) {
  const EncodedKeys& keys = of.keys;
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return KeyLess(keys, a, b); });
  for (size_t i = 1, a = order.empty() ? 0 : order[0]; i < order.size(); ++i) {
    const size_t b = order[i];  // a: the last valid one before
    if (KeyLess(keys, a, b) || of.row_of[a] == of.row_of[b]) {
      a = b;
      continue;
    }
    if (row_has_key != nullptr) {
      ASSIGN_OR_RETURN(const bool b_has, row_has_key(updates.primary_keys[of.row_of[b]], keys, b));
      if (!b_has) continue;
      ASSIGN_OR_RETURN(const bool a_has, row_has_key(updates.primary_keys[of.row_of[a]], keys, a));
      if (!a_has) {
        a = b;
        continue;
      }
    }
    return DuplicateKey(version.base->codec, keys, a, updates.primary_keys[of.row_of[a]],
                        updates.primary_keys[of.row_of[b]]);
  }
  return absl::OkStatus();
}

// `applied`: the updates are in the delta, and their rows are in the database unless deleted since.
absl::Status CheckUpdates(const IndexVersion& version, const Delta& delta,
                          const RowUpdates& updates, const RowHasKey& row_has_key, bool applied) {
  ASSIGN_OR_RETURN(KeysToCheck of, KeysToCheck::Of(version, updates));
  if (of.keys.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckAmongUpdates(version, of, updates, applied ? row_has_key : nullptr));
  FindResult matches;
  RETURN_IF_ERROR(AnswerVersion(
      delta, [&](const Batch& batch) { return version.base->router->Execute(batch); },
      Batch::Find(of.keys.Batch(), &matches)));
  if (matches.row_ids.empty()) return absl::OkStatus();

  StringList primary_keys;  // of the rows with these keys
  RETURN_IF_ERROR(delta.PrimaryKeys(matches.row_ids, &primary_keys));
  const TouchedRows touched(updates);
  for (size_t key = 0; key < of.row_of.size(); ++key) {
    for (uint64_t m = matches.offsets[key]; m < matches.offsets[key + 1]; ++m) {
      if (touched.Has(primary_keys[m])) continue;
      if (row_has_key != nullptr) {
        ASSIGN_OR_RETURN(const bool has, row_has_key(primary_keys[m], of.keys, key));
        if (!has) continue;
      }
      if (row_has_key != nullptr && applied) {
        ASSIGN_OR_RETURN(const bool has,
                         row_has_key(updates.primary_keys[of.row_of[key]], of.keys, key));
        if (!has) break;
      }
      return DuplicateKey(version.base->codec, of.keys, key, primary_keys[m],
                          updates.primary_keys[of.row_of[key]]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUnique(const IndexVersion& version, const Delta& delta, const RowUpdates& updates,
                         const RowHasKey& row_has_key) {
  return CheckUpdates(version, delta, updates, row_has_key, /*applied=*/false);
}

absl::Status CheckUniqueSince(const IndexVersion& version,
                              const std::shared_ptr<const Delta>& delta,
                              const RowHasKey& row_has_key) {
  ASSIGN_OR_RETURN(const DeltaChanges changes, DeltaChanges::Since(*version.delta, delta));
  for (size_t first = 0; first < changes.rows().size(); first += kChangesAtATime) {
    RowUpdates updates(version.base->run().kind());
    const size_t count = std::min(kChangesAtATime, changes.rows().size() - first);
    RETURN_IF_ERROR(changes.Append(first, count, &updates));
    // The lookups find the current state of these rows.
    RETURN_IF_ERROR(CheckUpdates(version, *delta, updates, row_has_key, /*applied=*/true));
  }
  return absl::OkStatus();
}

}  // namespace cairn
