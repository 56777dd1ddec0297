// Charts of the distribution of one part of the key: numbers as a histogram, and text by its
// prefixes.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/report/part_values.h"
#include "tools/report/sections.h"
#include "tools/report/svg.h"
#include "tools/report/words.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

double Share(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
}

// Describes interval i in words.
std::string IntervalWords(const Histogram& histogram, size_t i) {
  const double lower = EdgeOf(histogram, i), upper = EdgeOf(histogram, i + 1);
  if (!histogram.whole) {
    return histogram.lower == histogram.upper
               ? PlainNumber(lower)
               : absl::StrCat(PlainNumber(lower, 4), " to ", PlainNumber(upper, 4));
  }
  const double first = std::ceil(lower), last = std::ceil(upper) - 1;
  return first >= last ? PlainNumber(first)
                       : absl::StrCat(PlainNumber(first), " to ", PlainNumber(last));
}

std::string AxisNumber(double number) {
  const double size = std::fabs(number);
  if (size >= 10000) {
    return size >= 1e15 ? absl::StrFormat("%.3g", number)
                        : absl::StrCat(number < 0 ? "−" : "", ShortNumber(size));
  }
  return PlainNumber(number, 4);
}

// Draws columns over the range of the numbers, with the median marked.
std::string DrawHistogram(const Histogram& histogram, double width) {
  constexpr double kTop = 34, kBottom = 30;
  const double height = width > 500 ? 240 : 210;
  const double base = height - kBottom;
  const size_t size = histogram.counts.size();
  const uint64_t most =
      std::max<uint64_t>(*std::max_element(histogram.counts.begin(), histogram.counts.end()), 1);
  Svg svg(width, height,
          absl::StrCat("Histogram from ", PlainNumber(histogram.lower), " to ",
                       PlainNumber(histogram.upper), "; median ", PlainNumber(histogram.median)));
  const double end = histogram.upper + histogram.whole;
  const Scale x = Scale::Linear(histogram.lower, end, 0, width);
  const double pitch = width / static_cast<double>(size);
  const double gap = size > 1 ? std::min(1.5, pitch * 0.15) : 0;
  for (size_t i = 0; i < size; ++i) {
    if (histogram.counts[i] == 0) continue;
    const double tall = std::max((base - kTop) * Share(histogram.counts[i], most), 1.0);
    svg.Rect(pitch * static_cast<double>(i), base - tall, pitch - gap, tall, "bar",
             absl::StrCat(IntervalWords(histogram, i), ": ",
                          Counted(histogram.counts[i], "entry", "entries")));
  }
  svg.Line(0, base + 0.5, width, base + 0.5, "axis");
  // The label of a small whole number is below its column.
  const double shift =
      histogram.whole && static_cast<double>(size) == end - histogram.lower ? pitch / 2 : 0;
  for (const double tick : x.Ticks(width > 500 ? 8 : 4)) {
    const double at = x(tick) + shift;
    if (at > width || (histogram.whole && tick != std::floor(tick))) continue;
    svg.Line(at, base + 1, at, base + 5, "axis");
    const Anchor anchor = at < 20           ? Anchor::kStart
                          : at > width - 20 ? Anchor::kEnd
                                            : Anchor::kMiddle;
    svg.Text(at, height - 8, anchor, "tick", AxisNumber(tick));
  }
  if (histogram.median >= histogram.lower && histogram.median <= histogram.upper && size > 1) {
    const double at = std::min(x(histogram.median) + shift, width);
    svg.Line(at, 20, at, base, "median");
    const Anchor anchor = at < width / 2 ? Anchor::kStart : Anchor::kEnd;
    svg.Text(at, 13, anchor, "value strong",
             absl::StrCat("median ", PlainNumber(histogram.median)));
  }
  return svg.Finish();
}

// Describes the values outside of the histogram.
std::string SpecialWords(const PartFacts& part) {
  std::vector<std::string> words;
  const auto add = [&](uint64_t count, absl::string_view what) {
    if (count == 0) return;
    words.push_back(absl::StrCat(PercentText(Share(count, part.looked_at)), " ", what));
  };
  if (part.histogram.has_value()) {
    add(part.histogram->below,
        absl::StrCat("are below, down to ", PlainNumber(part.histogram->least)));
    add(part.histogram->above,
        absl::StrCat("are above, up to ", PlainNumber(part.histogram->most)));
  }
  add(part.nulls, "are null");
  add(part.nans, "are not a number");
  add(part.lowest, "are minus infinity");
  add(part.highest, "are infinity");
  std::string text;
  for (const std::string& word : words) absl::StrAppend(&text, text.empty() ? "" : "; ", word);
  if (!text.empty()) text += ". ";
  return text;
}

constexpr double kLevelHeight = 46;

