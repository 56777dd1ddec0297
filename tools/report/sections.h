#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/report/report.h"

namespace cairn::tools {

// The sections of a page, as well-formed XML; empty if there is nothing to show.
std::string HeaderSection(const Report& report);
std::string SpaceSection(const Report& report);
std::string KeysSection(const Report& report);
std::string SpeedSection(const Report& report);
std::string FreshnessSection(const Report& report);
std::string DetailsSection(const Report& report);

// The drawings of one part of the key.
std::string PartCharts(const PartFacts& part, absl::string_view name);

// The page's style sheet.
extern const char kPageStyle[];

// A section with its headline; `finding` summarizes it in one sentence.
std::string Section(absl::string_view id, absl::string_view headline, absl::string_view finding,
                    absl::string_view body);

// A drawing with its headline above, and a note below.
std::string Figure(absl::string_view headline, absl::string_view drawing,
                   absl::string_view note = "");

// The collapsed table of a drawing's numbers. Cells are already escaped; the first column is text.
std::string FoldedTable(absl::string_view summary, const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows);

// A chart with one bar per count, labels below and counts above. There is one label per count;
// the caller escapes them.
std::string ColumnChart(const std::vector<std::string>& labels, const std::vector<uint64_t>& counts,
                        absl::string_view label, absl::string_view one, absl::string_view many);

}  // namespace cairn::tools
