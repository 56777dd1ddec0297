#include "engine/live/lookup.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"
#include "engine/serve/open_index.h"
#include "engine/util/scan_cursor.h"
#include "engine/version/distinct_rows.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status Refused(const SecondaryIndex& index, std::string_view what,
                     const absl::Status& status) {
  return absl::Status(status.code(), absl::StrFormat("index '%s', %s: %s", index.spec().name, what,
                                                     status.message()));
}

// A query in physical keys.
class PhysicalQuery {
 public:
  static absl::StatusOr<PhysicalQuery> Encode(const SecondaryIndex& index, const KeyQuery& query,
                                              const LookupOptions& options) {
    if (!options.after.empty() && query.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a lookup goes on after a cursor for one key, prefix or range, not for a "
                          "batch of %d keys",
                          query.size()));
    }
    PhysicalQuery encoded(index.codec().kind(), query.kind() == KeyQuery::Kind::kKeys);
    absl::Status status;
    if (!options.after.empty()) {
      status = ScanCursor::Decode(options.after, index.codec().kind()).status();
      if (!status.ok()) return Refused(index, "LookupOptions::after", status);
      encoded.after_.push_back(options.after);
    }
    switch (query.kind()) {
      case KeyQuery::Kind::kKeys:
        status = encoded.AppendKeys(index, query.keys());
        break;
      case KeyQuery::Kind::kLeading:
        status = encoded.AppendLeading(index, "leading parts", query.keys()[0],
                                       /*last_is_prefix=*/false);
        break;
      case KeyQuery::Kind::kPrefix:
        status = encoded.AppendPrefix(index, query.keys()[0]);
        break;
      case KeyQuery::Kind::kRange:
        status = encoded.AppendRange(index, query);
        break;
    }
    if (!status.ok()) return status;
    return encoded;
  }

  bool is_keys() const { return is_keys_; }
  KeyBatch keys() { return lower_.Batch(); }
  RangeBatch ranges() {
    RangeBatch ranges = is_keys_ ? RangeBatch::Equal(lower_.Batch())
                                 : RangeBatch::HalfOpen(lower_.Batch(), upper_.Batch());
    if (lower_open_) ranges.lower_bound = Bound::kOpen;
    if (upper_open_) ranges.upper_bound = Bound::kOpen;
    ranges.after = after_;
    return ranges;
  }

 private:
  PhysicalQuery(PhysicalType kind, bool is_keys) : is_keys_(is_keys), lower_(kind), upper_(kind) {}

  absl::Status AppendKeys(const SecondaryIndex& index, absl::Span<const LogicalKey> keys) {
    for (size_t i = 0; i < keys.size(); ++i) {
      absl::Status s = index.codec().Append(keys[i].parts(), &lower_);
      if (s.ok()) continue;
      if (keys[i].parts().size() == 1 && index.codec().parts().size() > 1) {
        s = absl::Status(
            s.code(), absl::StrFormat("%s; a key of several parts has braces of its own: {{a, b}}",
                                      s.message()));
      }
      return Refused(index, absl::StrFormat("key %d of %d", i + 1, keys.size()), s);
    }
    return absl::OkStatus();
  }

  absl::Status AppendPrefix(const SecondaryIndex& index, const LogicalKey& prefix) {
    const absl::Span<const DataType> types = index.codec().parts();
    const size_t parts = prefix.parts().size();
    bool is_text = false;
    if (parts > 0 && parts <= types.size()) {
      const DataType last = types[parts - 1];
      is_text = last == DataType::kText || last == DataType::kBytes;
    }
    return AppendLeading(index, "prefix", prefix, is_text);
  }

  // The range of keys that begin with these parts.
  absl::Status AppendLeading(const SecondaryIndex& index, std::string_view what,
                             const LogicalKey& parts, bool last_is_prefix) {
    const absl::Status s = index.codec().AppendPrefixRange(parts.parts(), last_is_prefix, &lower_,
                                                           &upper_, &upper_open_);
    return s.ok() ? s : Refused(index, what, s);
  }

  absl::Status AppendRange(const SecondaryIndex& index, const KeyQuery& query) {
    lower_open_ = query.lower_open();
    upper_open_ = query.upper_open();
    if (absl::Status s = AppendEnd(index.codec(), query.keys()[0], lower_open_, &lower_); !s.ok()) {
      return Refused(index, "lower end", s);
    }
    if (absl::Status s = AppendEnd(index.codec(), query.keys()[1], upper_open_, &upper_); !s.ok()) {
      return Refused(index, "upper end", s);
    }
    return absl::OkStatus();
  }

  // Appends the first key that begins with these parts, or some key where the end is open.
  static absl::Status AppendEnd(const KeyCodec& codec, const LogicalKey& end, bool open,
                                EncodedKeys* keys) {
    if (open) {
      AppendPlaceholder(keys);
      return absl::OkStatus();
    }
    if (end.parts().size() == codec.parts().size()) return codec.Append(end.parts(), keys);
    EncodedKeys beyond(codec.kind());
    bool beyond_is_open = false;
    return codec.AppendPrefixRange(end.parts(), /*last_is_prefix=*/false, keys, &beyond,
                                   &beyond_is_open);
  }
  static void AppendPlaceholder(EncodedKeys* keys) {
    switch (keys->kind()) {
      case PhysicalType::kU32:
        return keys->AppendU32(0);
      case PhysicalType::kU64:
        return keys->AppendU64(0);
      case PhysicalType::kBytes:
        return keys->AppendBytes("");
    }
  }

  bool is_keys_;
  bool lower_open_ = false;
  bool upper_open_ = false;
  EncodedKeys lower_;
  EncodedKeys upper_;
  std::vector<std::string> after_;
};

