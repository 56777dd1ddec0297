#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/rows/row_table.h"
#include "engine/rows/row_table_writer.h"
#include "index/machine/aligned_buffer.h"
#include "test/require_ok.h"

namespace cairn {

using Keys = std::vector<std::string>;
using Parts = std::vector<Keys>;

// Keeps the sections in memory. Copies have buffers of exactly their size, so that AddressSanitizer
// detects a read past the end.
class MemorySink : public RowTableSink {
 public:
  absl::Status BeginSection(RowTableSection section) override {
    BOOST_TEST(sections_.count(section) == 0u);
    current_ = &sections_[section];
    return absl::OkStatus();
  }
  absl::Status Append(std::string_view bytes) override {
    if (current_->size() + bytes.size() > limit) {
      return absl::ResourceExhaustedError("no space left");
    }
    current_->append(bytes);
    return absl::OkStatus();
  }

  std::string& section(RowTableSection section) { return sections_[section]; }

  absl::StatusOr<RowTable> Open(int threads = 1, ContentCheck check = ContentCheck::kNow) const {
    auto copies = std::make_shared<std::vector<std::unique_ptr<uint64_t[]>>>();
    const auto copy = [&](RowTableSection section, size_t element_bytes) {
      const auto found = sections_.find(section);
      std::string_view bytes =
          found == sections_.end() ? std::string_view() : std::string_view(found->second);
      bytes.remove_suffix(bytes.size() % element_bytes);
      // Flush with the end of the allocation; 8-byte elements stay aligned, as bytes.size() is a
      // multiple of theirs.
      const size_t words = (bytes.size() + 7) / 8;
      copies->push_back(std::make_unique<uint64_t[]>(words));
      char* at = reinterpret_cast<char*>(copies->back().get()) + (words * 8 - bytes.size());
      if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
      return std::string_view(at, bytes.size());
    };
    const auto words = [&](RowTableSection section) {
      const std::string_view bytes = copy(section, 8);
      return absl::MakeConstSpan(reinterpret_cast<const uint64_t*>(bytes.data()), bytes.size() / 8);
    };
    const auto parts = words(RowTableSection::kParts);
    RowTable::Sections sections;
    sections.blocks = copy(RowTableSection::kBlocks, 1);
    sections.parts =
        absl::MakeConstSpan(reinterpret_cast<const RowTablePart*>(parts.data()), parts.size() / 3);
    sections.block_offsets = words(RowTableSection::kBlockOffsets);
    sections.separator_ends = words(RowTableSection::kSeparatorEnds);
    sections.separators = copy(RowTableSection::kSeparators, 1);
    return RowTable::Wrap(sections, "test.tbl", threads, copies, check);
  }

  size_t limit = SIZE_MAX;

 private:
  std::map<RowTableSection, std::string> sections_;
  std::string* current_ = nullptr;
};

inline void Write(const Parts& parts, MemorySink* sink) {
  RowTableWriter writer(parts.size(), sink);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const std::string& key : parts[i]) RequireOk(writer.part(i).Add(key));
  }
  RequireOk(writer.Finish());
}

inline std::vector<std::string_view> Views(const Keys& keys) {
  return {keys.begin(), keys.end()};
}

inline Keys Sorted(const std::set<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

inline Keys RandomKeys(size_t count, size_t max_bytes, int alphabet, std::mt19937_64& random) {
  std::set<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    std::string key(random() % (max_bytes + 1), '\0');
    for (char& c : key) c = static_cast<char>(random() % alphabet);
    keys.insert(key);
  }
  return Sorted(keys);
}

// Cuts keys into `parts` ranges at random, some of them empty.
inline Parts Cut(const Keys& keys, size_t parts, std::mt19937_64& random) {
  std::vector<size_t> cuts = {0, keys.size()};
  for (size_t i = 1; i < parts; ++i) cuts.push_back(random() % (keys.size() + 1));
  std::sort(cuts.begin(), cuts.end());
  Parts result;
  for (size_t i = 0; i < parts; ++i) {
    result.emplace_back(keys.begin() + static_cast<ptrdiff_t>(cuts[i]),
                        keys.begin() + static_cast<ptrdiff_t>(cuts[i + 1]));
  }
  return result;
}

}  // namespace cairn
