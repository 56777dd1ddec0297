#pragma once

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "cairn/key_order.h"
#include "rocksdb/comparator.h"
#include "test/require_ok.h"

// Column families with several comparators.

namespace cairn::test {

// An order that is neither that of bytes nor the reverse of it.
class ByLength final : public rocksdb::Comparator {
 public:
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
  const char* Name() const override { return "test.ByLength"; }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

// A comparator of an application that orders keys as one of RocksDB's does.
class Renamed final : public rocksdb::Comparator {
 public:
  // If `tells`, it names the other one as its root.
  Renamed(std::string name, const rocksdb::Comparator* own, bool tells = false)
      : name_(std::move(name)), own_(own), tells_(tells) {}

  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return own_->Compare(a, b);
  }
  const char* Name() const override { return name_.c_str(); }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
  const rocksdb::Comparator* GetRootComparator() const override { return tells_ ? own_ : this; }

 private:
  const std::string name_;
  const rocksdb::Comparator* const own_;
  const bool tells_;
};

struct Order {
  const rocksdb::Comparator* comparator;
  KeyOrder order;
  // Whether the order is known by the name, so that files can be read without the comparator.
  bool is_known_by_name = true;
};

// Orders other than RocksDB's default one, which can be indexed. The first three have reverse,
// byte and reverse order.
inline const std::array<Order, 6>& Orders() {
  static const rocksdb::Comparator* const forward = rocksdb::BytewiseComparator();
  static const rocksdb::Comparator* const reverse = rocksdb::ReverseBytewiseComparator();
  static const Renamed my_rocks("RocksDB_SE_v3.10", forward);
  static const Renamed my_rocks_reverse("rev:RocksDB_SE_v3.10", reverse);
  static const Renamed declared("test.Declared", forward);
  static const Renamed declared_reverse("test.DeclaredReverse", reverse);
  static const Renamed wrapper("test.Wrapper", reverse, /*tells=*/true);
  static const std::array<Order, 6> orders = [] {
    RequireOk(DeclareComparator("test.Declared", KeyOrder::kBytewise));
    RequireOk(DeclareComparator("test.DeclaredReverse", KeyOrder::kReverseBytewise));
    return std::array<Order, 6>{{
        {reverse, KeyOrder::kReverseBytewise},
        {&my_rocks, KeyOrder::kBytewise},
        {&my_rocks_reverse, KeyOrder::kReverseBytewise},
        {&declared, KeyOrder::kBytewise},
        {&declared_reverse, KeyOrder::kReverseBytewise},
        {&wrapper, KeyOrder::kReverseBytewise, /*is_known_by_name=*/false},
    }};
  }();
  return orders;
}

// Keys that are hard to order: empty, with 0x00 and 0xFF bytes, prefixes of each other, and with a
// long common prefix.
inline std::string HardKey(std::mt19937_64* random) {
  static constexpr std::string_view kBytes("\0\1a\x7f\x80\xfe\xff", 7);
  std::string key;
  const uint64_t kind = (*random)() % 10;
  if (kind == 0) key.assign((*random)() % 80, '\xff');
  if (kind == 1) key.assign((*random)() % 4, '\0');
  if (kind == 2) key.assign(300, 'p');
  for (uint64_t length = (*random)() % 4; length > 0; --length) {
    key.push_back(kBytes[(*random)() % kBytes.size()]);
  }
  return key;
}

// Two keys as the bounds of a range [first, second) in the comparator's order.
inline std::pair<std::string, std::string> HardRange(const rocksdb::Comparator* comparator,
                                                     std::mt19937_64* random) {
  std::string begin = HardKey(random), end = HardKey(random);
  if (comparator->Compare(begin, end) > 0) std::swap(begin, end);
  return {std::move(begin), std::move(end)};
}

}  // namespace cairn::test