QueryOptions ScanOptions(const LookupOptions& options) {
  QueryOptions scan;
  scan.limit = options.limit;
  scan.order = options.order;
  return scan;
}

// Keeps of one range's rows the first of those that are equal.
void DropRepeatedRows(FindResult* matches) {
  std::unordered_set<RowId> seen;
  const auto repeats = [&](RowId row) { return !seen.insert(row).second; };
  matches->row_ids.erase(std::remove_if(matches->row_ids.begin(), matches->row_ids.end(), repeats),
                         matches->row_ids.end());
  matches->offsets = {0, matches->row_ids.size()};
}

absl::StatusOr<FindResult> FindRows(const SecondaryIndex& version, PhysicalQuery* query,
                                    const LookupOptions& options) {
  FindResult matches;
  const bool whole = options.limit == LookupOptions().limit && options.after.empty() &&
                     options.order == Order::kAscending;
  if (query->is_keys() && whole) {
    RETURN_IF_ERROR(version.Find(query->keys(), &matches));
    return matches;
  }
  if (query->is_keys() || !MayHaveSeveralKeys(version.spec())) {
    RETURN_IF_ERROR(version.Scan(query->ranges(), &matches, ScanOptions(options)));
    return matches;
  }
  const std::shared_ptr<const IndexVersion> of_entries = VersionOf(version);
  RETURN_IF_ERROR(ScanDistinctRows(
      absl::MakeConstSpan(&of_entries, 1),
      [&](const Batch& batch) { return version.Execute(batch); }, query->ranges(),
      ScanOptions(options), &matches));
  DropRepeatedRows(&matches);  // of an answer that is no page
  return matches;
}

}  // namespace

absl::StatusOr<FoundKeys> LookUpKeys(const SecondaryIndex& version, const KeyQuery& query,
                                     const LookupOptions& options) {
  ASSIGN_OR_RETURN(PhysicalQuery physical, PhysicalQuery::Encode(version, query, options));
  ASSIGN_OR_RETURN(FindResult matches, FindRows(version, &physical, options));
  auto keys = std::make_shared<StringList>();
  RETURN_IF_ERROR(version.PrimaryKeys(matches.row_ids, keys.get()));
  std::vector<ColumnValues> columns;
  if (!options.columns.empty()) {
    RETURN_IF_ERROR(version.Columns(matches.row_ids, options.columns, &columns));
  }
  std::vector<std::string_view> views;
  views.reserve(keys->size());
  for (size_t i = 0; i < keys->size(); ++i) views.push_back((*keys)[i]);
  return FoundKeys(std::move(views), std::move(matches.offsets), std::move(matches.cursors),
                   std::move(keys), std::move(columns));
}

absl::StatusOr<FoundRows> LookUpRows(const SecondaryIndex& version, const SnapshotSource& rows,
                                     const KeyQuery& query, const LookupOptions& options) {
  if (!options.columns.empty()) {
    return absl::InvalidArgumentError(
        "LookupRows returns whole rows and no columns, which Lookup returns");
  }
  ASSIGN_OR_RETURN(PhysicalQuery physical, PhysicalQuery::Encode(version, query, options));
  auto fetched = std::make_shared<FetchResult>();
  RETURN_IF_ERROR(version.Fetch(rows, physical.ranges(), ScanOptions(options), fetched.get()));
  std::vector<FoundRow> found;
  found.reserve(fetched->primary_keys.size());
  for (size_t i = 0; i < fetched->primary_keys.size(); ++i) {
    found.push_back({fetched->primary_keys[i], fetched->values[i]});
  }
  std::vector<uint64_t> offsets = std::move(fetched->offsets);
  std::vector<std::string> cursors = std::move(fetched->cursors);
  return FoundRows(std::move(found), std::move(offsets), std::move(cursors), std::move(fetched));
}

}  // namespace cairn
