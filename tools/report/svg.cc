#include "tools/report/svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cairn::tools {
namespace {

// The element of a title, or nothing.
std::string Title(absl::string_view title) {
  return title.empty() ? "" : absl::StrCat("<title>", title, "</title>");
}

}  // namespace

Scale Scale::Linear(double least, double most, double first, double last) {
  Scale scale;
  scale.least_ = least;
  scale.most_ = most > least ? most : least + 1;
  scale.first_ = first;
  scale.last_ = last;
  return scale;
}

Scale Scale::Log(double least, double most, double first, double last) {
  double low = std::log10(least), high = std::log10(most);
  if (high - low < 1) {
    const double middle = (low + high) / 2;
    low = middle - 0.5;
    high = middle + 0.5;
  }
  Scale scale = Linear(low, high, first, last);
  scale.log_ = true;
  return scale;
}

double Scale::operator()(double value) const {
  const double at = log_ ? std::log10(value) : value;
  // Divides large values before subtracting, since their difference may be infinite.
  const double share = (at / 2 - least_ / 2) / (most_ / 2 - least_ / 2);
  return first_ + share * (last_ - first_);
}

std::vector<double> Scale::Ticks(int about) const {
  std::vector<double> ticks;
  if (log_) {
    // Powers of ten, or every second or third one; if these are few, also 2 and 5 times them.
    const double decades = most_ - least_;
    const double step = std::max(1.0, std::ceil(decades / about));
    const bool between = 3 * decades <= about;
    for (double at = std::floor(least_); at <= most_; at += step) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double exact = at + std::log10(factor);
        if (factor > 1 && !between) break;
        if (exact >= least_ - 1e-9 && exact <= most_ + 1e-9) {
          ticks.push_back(factor * std::pow(10, at));
        }
      }
    }
    return ticks;
  }
  const double rough = most_ / about - least_ / about;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough) break;
  }
  if (!std::isfinite(step) || !(step > 0)) return {least_, most_};
  const double first = std::ceil(least_ / step - 1e-9);
  for (double i = 0; i <= 2.0 * about && (first + i) * step <= most_ + step * 1e-9; ++i) {
    ticks.push_back((first + i) * step);
  }
  return ticks;
}

Svg::Svg(double width, double height, absl::string_view label) {
  absl::StrAppendFormat(&text_,
                        "<svg viewBox=\"0 0 %g %g\" xmlns=\"http://www.w3.org/2000/svg\" "
                        "role=\"img\" aria-label=\"%s\">",
                        width, height, label);
}

void Svg::Line(double x1, double y1, double x2, double y2, absl::string_view css_class) {
  absl::StrAppendFormat(&text_,
                        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>", x1,
                        y1, x2, y2, css_class);
}

void Svg::Rect(double x, double y, double width, double height, absl::string_view css_class,
               absl::string_view title) {
  absl::StrAppendFormat(
      &text_, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s\">%s</rect>",
      x, y, std::max(width, 0.0), std::max(height, 0.0), css_class, Title(title));
}

void Svg::Circle(double x, double y, double radius, absl::string_view css_class,
                 absl::string_view title) {
  absl::StrAppendFormat(&text_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" class=\"%s\">%s</circle>",
                        x, y, radius, css_class, Title(title));
}

void Svg::Text(double x, double y, Anchor anchor, absl::string_view css_class,
               absl::string_view words) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  absl::StrAppendFormat(&text_,
                        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>", x,
                        y, kAnchors[static_cast<int>(anchor)], css_class, words);
}

void Svg::Path(const std::vector<Point>& points, absl::string_view css_class) {
  if (points.empty()) return;
  text_ += "<path d=\"";
  for (size_t i = 0; i < points.size(); ++i) {
    absl::StrAppendFormat(&text_, "%s%.1f %.1f", i == 0 ? "M" : "L", points[i].x, points[i].y);
  }
  absl::StrAppend(&text_, "\" class=\"", css_class, "\"/>");
}

std::string Svg::Finish() {
  return std::move(text_) + "</svg>";
}

}  // namespace cairn::tools
