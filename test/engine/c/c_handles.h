#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/c.h"
#include "test/test_arrow.h"

namespace cairn {

// A returned array, released by the destructor.
class ArrowResult {
 public:
  ArrowResult() = default;
  ArrowResult(const ArrowResult&) = delete;
  ArrowResult& operator=(const ArrowResult&) = delete;
  ~ArrowResult() {
    if (schema.release != nullptr) schema.release(&schema);
    if (array.release != nullptr) array.release(&array);
  }

  // Buffer `i` of an array, as numbers of this type.
  template <typename T>
  static const T* Numbers(const ArrowArray& array, int64_t i = 1) {
    BOOST_REQUIRE(i < array.n_buffers);
    return static_cast<const T*>(array.buffers[i]);
  }
  // String i of a large_binary array.
  static std::string_view String(const ArrowArray& array, size_t i) {
    const int64_t* const offsets = Numbers<int64_t>(array);
    return {Numbers<char>(array, 2) + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }

  ArrowSchema schema = {};
  ArrowArray array = {};
};

// Fails the test unless the call was OK; frees the error.
inline void RequireNone(cairn_error* error, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  const std::unique_ptr<cairn_error, void (*)(cairn_error*)> owner(error, cairn_error_free);
  BOOST_REQUIRE_MESSAGE(error == nullptr,
                        file << ":" << line << ": " << cairn_error_message(error));
}

// Fails the test unless the call failed with this code and all of `words` in its message; frees the
// error.
inline void CheckError(cairn_error* error, int32_t code, const std::vector<std::string>& words = {},
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const std::unique_ptr<cairn_error, void (*)(cairn_error*)> owner(error, cairn_error_free);
  const std::string message = cairn_error_message(error);
  BOOST_TEST(cairn_error_code(error) == code,
             file << ":" << line << ": code " << cairn_error_code(error) << ": " << message);
  for (const std::string& word : words) {
    BOOST_TEST(message.find(word) != std::string::npos,
               file << ":" << line << ": '" << word << "' is not in: " << message);
  }
}

struct CloseIndex {
  void operator()(cairn_index* index) const { cairn_close(index); }
};
using IndexHandle = std::unique_ptr<cairn_index, CloseIndex>;
struct FreeMatches {
  void operator()(cairn_matches* matches) const { cairn_matches_free(matches); }
};
using MatchesHandle = std::unique_ptr<cairn_matches, FreeMatches>;

inline MatchesHandle NewMatches() {
  cairn_matches* matches = nullptr;
  RequireNone(cairn_matches_new(&matches));
  return MatchesHandle(matches);
}

inline IndexHandle IndexOver(const TestArrow& keys,
                             const cairn_columns_options* options = nullptr) {
  cairn_index* index = nullptr;
  RequireNone(cairn_index_from_columns(&keys.schema, &keys.array, options, &index));
  return IndexHandle(index);
}

}  // namespace cairn