// The number of characters in which bytes are shown.
size_t CharactersOf(absl::string_view bytes) {
  std::string text;
  AppendReadable({bytes.data(), bytes.size()}, &text);
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// Draws one level of an icicle below [x, x + width), the pixels of `whole` values.
void DrawLevel(const std::vector<PrefixShare>& shares, double x, double width, uint64_t whole,
               size_t level, uint64_t all, Svg* svg) {
  // The accent color is for a share that is clearly the largest.
  uint64_t largest = 0, second = 0;
  for (const PrefixShare& share : shares) {
    second = std::max(second, std::min(largest, share.values));
    largest = std::max(largest, share.values);
  }
  const double y = 1 + kLevelHeight * static_cast<double>(level);
  for (const PrefixShare& share : shares) {
    const double wide = width * Share(share.values, whole);
    const std::string words = Escape(share.prefix, 40);
    svg->Rect(
        x, y, std::max(wide - 1.5, 0.5), kLevelHeight - 2,
        level == 0 && shares.size() > 1 && share.values == largest && largest > second + second / 5
            ? "cell most"
            : absl::StrCat("cell level", level),
        absl::StrCat(words, ": ", Counted(share.values, "entry", "entries"), ", ",
                     PercentText(Share(share.values, all))));
    // A label that has too little room is omitted.
    const std::string label = Escape(share.prefix, 24);
    const std::string percent = PercentText(Share(share.values, all));
    if (wide > 7.4 * static_cast<double>(CharactersOf(share.prefix)) + 12) {
      svg->Text(x + 6, y + 19, Anchor::kStart, "cellname", label);
      if (wide > 6.8 * static_cast<double>(percent.size()) + 10) {
        svg->Text(x + 6, y + 35, Anchor::kStart, "cellshare", percent);
      }
    }
    DrawLevel(share.longer, x, wide, share.values, level + 1, all, svg);
    x += wide;
  }
}

size_t Depth(const std::vector<PrefixShare>& shares) {
  size_t depth = 0;
  for (const PrefixShare& share : shares) depth = std::max(depth, 1 + Depth(share.longer));
  return depth;
}

// Draws the prefixes of text in order: a cell is as wide as its share, and longer prefixes are
// below.
std::string DrawPrefixes(const PartFacts& part, const std::vector<PrefixShare>& shares,
                         uint64_t whole, double width) {
  const double height = kLevelHeight * static_cast<double>(Depth(shares)) + 2;
  Svg svg(width, height, "Shares of the entries by the prefixes of their keys, in order");
  DrawLevel(shares, 0, width, whole, 0, part.looked_at, &svg);
  return svg.Finish();
}

void AddRows(const std::vector<PrefixShare>& shares, uint64_t all,
             std::vector<std::vector<std::string>>* rows) {
  for (const PrefixShare& share : shares) {
    rows->push_back({absl::StrCat("<bdi class=\"key\">", Escape(share.prefix, 60), "</bdi>"),
                     WithCommas(share.values), PercentText(Share(share.values, all))});
    AddRows(share.longer, all, rows);
  }
}

std::string CountedHow(const PartFacts& part) {
  return part.exact ? "Counted exactly." : "From a sample.";
}

}  // namespace

std::string PartCharts(const PartFacts& part, absl::string_view name) {
  if (part.histogram.has_value()) {
    const Histogram& histogram = *part.histogram;
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      rows.push_back({IntervalWords(histogram, i), WithCommas(histogram.counts[i]),
                      PercentText(Share(histogram.counts[i], part.looked_at))});
    }
    return Figure(name, InTwoWidths([&](double width) { return DrawHistogram(histogram, width); }),
                  absl::StrCat(SpecialWords(part), CountedHow(part))) +
           FoldedTable("The numbers", {"Keys", "Entries", "Share"}, rows);
  }
  if (part.prefixes.empty()) {
    const std::string words = SpecialWords(part);
    return words.empty() ? "" : absl::StrCat("<p class=\"note\">", name, ": ", words, "</p>");
  }
  // The common prefix of all needs no cell of its own.
  const std::vector<PrefixShare>* shares = &part.prefixes;
  uint64_t whole = part.looked_at;
  std::string common;
  if (shares->size() == 1 && !(*shares)[0].longer.empty() &&
      (*shares)[0].values == part.looked_at) {
    common = absl::StrCat("All begin with <bdi class=\"key\">", Escape((*shares)[0].prefix, 60),
                          "</bdi>. ");
    shares = &(*shares)[0].longer;
  }
  std::vector<std::vector<std::string>> rows;
  AddRows(*shares, part.looked_at, &rows);
  return Figure(absl::StrCat(name, ": prefixes"), InTwoWidths([&](double width) {
                  return DrawPrefixes(part, *shares, whole, width);
                }),
                absl::StrCat(common, SpecialWords(part), CountedHow(part))) +
         FoldedTable("The numbers", {"Begins with", "Entries", "Share"}, rows);
}

}  // namespace cairn::tools
