// The lag of the index, and whether a compaction pays.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/report/sections.h"
#include "tools/report/words.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

using State = FreshnessFacts::State;

std::string Behind(const Report& report) {
  const FreshnessFacts& fresh = report.freshness;
  const uint64_t ahead =
      fresh.sequence > report.stats.sequence ? fresh.sequence - report.stats.sequence : 0;
  return absl::StrCat(WithCommas(ahead), ahead == 1 ? " write" : " writes");
}

std::string FreshnessFinding(const Report& report) {
  const FreshnessFacts& fresh = report.freshness;
  switch (fresh.state) {
    case State::kNotAsked:
      return absl::StrCat("The index represents its database at sequence number ",
                          WithCommas(report.stats.sequence), ".");
    case State::kCurrent:
      return "The index is current: the database has written nothing since.";
    case State::kCanCatchUp:
      return absl::StrCat("The database is ", Behind(report),
                          " ahead, and its log has all of them.");
    case State::kCannot:
      return absl::StrCat("The index cannot catch up with this database",
                          fresh.sequence > report.stats.sequence
                              ? absl::StrCat(", which is ", Behind(report), " ahead.")
                              : ".");
    case State::kUnreadable:
      return "The database could not be read.";
    case State::kTooLong:
      return absl::StrCat("The database is ", Behind(report),
                          " ahead; reading its log takes more than a few seconds.");
  }
  return "";
}

std::string Words(const Report& report) {
  const FreshnessFacts& fresh = report.freshness;
  const std::string database = absl::StrCat("<code>", Escape(fresh.database, 300), "</code>");
  switch (fresh.state) {
    case State::kNotAsked:
      return "<p>With <code>--db</code> this page reports the lag of the index.</p>";
    case State::kCanCatchUp:
      return absl::StrFormat(
          "<p>Reading %s of log took %s: %s to %s of this column family. <code>cairn "
          "catch-up</code> stores that%s.</p>",
          ByteText(static_cast<double>(fresh.log_bytes)), TimeText(fresh.seconds),
          Counted(fresh.changes, "change", "changes"), Counted(fresh.rows, "row", "rows"),
          fresh.merge_would_pay ? "; then a compaction pays" : "");
    case State::kCannot:
    case State::kUnreadable:
      return absl::StrCat("<p class=\"warning\">", Escape(fresh.message, 2000), "</p>");
    case State::kCurrent:
    case State::kTooLong:
      return absl::StrCat("<p>Database: ", database, ".</p>");
  }
  return "";
}

// A part of a bar; parts are in order.
struct Part {
  const char* css_class;
  std::string name;
  double size;
};

std::string StackedBar(const std::vector<Part>& parts) {
  double all = 0;
  for (const Part& part : parts) all += part.size;
  std::string bar, labels;
  for (const Part& part : parts) {
    if (part.size <= 0) continue;
    absl::StrAppendFormat(&bar, "<i class=\"%s\" style=\"flex-grow:%.4f\"></i>", part.css_class,
                          std::max(part.size / all, 0.004));
    absl::StrAppendFormat(&labels, "<li><i class=\"%s\"></i>%s</li>", part.css_class, part.name);
  }
  return absl::StrCat("<div class=\"stack\" aria-hidden=\"true\">", bar,
                      "</div><ul class=\"labels\">", labels, "</ul>");
}

std::string Merges(const Report& report) {
  const IndexStats::Delta& delta = report.stats.delta;
  if (delta.added_entries == 0 && delta.removed_entries == 0) {
    return "<p>No changes were applied since the base was written, so there is nothing to "
           "compact.</p>";
  }
  const uint64_t kept = report.stats.entries - std::min(report.stats.entries, delta.added_entries);
  std::string text = StackedBar(
      {{"base", absl::StrCat("<b>", Counted(kept, "entry", "entries"), "</b> of the base"),
        static_cast<double>(kept)},
       {"accent", absl::StrCat("<b>", WithCommas(delta.added_entries), "</b> added since"),
        static_cast<double>(delta.added_entries)},
       {"gone", absl::StrCat("<b>", WithCommas(delta.removed_entries), "</b> of the base removed"),
        static_cast<double>(delta.removed_entries)}});
  absl::StrAppend(
      &text, "<p>The changes are in ", Counted(delta.segments, "sorted run", "sorted runs"), " of ",
      ByteText(static_cast<double>(delta.bytes)), ". ",
      report.should_compact ? "<b>A compaction pays now.</b>" : "A compaction does not pay yet.",
      "</p>");
  return text;
}

}  // namespace

std::string FreshnessSection(const Report& report) {
  const FreshnessFacts& fresh = report.freshness;
  std::string body = Words(report);
  if (fresh.state == State::kCanCatchUp || fresh.state == State::kCannot ||
      fresh.state == State::kTooLong) {
    absl::StrAppend(&body, "<dl class=\"pair\"><div><dt>Index, at sequence number</dt><dd>",
                    WithCommas(report.stats.sequence), "</dd></div><div><dt>Database</dt><dd>",
                    WithCommas(fresh.sequence), "</dd></div></dl>");
  }
  return Section("freshness", "Freshness and compaction", FreshnessFinding(report),
                 body + Merges(report));
}

}  // namespace cairn::tools
