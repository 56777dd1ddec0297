#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/lookup.h"

namespace cairn {

class SecondaryIndex;

struct IteratorOptions {
  // The iterator sees only entries with these keys: one key, a prefix or a range. Used by
  // NewIterator only.
  KeyQuery range = KeyQuery::Everything();
  // The included columns that IndexIterator::column reads, by name (IndexSpec::include).
  std::vector<std::string> columns = {};
};

// Walks over the entries of an index, in the order of (secondary key, primary key), as
// rocksdb::Iterator does over those of a database. It sees one state of the index: that which a
// lookup would have used when the iterator was made. A row that has several keys has an entry for
// each.
//
//   cairn::IndexIterator it = db->NewIterator("age");
//   for (it.Seek(18); it.Valid(); it.Next()) ... it.secondary_key()[0] ... it.primary_key() ...
//   if (!it.status().ok()) ...
//
// Entries are read in blocks that grow, so that a walk costs what a scan does. Not thread-safe,
// except that const methods may be called from several threads. Keeps the memory of its state of
// the index, which may be deleted or change otherwise. No exception leaves; an error ends the walk:
// see status().
class IndexIterator {
 public:
  // Has no entries, and this status.
  explicit IndexIterator(absl::Status status = absl::OkStatus());
  IndexIterator(IndexIterator&& other) noexcept;
  IndexIterator& operator=(IndexIterator&& other) noexcept;
  ~IndexIterator();

  // Whether the iterator is at an entry. It is not before the first Seek.
  bool Valid() const;
  // OK, also after the last entry. InvalidArgument, naming the index, for a `range`, column or
  // target that the index refuses; otherwise errors as of a scan. A Seek clears errors, except
  // those of NewIterator.
  absl::Status status() const;

  // Go to the first or last entry.
  void SeekToFirst();
  void SeekToLast();
  // Goes to the first entry whose key is at least `target`. Leading parts of a key stand for the
  // first key that begins with them.
  void Seek(const LogicalKey& target);
  // Goes to the last entry whose key is at most `target`. Leading parts of a key stand for the last
  // key that begins with them.
  void SeekForPrev(const LogicalKey& target);
  // Go to the next or previous entry, or to none if this is the last or first one. They do nothing
  // unless Valid().
  void Next();
  void Prev();

  // The entry's key, one value per part, and the primary key of its row. Views are valid until the
  // iterator moves. Empty unless Valid(). If the key's bytes are damaged, the iterator is not valid
  // any more, and its status is DataLoss.
  absl::Span<const DataValue> secondary_key();
  std::string_view primary_key() const;
  // The row's value in IteratorOptions::columns[i]. Requires Valid() and i < columns.size().
  DataValue column(size_t i) const;

 private:
  friend IndexIterator IterateVersion(std::shared_ptr<const SecondaryIndex> version,
                                      const IteratorOptions& options);
  class Walk;

  // Moves, and keeps the error.
  void Move(absl::FunctionRef<absl::Status(Walk*)> move);

  std::unique_ptr<Walk> walk_;
  absl::Status status_;
};

}  // namespace cairn
