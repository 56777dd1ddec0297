#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/rows/row_table.h"
#include "engine/rows/row_table_writer.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench {

// The sections of a row table in memory.
struct MemorySink : RowTableSink {
  absl::Status BeginSection(RowTableSection section) override {
    current = &sections[section];
    return absl::OkStatus();
  }
  absl::Status Append(std::string_view bytes) override {
    current->append(bytes);
    return absl::OkStatus();
  }
  template <typename T>
  absl::Span<const T> Elements(RowTableSection section) {
    const std::string& bytes = sections[section];
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  RowTable::Sections Spans() {
    return {sections[RowTableSection::kBlocks], Elements<RowTablePart>(RowTableSection::kParts),
            Elements<uint64_t>(RowTableSection::kBlockOffsets),
            Elements<uint64_t>(RowTableSection::kSeparatorEnds),
            sections[RowTableSection::kSeparators]};
  }
  std::map<RowTableSection, std::string> sections;
  std::string* current = nullptr;
};

inline void WriteRowTable(const std::vector<std::string>& primary_keys, RowTableSink* sink) {
  RowTableWriter writer(1, sink);
  for (const std::string& key : primary_keys) OrThrow(writer.part(0).Add(key));
  OrThrow(writer.Finish());
}

}  // namespace cairn::bench
