// The whole page: its head, header and footer, and helpers that sections share.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tools/report/report.h"
#include "tools/report/sections.h"
#include "tools/report/svg.h"
#include "tools/report/words.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

std::string DateText(absl::Time time) {
  return absl::FormatTime("%e %B %Y, %H:%M UTC", time, absl::UTCTimeZone());
}

uint64_t FileBytes(const Report& report) {
  uint64_t bytes = 0;
  for (const FileSize& file : report.files) bytes += file.bytes;
  return bytes;
}

// "the city (“/city” in the value's JSON, as text)", part by part.
std::string KeyWords(const IndexSpec& spec) {
  std::string words;
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    const char* joint = i == 0 ? "" : i + 1 == spec.parts.size() ? ", then " : ", ";
    absl::StrAppend(&words, joint, "<b>", Escape(SourceWords(spec.parts[i].source)), "</b> as ",
                    TypeWords(spec.parts[i].type));
  }
  return words;
}

std::string Lede(const Report& report) {
  std::string words =
      absl::StrCat("Finds the rows of column family <b>", Escape(report.spec.column_family),
                   "</b> by ", KeyWords(report.spec), ".");
  if (report.spec.unique) words += " No two rows have the same key.";
  if (report.stats.entries == 0) words += " The index is empty.";
  return words;
}

std::string Tile(absl::string_view value, absl::string_view name) {
  return absl::StrCat("<div><dt>", name, "</dt><dd>", value, "</dd></div>");
}

// The shortest time per key of all batches on the chosen routes, in seconds; 0 if none was
// measured.
double BestTime(const SpeedFacts& speed) {
  double best = 0;
  for (const RouteTimes& route : speed.routes) {
    for (const BatchTime& time : route.times) {
      const double each = time.seconds / static_cast<double>(time.queries);
      if (time.chosen && (best == 0 || each < best)) best = each;
    }
  }
  return best;
}

std::string Row(absl::string_view name, absl::string_view value) {
  return absl::StrCat("<tr><th scope=\"row\">", name, "</th><td>", value, "</td></tr>");
}

}  // namespace

std::string Section(absl::string_view id, absl::string_view headline, absl::string_view finding,
                    absl::string_view body) {
  return absl::StrCat("<section aria-labelledby=\"", id, "\"><h2 id=\"", id, "\">", headline,
                      "</h2>",
                      finding.empty() ? "" : absl::StrCat("<p class=\"finding\">", finding, "</p>"),
                      body, "</section>\n");
}

std::string Figure(absl::string_view headline, absl::string_view drawing, absl::string_view note) {
  return absl::StrCat("<figure><figcaption>", headline, "</figcaption>", drawing,
                      note.empty() ? "" : absl::StrCat("<p class=\"note\">", note, "</p>"),
                      "</figure>");
}

std::string FoldedTable(absl::string_view summary, const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows) {
  std::string text = absl::StrCat("<details><summary>", summary,
                                  "</summary><div class=\"scroll\"><table><thead><tr>");
  for (const std::string& cell : head) absl::StrAppend(&text, "<th scope=\"col\">", cell, "</th>");
  text += "</tr></thead><tbody>";
  for (const std::vector<std::string>& row : rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "<th scope=\"row\">" : "<td>", row[i],
                      i == 0 ? "</th>" : "</td>");
    }
    text += "</tr>";
  }
  return text + "</tbody></table></div></details>";
}

