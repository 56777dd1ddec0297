#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cairn/c/arrow.h"
#include "cairn/key_codec.h"

namespace cairn {

// An array as exported by a producer of Arrow, created from logical values. Tests may change
// `schema` and `array`. The array is lent, so releasing it fails the test.
class TestArrow {
 public:
  // From the values of one part. `format` must fit the part. `offset` elements, equal to the last
  // value, precede the slice.
  TestArrow(const std::string& format, const std::vector<DataValue>& values, size_t offset = 0)
      : format_(format) {
    std::vector<DataValue> all(offset, values.empty() ? DataValue() : values.back());
    all.insert(all.end(), values.begin(), values.end());
    AddValidity(all);
    if (format == "u" || format == "z") {
      AddStrings<int32_t>(all);
    } else if (format == "U" || format == "Z") {
      AddStrings<int64_t>(all);
    } else if (format == "vu" || format == "vz") {
      AddViews(all);
    } else {
      AddFixed(all);
    }
    Finish(static_cast<int64_t>(values.size()), static_cast<int64_t>(offset));
  }
  // A struct of children; its elements start at `offset` of theirs.
  TestArrow(std::vector<std::unique_ptr<TestArrow>> children, size_t size, size_t offset)
      : format_("+s"), children_(std::move(children)) {
    buffers_.push_back(nullptr);
    for (const auto& child : children_) {
      schema_children_.push_back(&child->schema);
      array_children_.push_back(&child->array);
    }
    Finish(static_cast<int64_t>(size), static_cast<int64_t>(offset));
  }
  TestArrow(const TestArrow&) = delete;
  TestArrow& operator=(const TestArrow&) = delete;
  ~TestArrow() { BOOST_TEST(released_ == 0); }

  // Makes the elements indices into a dictionary, which must live as long as this.
  void SetDictionary(TestArrow* values) {
    schema.dictionary = &values->schema;
    array.dictionary = &values->array;
  }

  TestArrow* child(size_t i) { return children_[i].get(); }

  ArrowSchema schema = {};
  ArrowArray array = {};

 private:
  // Memory of a buffer, from `misalignment` on.
  char* Buffer(size_t bytes) {
    // exactly this size, so that reads past the end are found
    memory_.emplace_back(new char[bytes + 1]());
    buffers_.push_back(memory_.back().get());
    return memory_.back().get();
  }

  void AddValidity(const std::vector<DataValue>& values) {
    bool has_null = false;
    for (const DataValue& value : values) has_null |= std::holds_alternative<std::monostate>(value);
    nulls_ = 0;
    if (!has_null) return buffers_.push_back(nullptr);
    char* const bits = Buffer(values.size() / 8 + 1);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::holds_alternative<std::monostate>(values[i])) continue;
      bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
    }
    nulls_ = -1;
  }

  template <typename Offset>
  void AddStrings(const std::vector<DataValue>& values) {
    std::string heap = "before";
    char* const offsets = Buffer((values.size() + 1) * sizeof(Offset));
    for (size_t i = 0; i <= values.size(); ++i) {
      const Offset at = static_cast<Offset>(heap.size());
      std::memcpy(offsets + i * sizeof at, &at, sizeof at);
      if (i == values.size()) break;
      if (const auto* string = std::get_if<std::string_view>(&values[i])) heap.append(*string);
    }
    std::memcpy(Buffer(heap.size()), heap.data(), heap.size());
  }

  void AddViews(const std::vector<DataValue>& values) {
    char* const views = Buffer(values.size() * 16);
    std::string heaps[2] = {"xyz", ""};
    for (size_t i = 0; i < values.size(); ++i) {
      const auto* string = std::get_if<std::string_view>(&values[i]);
      if (string == nullptr) {
        std::memset(views + i * 16, 0xEE, 16);  // the view of a null is unspecified
        continue;
      }
      const int32_t size = static_cast<int32_t>(string->size());
      std::memcpy(views + i * 16, &size, 4);
      if (!string->empty()) {
        std::memcpy(views + i * 16 + 4, string->data(), string->size() < 12 ? string->size() : 12);
      }
      if (size <= 12) continue;
      const int32_t where[2] = {static_cast<int32_t>(i % 2),
                                static_cast<int32_t>(heaps[i % 2].size())};
      std::memcpy(views + i * 16 + 8, where, 8);
      heaps[i % 2].append(*string);
    }
    int64_t sizes[2];
    for (int h = 0; h < 2; ++h) {
      std::memcpy(Buffer(heaps[h].size()), heaps[h].data(), heaps[h].size());
      sizes[h] = static_cast<int64_t>(heaps[h].size());
    }
    std::memcpy(Buffer(sizeof sizes), sizes, sizeof sizes);
  }

  template <typename T>
  void AddNumbers(const std::vector<DataValue>& values) {
    char* const numbers = Buffer(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T number = static_cast<T>(77);
      if (const auto* u = std::get_if<uint64_t>(&values[i])) number = static_cast<T>(*u);
      if (const auto* s = std::get_if<int64_t>(&values[i])) number = static_cast<T>(*s);
      if (const auto* d = std::get_if<double>(&values[i])) number = static_cast<T>(*d);
      std::memcpy(numbers + i * sizeof(T), &number, sizeof(T));
    }
  }

  void AddFixed(const std::vector<DataValue>& values) {
    if (format_ == "C") return AddNumbers<uint8_t>(values);
    if (format_ == "S") return AddNumbers<uint16_t>(values);
    if (format_ == "I") return AddNumbers<uint32_t>(values);
    if (format_ == "L") return AddNumbers<uint64_t>(values);
    if (format_ == "c") return AddNumbers<int8_t>(values);
    if (format_ == "s") return AddNumbers<int16_t>(values);
    if (format_ == "i") return AddNumbers<int32_t>(values);
    if (format_ == "l") return AddNumbers<int64_t>(values);
    if (format_ == "f") return AddNumbers<float>(values);
    if (format_ == "g") return AddNumbers<double>(values);
    BOOST_REQUIRE(format_.substr(0, 2) == "w:");
    const size_t width = std::stoul(format_.substr(2));
    char* const bytes = Buffer(values.size() * width);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto* string = std::get_if<std::string_view>(&values[i]);
      if (string == nullptr) continue;
      BOOST_REQUIRE(string->size() == width);
      std::memcpy(bytes + i * width, string->data(), width);
    }
  }

  void Finish(int64_t size, int64_t offset) {
    schema.format = format_.c_str();
    schema.name = "";
    schema.n_children = static_cast<int64_t>(schema_children_.size());
    schema.children = schema_children_.data();
    schema.release = [](ArrowSchema* s) { ++*static_cast<int*>(s->private_data); };
    schema.private_data = &released_;
    array.length = size;
    array.offset = offset;
    array.null_count = nulls_;
    array.n_buffers = static_cast<int64_t>(buffers_.size());
    array.buffers = buffers_.data();
    array.n_children = schema.n_children;
    array.children = array_children_.data();
    array.release = [](ArrowArray* a) { ++*static_cast<int*>(a->private_data); };
    array.private_data = &released_;
  }

  std::string format_;
  int64_t nulls_ = 0;
  int released_ = 0;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<const void*> buffers_;
  std::vector<std::unique_ptr<TestArrow>> children_;
  std::vector<ArrowSchema*> schema_children_;
  std::vector<ArrowArray*> array_children_;
};

}  // namespace cairn
