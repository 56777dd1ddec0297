#include "cairn/prometheus.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

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

std::string IndexLabels(const NamedStats& named) {
  std::string labels = Label("index", named.index);
  if (!named.database.empty()) {
    absl::StrAppend(&labels, ",", Label("database", named.database));
  }
  return labels;
}

std::string RouteLabels(const NamedStats& named, const RouteStats& route) {
  return absl::StrCat(IndexLabels(named), ",", Label("route", route.route));
}

// An index of an IndexedDB.
struct LiveSample {
  IndexInfo info;
  std::string labels;
  std::optional<IndexStats> stats;  // present once the index is built
};

class Page {
 public:
  explicit Page(absl::Span<const NamedStats> indexes) : indexes_(indexes) {}

  // Begins a metric. Its samples follow.
  void Metric(const char* name, const char* type, const char* help) {
    name_ = name;
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  // Adds a sample of the metric. `suffix` follows the metric's name.
  void Sample(const char* suffix, const std::string& labels, double value) {
    absl::StrAppendFormat(&text_, "%s%s{%s} %.17g\n", name_, suffix, labels, value);
  }

  // `value` is a member of IndexStats, or a function of it that returns a number.
  template <typename Value>
  void Gauge(const char* name, const char* help, const Value& value) {
    Metric(name, "gauge", help);
    for (const NamedStats& named : indexes_) {
      Sample("", IndexLabels(named), static_cast<double>(std::invoke(value, *named.stats)));
    }
  }
  // The same for live indexes; `value` is a member or function of IndexInfo.
  template <typename Value>
  void Live(const char* name, const char* type, const char* help,
            absl::Span<const LiveSample> samples, const Value& value) {
    Metric(name, type, help);
    for (const LiveSample& sample : samples) {
      Sample("", sample.labels, static_cast<double>(std::invoke(value, sample.info)));
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

// Buckets are cumulative, with limits in seconds.
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
      Sample("", absl::StrCat(IndexLabels(named), ",", Label("ordered_index", ordered.description)),
             static_cast<double>(ordered.bytes));
    }
  }
}

uint64_t MemoryBytes(const IndexStats& stats) {
  uint64_t bytes = stats.delta.bytes;
  for (const IndexStats::OrderedIndex& ordered : stats.ordered_indexes) bytes += ordered.bytes;
  for (const IndexStats::Aggregates& aggregates : stats.aggregates) bytes += aggregates.bytes;
  return bytes;
}

uint64_t FileBytes(const IndexStats& stats) {
  uint64_t bytes = 0;
  for (const IndexStats::Section& section : stats.sections) bytes += section.bytes;
  return bytes;
}

void AddStats(Page* page) {
  page->Counter("cairn_batches_total", "Batches answered.", &RouteStats::batches);
  page->Counter("cairn_queries_total", "Queries answered.", &RouteStats::queries);
  page->Counter("cairn_bytes_total", "Bytes of keys and answers.", &RouteStats::bytes);
  page->Counter("cairn_route_failures_total", "Batches that another route had to answer.",
                &RouteStats::failures);
  page->ResponseTimes();
  page->Gauge("cairn_rows", "Rows of the indexed column family.", &IndexStats::rows);
  page->Gauge("cairn_entries", "Entries of the index.", &IndexStats::entries);
  page->Gauge("cairn_sequence", "RocksDB sequence number that the index is current to.",
              &IndexStats::sequence);
  page->Gauge("cairn_delta_entries", "Entries added and removed since the last compaction.",
              [](const IndexStats& stats) {
                return stats.delta.added_entries + stats.delta.removed_entries;
              });
  page->Gauge("cairn_delta_bytes", "Memory of the changes since the last compaction.",
              [](const IndexStats& stats) { return stats.delta.bytes; });
  page->Gauge("cairn_memory_bytes", "Memory of the index, except mapped files.", MemoryBytes);
  page->Gauge("cairn_file_bytes", "Size of the index's files.", FileBytes);
  page->OrderedIndexes();
}

void AddStates(absl::Span<const LiveSample> samples, Page* page) {
  page->Metric("cairn_index_state", "gauge", "1 for the state that the index is in, 0 for others.");
  for (const LiveSample& sample : samples) {
    for (const IndexState state : {IndexState::kBuilding, IndexState::kCatchingUp,
                                   IndexState::kReady, IndexState::kStale, IndexState::kFailed}) {
      page->Sample("", absl::StrCat(sample.labels, ",", Label("state", IndexStateName(state))),
                   sample.info.state == state ? 1 : 0);
    }
  }
  page->Live("cairn_index_lag_sequences", "gauge",
             "Sequence numbers of the database that the index has not applied yet.", samples,
             &IndexInfo::sequence_lag);
  page->Live("cairn_index_lag_seconds", "gauge",
             "Time since a ready index last had zero lag; 0 in other states.", samples,
             [](const IndexInfo& info) { return absl::ToDoubleSeconds(info.time_lag); });
  page->Live("cairn_index_build_progress_ratio", "gauge",
             "Share of a build that is done, 0 to 1; 0 if there is none.", samples,
             &IndexInfo::progress);
}

void AddWork(absl::Span<const LiveSample> samples, Page* page) {
  page->Live("cairn_index_builds_total", "counter", "Builds that succeeded.", samples,
             &IndexInfo::builds);
  page->Live("cairn_index_build_failures_total", "counter", "Builds that failed.", samples,
             &IndexInfo::build_failures);
  page->Live("cairn_index_flushes_total", "counter",
             "Times that the index's changes were written to its directory.", samples,
             &IndexInfo::flushes);
  page->Live("cairn_index_flush_failures_total", "counter", "Flushes that failed.", samples,
             &IndexInfo::flush_failures);
  page->Live("cairn_index_flush_failing", "gauge", "1 if the last flush failed.", samples,
             [](const IndexInfo& info) { return info.flush_status.ok() ? 0 : 1; });
  page->Live("cairn_index_compactions_total", "counter", "Compactions that succeeded.", samples,
             &IndexInfo::compactions);
  page->Live("cairn_index_compaction_failures_total", "counter", "Compactions that failed.",
             samples, &IndexInfo::compaction_failures);
  page->Live("cairn_index_compaction_failing", "gauge", "1 if the last compaction failed.", samples,
             [](const IndexInfo& info) { return info.compact_status.ok() ? 0 : 1; });
}

void AddBacklog(absl::Span<const IndexedDB* const> databases, Page* page) {
  const auto add = [&](const char* name, const char* help, const auto& value) {
    page->Metric(name, "counter", help);
    for (const IndexedDB* database : databases) {
      page->Sample("", Label("database", database->GetName()), value(database->Backlog()));
    }
  };
  add("cairn_backlog_waits_total", "Writes that waited for indexes.",
      [](const BacklogStats& stats) { return static_cast<double>(stats.waits); });
  add("cairn_backlog_wait_seconds_total", "Time that writes waited for indexes.",
      [](const BacklogStats& stats) { return absl::ToDoubleSeconds(stats.wait_time); });
  add("cairn_backlog_refusals_total", "Writes with no_slowdown that indexes rejected.",
      [](const BacklogStats& stats) { return static_cast<double>(stats.refusals); });
}

}  // namespace