std::string ColumnChart(const std::vector<std::string>& labels, const std::vector<uint64_t>& counts,
                        absl::string_view label, absl::string_view one, absl::string_view many) {
  constexpr double kWidth = 340, kHeight = 190, kTop = 22, kBottom = 26;
  const double base = kHeight - kBottom;
  Svg svg(kWidth, kHeight, label);
  const uint64_t most = std::max<uint64_t>(*std::max_element(counts.begin(), counts.end()), 1);
  const size_t size = counts.size();
  const double pitch = std::min(kWidth / static_cast<double>(size), 64.0);
  const double bar = pitch * (size > 16 ? 0.86 : 0.72);
  // Shows as many labels as fit the width.
  size_t longest = 1;
  for (const std::string& text : labels) longest = std::max(longest, text.size());
  const double room = 7.0 * static_cast<double>(longest) + 10;
  const auto every = static_cast<size_t>(std::max(1.0, room / pitch + 0.999));
  svg.Line(0, base + 0.5, pitch * static_cast<double>(size), base + 0.5, "axis");
  for (size_t i = 0; i < size; ++i) {
    const double x = pitch * static_cast<double>(i);
    const double height =
        (base - kTop) * static_cast<double>(counts[i]) / static_cast<double>(most);
    const bool is_most = counts[i] == most;
    svg.Rect(x, base - std::max(height, counts[i] == 0 ? 0.0 : 1.0), bar,
             std::max(height, counts[i] == 0 ? 0.0 : 1.0), "bar",
             absl::StrCat(labels[i], ": ", Counted(counts[i], one, many)));
    if (i % every == 0) svg.Text(x + bar / 2, kHeight - 8, Anchor::kMiddle, "tick", labels[i]);
    const bool is_first_most =
        is_most &&
        std::find(counts.begin(), counts.end(), most) - counts.begin() == static_cast<ptrdiff_t>(i);
    if (size <= 6 || is_first_most) {
      const double at = std::clamp(x + bar / 2, 22.0, kWidth - 22.0);
      svg.Text(at, base - height - 7, Anchor::kMiddle, is_most ? "value strong" : "value",
               ShortNumber(static_cast<double>(counts[i])));
    }
  }
  return svg.Finish();
}

std::string HeaderSection(const Report& report) {
  const IndexStats& stats = report.stats;
  const auto bytes = static_cast<double>(FileBytes(report));
  std::string tiles = Tile(ShortNumber(static_cast<double>(stats.entries)), "entries");
  tiles += Tile(ShortNumber(static_cast<double>(stats.distinct_keys)), "distinct keys");
  tiles += Tile(ShortNumber(static_cast<double>(stats.rows)), "rows");
  tiles += Tile(ByteText(bytes), "on disk");
  if (stats.entries != 0) {
    tiles +=
        Tile(absl::StrFormat("%.1f B", bytes / static_cast<double>(stats.entries)), "an entry");
  }
  if (const double best = BestTime(report.speed); best > 0) {
    tiles += Tile(TimeText(best), "per lookup, at best");
  }
  return absl::StrCat("<header><p class=\"kicker\">Cairn index</p><h1>", Escape(report.title, 120),
                      "</h1><p class=\"lede\">", Lede(report), "</p><dl class=\"tiles\">", tiles,
                      "</dl></header>\n");
}

std::string DetailsSection(const Report& report) {
  const IndexStats& stats = report.stats;
  std::string rows =
      Row("Spec", absl::StrCat("<code>", Escape(report.spec.ToString(), 2000), "</code>"));
  rows += Row("Directory", absl::StrCat("<code>", Escape(report.directory, 1000), "</code>"));
  rows += Row("Column family", Escape(report.spec.column_family));
  rows += Row("Physical keys", std::string(PhysicalTypeName(report.kind)));
  rows += Row("Database", stats.database_id.empty()
                              ? "unknown"
                              : absl::StrCat("<code>", Escape(stats.database_id), "</code>"));
  rows += Row("Sequence number", WithCommas(stats.sequence));
  rows += Row("Version", absl::StrCat(WithCommas(stats.version),
                                      stats.version == 1 ? ", the first build" : ""));
  if (report.built.has_value()) rows += Row("Base written", DateText(*report.built));
  for (const IndexStats::OrderedIndex& one : stats.ordered_indexes) {
    rows += Row("Searched with", Escape(one.description));
  }
  if (!stats.fallback.empty()) rows += Row("Not on a GPU", Escape(stats.fallback));
  for (const FileSize& file : report.files) {
    rows += Row(absl::StrCat("<code>", Escape(file.name), "</code>"),
                absl::StrCat(WithCommas(file.bytes), " bytes"));
  }
  rows += Row("Machine", Escape(report.machine));
  return Section("details", "Details", "",
                 absl::StrCat("<table class=\"facts\"><tbody>", rows, "</tbody></table>"));
}

std::string RenderReport(const Report& report) {
  // The page needs no other files, and may load none, whatever the index contains.
  return absl::StrCat(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<link rel=\"icon\" href=\"data:,\"/>\n<title>",
      Escape(report.title, 120), " – Cairn index</title>\n<style>", kPageStyle,
      "</style>\n</head>\n<body>\n<main>\n", HeaderSection(report), SpaceSection(report),
      KeysSection(report), SpeedSection(report), FreshnessSection(report), DetailsSection(report),
      "<footer><p>Created on ", DateText(report.made), " by <code>cairn report</code> ",
      Escape(report.version), ".</p></footer>\n</main>\n</body>\n</html>\n");
}

}  // namespace cairn::tools
