// The section about speed: throughput against response time, and each kind of query.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/report/sections.h"
#include "tools/report/svg.h"
#include "tools/report/words.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

double Rate(const BatchTime& time) {
  return static_cast<double>(time.queries) / time.seconds;
}
double Each(const BatchTime& time) {
  return time.seconds / static_cast<double>(time.queries);
}
double Predicted(const BatchTime& time) {
  return time.predicted / static_cast<double>(time.queries);
}

std::string PointWords(std::string_view route, const BatchTime& time) {
  std::string words =
      absl::StrCat(Escape(route), ": ", Counted(time.queries, "key", "keys"), " in ",
                   TimeText(time.seconds), ", ", ShortNumber(Rate(time)), "/s");
  if (time.predicted > 0) absl::StrAppend(&words, "; predicted ", TimeText(time.predicted));
  return words;
}

// The extremes of all times.
struct Extent {
  double min_seconds = INFINITY, max_seconds = 0, min_rate = INFINITY, max_rate = 0;
  double min_each = INFINITY, max_each = 0;
  uint64_t max_queries = 1;

  void Add(const BatchTime& time) {
    min_seconds = std::min(min_seconds, time.seconds);
    max_seconds = std::max(max_seconds, time.seconds);
    min_rate = std::min(min_rate, Rate(time));
    max_rate = std::max(max_rate, Rate(time));
    for (const double each : {Each(time), Predicted(time)}) {
      if (!(each > 0)) continue;
      min_each = std::min(min_each, each);
      max_each = std::max(max_each, each);
    }
    max_queries = std::max(max_queries, time.queries);
  }
};

Extent ExtentOf(const SpeedFacts& speed) {
  Extent extent;
  for (const RouteTimes& route : speed.routes) {
    for (const BatchTime& time : route.times) extent.Add(time);
  }
  return extent;
}

// The route that the router chooses, by batch size.
struct Taken {
  const RouteTimes* route;
  const BatchTime* time;
};

std::vector<Taken> TakenOf(const SpeedFacts& speed) {
  std::vector<Taken> taken;
  for (const RouteTimes& route : speed.routes) {
    for (const BatchTime& time : route.times) {
      if (time.chosen) taken.push_back({&route, &time});
    }
  }
  std::sort(taken.begin(), taken.end(),
            [](const Taken& a, const Taken& b) { return a.time->queries < b.time->queries; });
  return taken;
}

std::vector<Svg::Point> Points(const RouteTimes& route, const Scale& x, const Scale& y) {
  std::vector<Svg::Point> points;
  for (const BatchTime& time : route.times) points.push_back({x(time.seconds), y(Rate(time))});
  return points;
}

std::string RateTick(double rate) {
  return absl::StrCat(ShortNumber(rate), "/s");
}

// Draws all routes; those that the router takes are marked and labeled with their batch's size.
std::string DrawResponse(const SpeedFacts& speed, double width) {
  const bool wide = width > 500;
  const double height = wide ? 430 : 330, left = wide ? 62 : 50, right = wide ? 24 : 14, top = 30,
               bottom = 48;
  const Extent extent = ExtentOf(speed);
  Svg svg(width, height,
          "Throughput against response time of batches, on a logarithmic scale; the table below "
          "has the numbers");
  const Scale x =
      Scale::Log(extent.min_seconds / 1.3, extent.max_seconds * 1.3, left, width - right);
  const Scale y = Scale::Log(extent.min_rate / 1.3, extent.max_rate * 1.5, height - bottom, top);
  for (const double tick : y.Ticks(8)) {
    svg.Line(left, y(tick), width - right, y(tick), "grid");
    svg.Text(left - 8, y(tick) + 4, Anchor::kEnd, "tick", RateTick(tick));
  }
  for (const double tick : x.Ticks(wide ? 8 : 4)) {
    svg.Line(x(tick), top, x(tick), height - bottom, "grid");
    svg.Text(x(tick), height - bottom + 18, Anchor::kMiddle, "tick", TimeText(tick));
  }
  svg.Text(width - right, height - 8, Anchor::kEnd, "axisname", "response time of a batch →");
  svg.Text(0, 14, Anchor::kStart, "axisname", "↑ keys a second");
  for (const RouteTimes& route : speed.routes) svg.Path(Points(route, x, y), "other");
  for (const RouteTimes& route : speed.routes) {
    for (const BatchTime& time : route.times) {
      svg.Circle(x(time.seconds), y(Rate(time)), 2, "dot", PointWords(route.route, time));
    }
  }
  std::vector<Svg::Point> line;
  const std::vector<Taken> taken = TakenOf(speed);
  for (const Taken& one : taken) line.push_back({x(one.time->seconds), y(Rate(*one.time))});
  svg.Path(line, "taken");
  double last_x = -100, last_y = -100;
  for (size_t i = 0; i < taken.size(); ++i) {
    svg.Circle(line[i].x, line[i].y, 4.5, "takendot",
               PointWords(taken[i].route->route, *taken[i].time));
    const bool is_last = i + 1 == taken.size();
    if (!is_last && std::hypot(line[i].x - last_x, line[i].y - last_y) < (wide ? 46 : 42)) continue;
    if (is_last && std::hypot(line[i].x - last_x, line[i].y - last_y) < 30) continue;
    last_x = line[i].x;
    last_y = line[i].y;
    svg.Text(std::clamp(line[i].x - 6, left + 4, width - 16), line[i].y - 11, Anchor::kEnd,
             "value strong", BatchText(taken[i].time->queries));
  }
  return svg.Finish();
}