std::string PrometheusText(absl::Span<const NamedStats> indexes) {
  Page page(indexes);
  AddStats(&page);
  return page.Take();
}

std::string PrometheusText(absl::Span<const IndexedDB* const> databases) {
  std::vector<LiveSample> samples;
  std::vector<std::string> names;
  names.reserve(databases.size());
  std::vector<size_t> database_of;  // of each sample
  for (const IndexedDB* database : databases) {
    names.push_back(database->GetName());
    for (IndexInfo& info : database->ListIndexes()) {
      std::string labels = absl::StrCat(Label("index", info.spec.name), ",",
                                        Label("column_family", info.spec.column_family), ",",
                                        Label("database", names.back()));
      std::optional<IndexStats> stats;
      if (const auto pinned = database->PinStale(info.spec.name); pinned.ok()) {
        if (auto read = (*pinned)->Stats(); read.ok()) stats = *std::move(read);
      }
      samples.push_back({std::move(info), std::move(labels), std::move(stats)});
      database_of.push_back(names.size() - 1);
    }
  }
  std::vector<NamedStats> built;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i].stats.has_value()) continue;
    built.push_back({samples[i].info.spec.name, &*samples[i].stats, names[database_of[i]]});
  }
  Page page(built);
  AddStats(&page);
  AddStates(samples, &page);
  AddWork(samples, &page);
  AddBacklog(databases, &page);
  return page.Take();
}

std::string PrometheusText(const IndexedDB& database) {
  const IndexedDB* const one[] = {&database};
  return PrometheusText(absl::MakeConstSpan(one));
}

}  // namespace cairn
