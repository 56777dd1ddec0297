#include "engine/serve/existing_rows.h"

#include "engine/delta/row_updates.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/serve/change_extractor.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

bool SameKey(const EncodedKeys& a, size_t i, const EncodedKeys& b, size_t j) {
  return WithPhysicalKey(a.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    return KeyAt<Key>(a, i) == KeyAt<Key>(b, j);
  });
}

}  // namespace

absl::StatusOr<bool> ExistingRowHasKey(const SnapshotSource& source, const IndexSpec& spec,
                                       std::string_view primary_key, const EncodedKeys& keys,
                                       size_t i) {
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(spec));
  RowChanges look_up;
  look_up.LookUp(primary_key);
  SettledChanges settled;
  settled.Settle(look_up);
  RowUpdates row(keys.kind());
  RETURN_IF_ERROR(extractor.Extract(settled, &source, &row));
  for (size_t k = 0; k < row.keys.size(); ++k) {
    if (SameKey(row.keys, k, keys, i)) return true;
  }
  return false;
}

}  // namespace cairn
