#include "engine/util/key_order.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"

namespace cairn {
namespace {

// The comparators of MyRocks, in all of its versions. Comparators of other systems are not listed
// if one of their versions has another order under the same name: older versions of
// rocksdb.java.BytewiseComparator compare signed bytes.
constexpr std::string_view kMyRocks = "RocksDB_SE_v3.10";
constexpr std::string_view kMyRocksReverse = "rev:RocksDB_SE_v3.10";

const rocksdb::Comparator* OwnComparator(KeyOrder order) {
  return order == KeyOrder::kBytewise ? rocksdb::BytewiseComparator()
                                      : rocksdb::ReverseBytewiseComparator();
}

std::optional<KeyOrder> KnownOrder(std::string_view name) {
  for (const KeyOrder order : {KeyOrder::kBytewise, KeyOrder::kReverseBytewise}) {
    if (name == OwnComparator(order)->Name()) return order;
  }
  if (name == kMyRocks) return KeyOrder::kBytewise;
  if (name == kMyRocksReverse) return KeyOrder::kReverseBytewise;
  return std::nullopt;
}

// One of RocksDB's comparators under another name.
class RenamedComparator final : public rocksdb::Comparator {
 public:
  RenamedComparator(std::string name, const rocksdb::Comparator* own)
      : name_(std::move(name)), own_(own) {}

  const char* Name() const override { return name_.c_str(); }
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return own_->Compare(a, b);
  }
  bool Equal(const rocksdb::Slice& a, const rocksdb::Slice& b) const override { return a == b; }
  void FindShortestSeparator(std::string* start, const rocksdb::Slice& limit) const override {
    own_->FindShortestSeparator(start, limit);
  }
  void FindShortSuccessor(std::string* key) const override { own_->FindShortSuccessor(key); }
  bool CanKeysWithDifferentByteContentsBeEqual() const override { return false; }

 private:
  const std::string name_;
  const rocksdb::Comparator* const own_;
};

struct Comparators {
  Mutex mutex;
  std::map<std::string, KeyOrder, std::less<>> declared ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::unique_ptr<const RenamedComparator>, std::less<>>
      made[2] ABSL_GUARDED_BY(mutex);
};

// Never destroyed, because open databases have pointers to comparators.
Comparators& TheComparators() {
  static Comparators* const comparators = new Comparators;
  return *comparators;
}

}  // namespace

absl::Status DeclareComparator(std::string name, KeyOrder order) try {
  if (name.empty()) {
    return absl::InvalidArgumentError("expected the name of a comparator, found none");
  }
  std::optional<KeyOrder> before = KnownOrder(name);
  if (!before.has_value()) {
    Comparators& comparators = TheComparators();
    const MutexLock lock(&comparators.mutex);
    before = comparators.declared.emplace(name, order).first->second;
  }
  if (before == order) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrFormat("comparator '%s' is already known to order keys %s", name,
                      before == KeyOrder::kBytewise ? "by their bytes" : "in reverse"));
} catch (...) {
  return StatusOfException("declaring a comparator");
}

std::optional<KeyOrder> KeyOrderOfName(std::string_view name) {
  if (const std::optional<KeyOrder> known = KnownOrder(name)) return known;
  Comparators& comparators = TheComparators();
  const MutexLock lock(&comparators.mutex);
  const auto declared = comparators.declared.find(name);
  if (declared == comparators.declared.end()) return std::nullopt;
  return declared->second;
}

absl::StatusOr<KeyOrder> KeyOrderOf(const rocksdb::Comparator* comparator,
                                    std::string_view column_family, std::string_view where) {
  const std::string what = absl::StrFormat("column family '%s' of %s", column_family, where);
  if (comparator->timestamp_size() > 0) {
    return absl::UnimplementedError(
        absl::StrFormat("%s orders its keys by comparator '%s', with user-defined timestamps, "
                        "which cannot be indexed",
                        what, comparator->Name()));
  }
  std::optional<KeyOrder> order = KeyOrderOfName(comparator->Name());
  const rocksdb::Comparator* const root = comparator->GetRootComparator();
  for (const KeyOrder own : {KeyOrder::kBytewise, KeyOrder::kReverseBytewise}) {
    if (!order.has_value() && root == OwnComparator(own)) order = own;
  }
  if (!order.has_value()) return UnknownComparator(what, comparator->Name());
  return *order;
}

KeyOrder KnownKeyOrderOf(const rocksdb::ColumnFamilyHandle* column_family) {
  const rocksdb::Comparator* const comparator = column_family->GetComparator();
  if (comparator == rocksdb::BytewiseComparator()) [[likely]]
    return KeyOrder::kBytewise;
  return KeyOrderOf(comparator, {}, {}).value_or(KeyOrder::kBytewise);
}

absl::Status UnknownComparator(std::string_view what, std::string_view comparator) {
  return absl::UnimplementedError(absl::StrFormat(
      "%s orders its keys by comparator '%s', whose order is unknown; only keys in the order of "
      "their bytes, or in the reverse order, can be indexed: if that is so, declare it "
      "(DeclareComparator; on the command line --comparator)",
      what, comparator));
}

const rocksdb::Comparator* ComparatorOfName(std::string_view name, KeyOrder order) {
  const rocksdb::Comparator* const own = OwnComparator(order);
  if (name == own->Name()) return own;
  Comparators& comparators = TheComparators();
  const MutexLock lock(&comparators.mutex);
  auto& made = comparators.made[static_cast<size_t>(order)];
  auto found = made.find(name);
  if (found == made.end()) {
    found = made.emplace(name, std::make_unique<RenamedComparator>(std::string(name), own)).first;
  }
  return found->second.get();
}

}  // namespace cairn