// Draws one route among the others, which are gray.
std::string DrawRoute(const SpeedFacts& speed, const RouteTimes& route) {
  constexpr double kWidth = 320, kHeight = 200, kLeft = 46, kRight = 8, kTop = 10, kBottom = 22;
  const Extent extent = ExtentOf(speed);
  Svg svg(kWidth, kHeight,
          absl::StrCat("Throughput against response time of ", Escape(route.route)));
  const Scale x =
      Scale::Log(extent.min_seconds / 1.3, extent.max_seconds * 1.3, kLeft, kWidth - kRight);
  const Scale y = Scale::Log(extent.min_rate / 1.3, extent.max_rate * 1.5, kHeight - kBottom, kTop);
  for (const double tick : y.Ticks(8)) {
    svg.Line(kLeft, y(tick), kWidth - kRight, y(tick), "grid");
    svg.Text(kLeft - 6, y(tick) + 4, Anchor::kEnd, "tick", RateTick(tick));
  }
  for (const double tick : x.Ticks(4)) {
    svg.Text(x(tick), kHeight - 6, Anchor::kMiddle, "tick", TimeText(tick));
  }
  for (const RouteTimes& other : speed.routes) {
    if (&other != &route) svg.Path(Points(other, x, y), "other faint");
  }
  svg.Path(Points(route, x, y), "this");
  for (const BatchTime& time : route.times) {
    svg.Circle(x(time.seconds), y(Rate(time)), time.chosen ? 4 : 2.2,
               time.chosen ? "takendot" : "thisdot", PointWords(route.route, time));
  }
  return svg.Finish();
}

std::string RouteHeadline(const RouteTimes& route) {
  const auto best =
      std::max_element(route.times.begin(), route.times.end(),
                       [](const auto& a, const auto& b) { return Rate(a) < Rate(b); });
  const auto chosen = std::count_if(route.times.begin(), route.times.end(),
                                    [](const BatchTime& time) { return time.chosen; });
  std::string text = absl::StrCat("<code>", Escape(route.route), "</code>");
  absl::StrAppend(&text, "<small>at best ", TimeText(Each(*best)), " per key",
                  chosen == 0 ? ", not taken"
                              : absl::StrCat(", taken for <b>", chosen, " of ", route.times.size(),
                                             "</b> sizes"),
                  "</small>");
  return text;
}

// Draws the time per query of one kind over the batch size: predicted and measured.
std::string DrawWork(const WorkTimes& work, const Extent& extent) {
  constexpr double kWidth = 320, kHeight = 200, kLeft = 50, kRight = 26, kTop = 18, kBottom = 22;
  Svg svg(kWidth, kHeight,
          absl::StrCat("Time per query over the size of a batch: ", Escape(work.name)));
  const Scale x = Scale::Log(1, static_cast<double>(std::max<uint64_t>(extent.max_queries, 10)),
                             kLeft, kWidth - kRight);
  const Scale y = Scale::Log(extent.min_each / 1.6, extent.max_each * 1.6, kHeight - kBottom, kTop);
  for (const double tick : y.Ticks(8)) {
    svg.Line(kLeft, y(tick), kWidth - kRight + 18, y(tick), "grid");
    svg.Text(kLeft - 6, y(tick) + 4, Anchor::kEnd, "tick", TimeText(tick));
  }
  std::vector<Svg::Point> observed, predicted;
  for (const BatchTime& time : work.times) {
    const double at = x(static_cast<double>(time.queries));
    observed.push_back({at, y(Each(time))});
    if (time.predicted > 0) predicted.push_back({at, y(Predicted(time))});
    svg.Text(at, kHeight - 6, Anchor::kMiddle, "tick", BatchText(time.queries));
  }
  svg.Path(predicted, "predicted");
  svg.Path(observed, "taken");
  for (size_t i = 0; i < work.times.size(); ++i) {
    const BatchTime& time = work.times[i];
    if (time.predicted > 0) {
      svg.Circle(x(static_cast<double>(time.queries)), y(Predicted(time)), 2.5, "predicteddot",
                 absl::StrCat("predicted ", TimeText(Predicted(time)), " each"));
    }
    svg.Circle(observed[i].x, observed[i].y, 4, "takendot",
               absl::StrCat(Counted(time.queries, "query", "queries"), ": ", TimeText(Each(time)),
                            " each"));
    if (i == 0 || i + 1 == work.times.size()) {
      // Next to the line's start; at its end above it, or below if the line descends.
      const bool from_above = i != 0 && observed[i].y - observed[i - 1].y > 6;
      svg.Text(observed[i].x + (i == 0 ? 8 : 14), observed[i].y + (from_above ? 20 : -9),
               i == 0 ? Anchor::kStart : Anchor::kEnd, "value strong", TimeText(Each(time)));
    }
  }
  return svg.Finish();
}

