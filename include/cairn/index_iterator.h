#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/lookup.h"

namespace cairn {

class SecondaryIndex;

// Options of SecondaryIndex::NewIterator and IndexedDB::NewIterator.
struct IteratorOptions {
  // Limits the iterator to entries with these keys: one key, a prefix or a range. Used only by
  // NewIterator.
  KeyQuery range = KeyQuery::Everything();
  // The included columns that IndexIterator::column reads, by name (IndexSpec::include).
  std::vector<std::string> columns = {};
  // End NewIterator and reads of entries before they are complete: see QueryOptions. The iterator
  // then becomes invalid, with status Cancelled or DeadlineExceeded.
  const std::atomic<bool>* cancelled = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
  // See LookupOptions. Later writes of the transaction do not change the iterator.
  const rocksdb::Snapshot* snapshot = nullptr;
  rocksdb::Transaction* transaction = nullptr;
};

// Iterates over the entries of an index in (secondary key, primary key) order, like
// rocksdb::Iterator over a database. It sees one state of the index: the state that a lookup would
// have used when the iterator was created. A row with several keys has one entry per key.
//
//   cairn::IndexIterator it = db->NewIterator("age");
//   for (it.Seek(18); it.Valid(); it.Next()) ... it.secondary_key()[0] ... it.primary_key() ...
//   if (!it.status().ok()) ...
//
// Entries are read in growing blocks, so a walk costs about 1.5 times a scan. Not thread-safe,
// except that const methods may be called from several threads. The iterator keeps the memory of
// its state of the index; the index may change or be destroyed. No method throws. An error ends the
// iteration: see status().
class IndexIterator {
 public:
  // Creates an iterator without entries, with this status.
  explicit IndexIterator(absl::Status status = absl::OkStatus());
  IndexIterator(IndexIterator&& other) noexcept;
  IndexIterator& operator=(IndexIterator&& other) noexcept;
  ~IndexIterator();

  // Returns whether the iterator is at an entry. Returns false before the first Seek.
  bool Valid() const;
  // OK, also after the last entry. Errors: InvalidArgument, naming the index, for an invalid range,
  // column or target; those of a scan. A Seek clears errors, except those of NewIterator.
  absl::Status status() const;

  // Go to the first or last entry.
  void SeekToFirst();
  void SeekToLast();
  // Goes to the first entry whose key is at least `target`. If `target` has fewer parts than the
  // keys, it represents the first key that starts with them.
  void Seek(const LogicalKey& target);
  // Goes to the last entry whose key is at most `target`. If `target` has fewer parts than the
  // keys, it represents the last key that starts with them.
  void SeekForPrev(const LogicalKey& target);
  // Go to the next or previous entry. After the last or before the first entry, the iterator is not
  // valid. Do nothing unless Valid().
  void Next();
  void Prev();

  // Return the key of the entry, one value per part, and the primary key of its row. Views are
  // valid until the iterator moves. Empty unless Valid(). If the bytes of the key are corrupt, the
  // iterator becomes invalid with status DataLoss.
  absl::Span<const DataValue> secondary_key();
  std::string_view primary_key() const;
  // Returns the value of the row in IteratorOptions::columns[i]. Requires Valid() and i <
  // columns.size().
  DataValue column(size_t i) const;

 private:
  friend IndexIterator IterateVersion(std::shared_ptr<const SecondaryIndex> version,
                                      const IteratorOptions& options);
  class Walk;

  // Moves the iterator and stores the error, if any.
  void Move(absl::FunctionRef<absl::Status(Walk*)> move);

  std::unique_ptr<Walk> walk_;
  absl::Status status_;
};

}  // namespace cairn
