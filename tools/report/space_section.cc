// The section about space: bytes on disk and in memory.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/report/sections.h"
#include "tools/report/words.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

struct Item {
  std::string name;   // escaped
  std::string words;  // description
  uint64_t bytes = 0;
  bool on_disk = true;
};

// Describes the contents of a file's section in words.
std::string Words(const IndexStats::Section& section) {
  if (absl::EndsWith(section.file, ".run")) {
    if (section.name == "keys") return "the keys, one per entry";
    if (section.name == "key heap") return "the keys, concatenated";
    if (section.name == "key offsets") return "the start of each key";
    if (section.name == "row ids") return "the row of each entry";
  } else if (absl::EndsWith(section.file, ".tbl")) {
    if (section.name == "blocks") return "the primary keys of all rows";
    if (section.name == "block offsets") return "the start of each block";
    if (section.name == "separators" || section.name == "separator ends") {
      return "index of the blocks by primary key";
    }
  } else if (absl::EndsWith(section.file, ".upd")) {
    return "rows that have changed since the base";
  }
  return absl::StrCat("in ", section.file);
}

std::string Name(const IndexStats::Section& section) {
  if (absl::EndsWith(section.file, ".tbl") && section.name == "blocks") return "Primary keys";
  if (section.name == "key heap") return "Keys";
  std::string name = section.name;
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 32);
  return name;
}

std::vector<Item> Items(const IndexStats& stats) {
  std::vector<Item> items;
  Item small{"Everything else", "tables of contents and the like", 0};
  uint64_t all = 0;
  for (const IndexStats::Section& section : stats.sections) all += section.bytes;
  for (const IndexStats::Section& section : stats.sections) {
    if (section.bytes * 500 < all) {
      small.bytes += section.bytes;
    } else {
      items.push_back({Escape(Name(section)), Escape(Words(section)), section.bytes});
    }
  }
  if (small.bytes != 0) items.push_back(small);
  for (const IndexStats::OrderedIndex& one : stats.ordered_indexes) {
    if (one.bytes == 0) continue;
    std::string words = "search structure, built when the index is opened";
    if (one.huge_page_bytes != 0) {
      absl::StrAppend(&words, ", ", ByteText(static_cast<double>(one.huge_page_bytes)),
                      " of it in huge pages");
    }
    items.push_back({Escape(one.description, 60), words, one.bytes, false});
  }
  if (stats.delta.bytes != 0) {
    items.push_back({"Changes", "applied since the base was built", stats.delta.bytes, false});
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.on_disk != b.on_disk ? a.on_disk : a.bytes > b.bytes;
  });
  return items;
}

}  // namespace

std::string SpaceSection(const Report& report) {
  const std::vector<Item> items = Items(report.stats);
  uint64_t most = 1, disk = 0, memory = 0;
  const Item* largest = nullptr;
  for (const Item& item : items) {
    most = std::max(most, item.bytes);
    (item.on_disk ? disk : memory) += item.bytes;
    if (item.on_disk && (largest == nullptr || item.bytes > largest->bytes)) largest = &item;
  }
  if (largest == nullptr) return "";
  const auto entries = static_cast<double>(std::max<uint64_t>(report.stats.entries, 1));
  const auto each = [&](uint64_t bytes) {
    return report.stats.entries == 0
               ? std::string("–")
               : absl::StrFormat("%.2f B", static_cast<double>(bytes) / entries);
  };
  std::string body = "<div class=\"bars\" role=\"table\" aria-label=\"Bytes by section\">";
  bool on_disk = false, in_memory = false;
  for (const Item& item : items) {
    bool& begun = item.on_disk ? on_disk : in_memory;
    if (!begun) {
      begun = true;
      absl::StrAppend(&body, "<div class=\"group\" role=\"row\"><span role=\"columnheader\">",
                      item.on_disk ? "On disk, mapped" : "Also in memory",
                      "</span><span role=\"columnheader\">",
                      ByteText(static_cast<double>(item.on_disk ? disk : memory)),
                      "</span><span role=\"columnheader\">per entry</span></div>");
    }
    const double share = static_cast<double>(item.bytes) / static_cast<double>(most);
    absl::StrAppendFormat(
        &body,
        "<div class=\"row\" role=\"row\"><span class=\"name\" role=\"rowheader\">%s "
        "<small>%s</small></span><span class=\"track\" role=\"cell\" aria-hidden=\"true\">"
        "<i class=\"%s\" style=\"width:%.2f%%\"></i></span><span class=\"num\" "
        "role=\"cell\">%s</span>"
        "<span class=\"num soft\" role=\"cell\">%s</span></div>",
        item.name, item.words,
        &item == largest ? "accent"
        : item.on_disk   ? ""
                         : "hollow",
        100 * share, ByteText(static_cast<double>(item.bytes)), each(item.bytes));
  }
  body += "</div>";
  const std::string finding = absl::StrCat(
      largest->name == "Everything else"
          ? "No item takes much"
          : absl::StrCat(
                largest->name, " take ",
                PercentText(static_cast<double>(largest->bytes) / static_cast<double>(disk))),
      " of ", ByteText(static_cast<double>(disk)), " on disk",
      memory == 0 ? ""
                  : absl::StrCat("; searching takes ", ByteText(static_cast<double>(memory)),
                                 " of other memory"),
      ".");
  return Section("space", "Space", finding, body);
}

}  // namespace cairn::tools