std::vector<std::string> TableRow(std::string_view name, const BatchTime& time) {
  return {absl::StrCat("<code>", Escape(name), "</code>"),
          WithCommas(time.queries),
          TimeText(time.seconds),
          time.predicted > 0 ? TimeText(time.predicted) : "–",
          TimeText(Each(time)),
          time.chosen ? "yes" : ""};
}

std::string SpeedFinding(const std::vector<Taken>& taken) {
  if (taken.empty()) return "";
  const auto best = std::min_element(
      taken.begin(), taken.end(),
      [](const Taken& a, const Taken& b) { return Each(*a.time) < Each(*b.time); });
  std::string text = absl::StrCat("<b>", TimeText(Each(*best->time)), "</b> per key in batches of ",
                                  BatchText(best->time->queries));
  if (best->time->queries != taken[0].time->queries && taken[0].time->queries == 1) {
    absl::StrAppend(&text, ", <b>", TimeText(taken[0].time->seconds), "</b> for a single key");
  }
  return text + ".";
}

std::string Structures(const Report& report) {
  std::string text;
  for (const IndexStats::OrderedIndex& one : report.stats.ordered_indexes) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", Escape(one.description));
  }
  return text;
}

}  // namespace

std::string SpeedSection(const Report& report) {
  const SpeedFacts& speed = report.speed;
  const bool drawn = std::any_of(speed.routes.begin(), speed.routes.end(),
                                 [](const RouteTimes& route) { return !route.times.empty(); });
  if (!speed.measured || (!drawn && speed.works.empty())) {
    if (report.stats.entries == 0) return "";
    return Section("speed", "Speed", "Nothing was timed.", "");
  }
  std::string body;
  std::vector<std::vector<std::string>> rows;
  const std::vector<std::string> head = {"Route", "Batch", "Time", "Predicted", "Each", "Taken"};
  if (drawn) {
    body += Figure("Larger batches have a higher throughput and a longer response time",
                   InTwoWidths([&](double width) { return DrawResponse(speed, width); }),
                   "Keys that exist, first row of each. The routes that the router takes are "
                   "<b class=\"mark\">marked</b> with the size of the batch; all others are gray.");
    std::string grid;
    for (const RouteTimes& route : speed.routes) {
      if (route.times.empty()) continue;
      grid += Figure(RouteHeadline(route), DrawRoute(speed, route));
      for (const BatchTime& time : route.times) rows.push_back(TableRow(route.route, time));
    }
    absl::StrAppend(&body, FoldedTable("Every batch, predicted and observed", head, rows),
                    "<h3>By route</h3><div class=\"grid\">", grid, "</div>");
  }
  Extent extent;
  for (const WorkTimes& work : speed.works) {
    for (const BatchTime& time : work.times) extent.Add(time);
  }
  if (!speed.works.empty()) {
    std::string grid;
    rows.clear();
    for (const WorkTimes& work : speed.works) {
      grid += Figure(Escape(work.name), DrawWork(work, extent));
      for (const BatchTime& time : work.times) {
        rows.push_back(TableRow(work.name, time));
        rows.back().pop_back();
        rows.back()[0] = Escape(work.name);
      }
    }
    absl::StrAppend(
        &body,
        "<h3>By kind of query</h3><p class=\"note\">Time per query over the size of the batch: "
        "<b class=\"mark\">observed</b>, and predicted, dashed.</p><div class=\"grid\">",
        grid, "</div>",
        FoldedTable("The numbers", {"Work", "Batch", "Time", "Predicted", "Each"}, rows));
  }
  absl::StrAppendFormat(
      &body,
      "<p class=\"note\">Measured in %s on %s, one querying thread, keys drawn from %s of the "
      "index%s%s.</p>",
      TimeText(speed.seconds), Escape(report.machine), WithCommas(speed.distinct_queries),
      report.stats.ordered_indexes.empty() ? "" : "; searched with ", Structures(report));
  return Section("speed", "Speed", SpeedFinding(TakenOf(speed)), body);
}

}  // namespace cairn::tools
