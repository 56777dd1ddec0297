#include "cairn/prometheus.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace cairn {
namespace {

std::string EscapedLabel(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped.push_back('\\');
    escaped.append(c == '\n' ? "\\n" : std::string(1, c));
  }
  return escaped;
}

std::string Label(const char* name, std::string_view value) {
  return absl::StrCat(name, "=\"", EscapedLabel(value), "\"");
}

std::string RouteLabels(const NamedStats& named, const RouteStats& route) {
  return absl::StrCat(Label("index", named.index), ",", Label("route", route.route));
}

class Page {
 public:
  explicit Page(absl::Span<const NamedStats> indexes) : indexes_(indexes) {}

  // What a metric is; its samples follow.
  void Metric(const char* name, const char* type, const char* help) {
    name_ = name;
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  // A sample, under the metric's name and a suffix.
  void Sample(const char* suffix, const std::string& labels, double value) {
    absl::StrAppendFormat(&text_, "%s%s{%s} %.17g\n", name_, suffix, labels, value);
  }

  void Gauge(const char* name, const char* help, uint64_t IndexStats::*value) {
    Metric(name, "gauge", help);
    for (const NamedStats& named : indexes_) {
      Sample("", Label("index", named.index), static_cast<double>(named.stats->*value));
    }
  }
  void Counter(const char* name, const char* help, uint64_t RouteStats::*value) {
    Metric(name, "counter", help);
    for (const NamedStats& named : indexes_) {
      for (const RouteStats& route : named.stats->routes) {
        Sample("", RouteLabels(named, route), static_cast<double>(route.*value));
      }
    }
  }
  void ResponseTimes();
  void OrderedIndexes();

  std::string Take() { return std::move(text_); }

 private:
  const absl::Span<const NamedStats> indexes_;
  std::string name_;
  std::string text_;
};

// Buckets are cumulative, and their limits in seconds.
void Page::ResponseTimes() {
  Metric("cairn_response_seconds", "histogram", "Response times of batches.");
  for (const NamedStats& named : indexes_) {
    for (const RouteStats& route : named.stats->routes) {
      const std::string labels = RouteLabels(named, route);
      uint64_t batches = 0;
      for (size_t b = 0; b < RouteStats::kBuckets; ++b) {
        batches += route.response_times[b];
        const std::string limit =
            b + 1 == RouteStats::kBuckets
                ? "+Inf"
                : absl::StrFormat("%g", 1e-6 * static_cast<double>(uint64_t{1} << b));
        Sample("_bucket", absl::StrCat(labels, ",", Label("le", limit)),
               static_cast<double>(batches));
      }
      Sample("_sum", labels, absl::ToDoubleSeconds(route.busy));
      Sample("_count", labels, static_cast<double>(batches));
    }
  }
}

void Page::OrderedIndexes() {
  Metric("cairn_ordered_index_bytes", "gauge", "Memory of an ordered index beyond its run.");
  for (const NamedStats& named : indexes_) {
    for (const IndexStats::OrderedIndex& ordered : named.stats->ordered_indexes) {
      Sample("",
             absl::StrCat(Label("index", named.index), ",",
                          Label("ordered_index", ordered.description)),
             static_cast<double>(ordered.bytes));
    }
  }
}

}  // namespace

std::string PrometheusText(absl::Span<const NamedStats> indexes) {
  Page page(indexes);
  page.Counter("cairn_batches_total", "Batches answered.", &RouteStats::batches);
  page.Counter("cairn_queries_total", "Queries answered.", &RouteStats::queries);
  page.Counter("cairn_bytes_total", "Bytes of keys and answers.", &RouteStats::bytes);
  page.Counter("cairn_route_failures_total", "Batches that another route had to answer.",
               &RouteStats::failures);
  page.ResponseTimes();
  page.Gauge("cairn_rows", "Rows of the indexed column family.", &IndexStats::rows);
  page.Gauge("cairn_entries", "Entries of the index.", &IndexStats::entries);
  page.Gauge("cairn_sequence", "RocksDB sequence number that the index is current to.",
             &IndexStats::sequence);
  page.OrderedIndexes();
  return page.Take();
}

}  // namespace cairn
