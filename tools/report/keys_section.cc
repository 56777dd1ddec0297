// The section about keys: the values of each part, and the number of rows per key.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/report/sections.h"
#include "tools/report/words.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

std::string SizeLabel(const SizeCount& size) {
  if (size.most < 10000) {
    return size.least == size.most ? absl::StrCat(size.least)
                                   : absl::StrCat(size.least, "–", size.most);
  }
  if (size.least == size.most) return ShortNumber(static_cast<double>(size.least));
  return absl::StrCat(ShortNumber(static_cast<double>(size.least)), "–",
                      ShortNumber(static_cast<double>(size.most)));
}

// If all have the same size, states it in words instead of a chart.
std::string SizeChart(const std::vector<SizeCount>& sizes, absl::string_view label,
                      absl::string_view one, absl::string_view many) {
  if (sizes.size() == 1) {
    return absl::StrCat("<p class=\"only\"><b>", SizeLabel(sizes[0]), "</b> for all ",
                        Counted(sizes[0].count, one, many), "</p>");
  }
  std::vector<std::string> labels;
  std::vector<uint64_t> counts;
  for (const SizeCount& size : sizes) {
    labels.push_back(SizeLabel(size));
    counts.push_back(size.count);
  }
  return ColumnChart(labels, counts, label, one, many);
}

// The keys with the most entries, as bars.
std::string TopKeys(const std::vector<KeyCount>& top) {
  const auto most = static_cast<double>(top[0].entries);
  std::string text =
      "<div class=\"bars top\" role=\"table\" aria-label=\"Keys with the most entries\">";
  for (const KeyCount& key : top) {
    if (key.entries < 2) break;  // like all others
    absl::StrAppendFormat(
        &text,
        "<div class=\"row\" role=\"row\"><span class=\"name key\" "
        "role=\"rowheader\"><bdi>%s</bdi></span>"
        "<span class=\"track\" role=\"cell\" aria-hidden=\"true\"><i class=\"%s\" "
        "style=\"width:%.2f%%\"></i></span><span class=\"num\" role=\"cell\">%s</span></div>",
        Escape(key.key, 60), &key == &top[0] ? "accent" : "",
        100 * static_cast<double>(key.entries) / most, WithCommas(key.entries));
  }
  return text + "</div>";
}

std::string KeysFinding(const Report& report) {
  const KeyFacts& keys = report.keys;
  const IndexStats& stats = report.stats;
  std::string text;
  if (stats.entries == stats.distinct_keys) {
    text = "Each key has one entry.";
  } else if (stats.distinct_keys == 1) {
    text = "All entries have the same key.";
  } else {
    const double each = static_cast<double>(stats.entries) /
                        static_cast<double>(std::max<uint64_t>(stats.distinct_keys, 1));
    text = each < 1.05
               ? "Nearly all keys have one entry"
               : absl::StrCat("A key has ", PlainNumber(each < 100 ? each : std::round(each), 3),
                              " entries on average");
    if (!keys.top.empty()) {
      absl::StrAppend(&text,
                      keys.exact ? "; the most frequent one has "
                                 : "; the most frequent one of the sample has ",
                      WithCommas(keys.top[0].entries));
    }
    text += ".";
  }
  absl::StrAppend(&text, " From <bdi class=\"key\">", Escape(keys.first, 60),
                  "</bdi> to <bdi class=\"key\">", Escape(keys.last, 60), "</bdi>.");
  return text;
}

std::string ReadNote(const KeyFacts& keys) {
  return keys.exact
             ? absl::StrCat("All ", Counted(keys.looked_at, "entry was read", "entries were read"),
                            ".")
             : absl::StrCat("From a random sample of ", Counted(keys.looked_at, "entry", "entries"),
                            ", unless counts are marked as exact.");
}

std::string PartName(const Report& report, size_t part) {
  const KeyPart& key = report.spec.parts[part];
  std::string words = Escape(SourceWords(key.source), 100);
  // Capitalizes a headline.
  if (words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 32);
  return words;
}

}  // namespace

std::string KeysSection(const Report& report) {
  const KeyFacts& keys = report.keys;
  if (report.stats.entries == 0) {
    return Section("keys", "Keys", "There are none: no row of the column family has a key.", "");
  }
  std::string body;
  std::string small;
  for (size_t i = 0; i < keys.parts.size() && i < report.spec.parts.size(); ++i) {
    const std::string name = PartName(report, i);
    body += PartCharts(keys.parts[i], name);
    if (!keys.parts[i].lengths.empty()) {
      small += Figure(
          keys.parts.size() == 1 ? "Length in bytes" : absl::StrCat("Length in bytes: ", name),
          SizeChart(keys.parts[i].lengths, "Number of keys by length", "entry", "entries"),
          keys.exact ? "" : "Counted in the sample.");
    }
  }
  if (!keys.keys_by_entries.empty()) {
    small += Figure(
        "Keys by their number of entries",
        SizeChart(keys.keys_by_entries, "Number of keys by number of entries", "key", "keys"),
        keys.exact ? "" : "Estimated from the sample.");
  }
  if (!keys.top.empty() && keys.top[0].entries > 1) {
    small += Figure("Keys with the most entries", TopKeys(keys.top),
                    keys.exact ? "" : "Counted exactly, for the keys in the sample.");
  }
  absl::StrAppend(&body, "<div class=\"grid\">", small, "</div>", "<p class=\"note\">",
                  ReadNote(keys), "</p>");
  return Section("keys", "Keys", KeysFinding(report), body);
}

}  // namespace cairn::tools
