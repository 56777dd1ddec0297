#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

// Byte strings, one after the other in one heap. Reusable: Clear() keeps the capacity. Not
// thread-safe.
class StringList {
 public:
  size_t size() const { return ends_.size() - 1; }
  bool empty() const { return size() == 0; }
  // String i; requires i < size(). Valid until the list changes.
  std::string_view operator[](size_t i) const {
    return std::string_view(heap_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

  // All strings one after the other, and the size() + 1 offsets of where each begins and the last
  // one ends: Arrow's layout of a large_binary column. Valid until the list changes.
  std::string_view heap() const { return heap_; }
  const std::vector<uint64_t>& offsets() const { return ends_; }

  void Clear() { heap_.clear(), ends_.resize(1); }
  // Removes the strings from `size` on; requires size <= size().
  void Truncate(size_t size) { ends_.resize(size + 1), heap_.resize(ends_[size]); }
  // Makes room for more strings, and for their bytes in all.
  void Reserve(size_t strings, size_t bytes) {
    heap_.reserve(heap_.size() + bytes), ends_.reserve(ends_.size() + strings);
  }
  void Append(std::string_view string) { Append(string, std::string_view()); }
  // One string of two pieces.
  void Append(std::string_view begin, std::string_view rest) {
    heap_.append(begin).append(rest);
    ends_.push_back(heap_.size());
  }

  // Walks the strings in their order.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;
    Iterator(const StringList* strings, size_t i) : strings_(strings), i_(i) {}
    std::string_view operator*() const { return (*strings_)[i_]; }
    Iterator& operator++() { return ++i_, *this; }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }
    bool operator!=(const Iterator& other) const { return i_ != other.i_; }

   private:
    const StringList* strings_;
    size_t i_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  std::string heap_;
  std::vector<uint64_t> ends_ = {0};  // string i ends at ends_[i + 1] of heap_
};

using PrimaryKeyColumn = StringList;

}  // namespace cairn
