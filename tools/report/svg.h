#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cairn::tools {

// A scale from values to pixels, linear or logarithmic.
class Scale {
 public:
  static Scale Linear(double least, double most, double first, double last);
  // Requires 0 < least <= most. The scale covers at least one decade, so that there is a tick.
  static Scale Log(double least, double most, double first, double last);

  double operator()(double value) const;
  // About `about` round values for labels, or fewer.
  std::vector<double> Ticks(int about) const;

  double first() const { return first_; }
  double last() const { return last_; }

 private:
  bool log_ = false;
  double least_ = 0;  // for a logarithmic scale, its logarithm
  double most_ = 1;
  double first_ = 0;
  double last_ = 1;
};

// The alignment of a text relative to its x.
enum class Anchor { kStart, kMiddle, kEnd };

// A drawing in the page's colors: its elements have classes of the page's style sheet.
class Svg {
 public:
  // `label` describes the drawing for screen readers; it is escaped here.
  Svg(double width, double height, absl::string_view label);

  void Line(double x1, double y1, double x2, double y2, absl::string_view css_class);
  // If `title` is not empty, it is shown when the pointer is over the shape.
  void Rect(double x, double y, double width, double height, absl::string_view css_class,
            absl::string_view title = "");
  void Circle(double x, double y, double radius, absl::string_view css_class,
              absl::string_view title = "");
  // `words` must already be escaped.
  void Text(double x, double y, Anchor anchor, absl::string_view css_class,
            absl::string_view words);
  struct Point {
    double x;
    double y;
  };
  void Path(const std::vector<Point>& points, absl::string_view css_class);

  std::string Finish();

 private:
  std::string text_;
};

// A chart drawn twice, wide and narrow; the style sheet shows the one that fits:
// `draw(width)` draws it.
template <typename Draw>
std::string InTwoWidths(const Draw& draw) {
  return "<div class=\"wide\">" + draw(1000.0) + "</div><div class=\"narrow\">" + draw(360.0) +
         "</div>";
}

}  // namespace cairn::tools
