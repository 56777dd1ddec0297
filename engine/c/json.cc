#include "engine/c/json.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cairn/query.h"

namespace cairn {
namespace {

// Writes one JSON text, with commas between members and items.
class JsonText {
 public:
  JsonText& Begin(char bracket) {
    Separate();
    text_.push_back(bracket);
    first_ = true;
    return *this;
  }
  JsonText& End(char bracket) {
    text_.push_back(bracket);
    first_ = false;
    return *this;
  }
  JsonText& Name(std::string_view name) {
    Quote(name);
    text_.push_back(':');
    first_ = true;
    return *this;
  }
  JsonText& Quote(std::string_view value) {
    Separate();
    text_.push_back('"');
    for (const char c : value) {
      if (c == '"' || c == '\\') text_.push_back('\\');
      if (static_cast<unsigned char>(c) < 0x20) {
        absl::StrAppendFormat(&text_, "\\u%04x", c);
      } else {
        text_.push_back(c);
      }
    }
    text_.push_back('"');
    return *this;
  }
  JsonText& Raw(std::string_view value) {
    Separate();
    text_.append(value);
    return *this;
  }

  void Add(std::string_view name, std::string_view value) { Name(name).Quote(value); }
  void Add(std::string_view name, uint64_t value) { Name(name).Raw(std::to_string(value)); }
  void Add(std::string_view name, double value) {
    char number[32];
    const auto end = std::to_chars(number, number + sizeof number, value).ptr;
    Name(name).Raw(std::string_view(number, static_cast<size_t>(end - number)));
  }
  void Add(std::string_view name, absl::Duration value) {
    if (value == absl::InfiniteDuration()) {
      Name(name).Raw("null");
    } else {
      Name(name).Raw(std::to_string(absl::ToInt64Nanoseconds(value)));
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  void Separate() {
    if (!first_) text_.push_back(',');
    first_ = false;
  }

  std::string text_;
  bool first_ = true;
};

void AddRoute(const RouteStats& route, JsonText* json) {
  json->Begin('{');
  json->Add("route", route.route);
  json->Add("batches", route.batches);
  json->Add("queries", route.queries);
  json->Add("bytes", route.bytes);
  json->Add("failures", route.failures);
  json->Add("busy_ns", route.busy);
  json->Name("response_times").Begin('[');
  for (const uint64_t count : route.response_times) json->Raw(std::to_string(count));
  json->End(']').End('}');
}

void AddDelta(const IndexStats::Delta& delta, JsonText* json) {
  json->Begin('{');
  json->Add("new_rows", delta.new_rows);
  json->Add("added_entries", delta.added_entries);
  json->Add("removed_entries", delta.removed_entries);
  json->Add("segments", delta.segments);
  json->Add("bytes", delta.bytes);
  json->End('}');
}

}  // namespace

std::string ToJson(const IndexStats& stats) {
  JsonText json;
  json.Begin('{');
  json.Add("rows", stats.rows);
  json.Add("entries", stats.entries);
  json.Add("distinct_keys", stats.distinct_keys);
  json.Add("sequence", stats.sequence);
  json.Add("version", stats.version);
  json.Add("database_id", stats.database_id);
  json.Name("ordered_indexes").Begin('[');
  for (const IndexStats::OrderedIndex& index : stats.ordered_indexes) {
    json.Begin('{');
    json.Add("description", index.description);
    json.Add("bytes", index.bytes);
    json.Add("huge_page_bytes", index.huge_page_bytes);
    json.Add("mapped_bytes", index.mapped_bytes);
    json.End('}');
  }
  json.End(']');
  json.Add("fallback", stats.fallback);
  json.Name("routes").Begin('[');
  for (const RouteStats& route : stats.routes) AddRoute(route, &json);
  json.End(']');
  json.Name("delta");
  AddDelta(stats.delta, &json);
  json.Name("sections").Begin('[');
  for (const IndexStats::Section& section : stats.sections) {
    json.Begin('{');
    json.Add("file", section.file);
    json.Add("name", section.name);
    json.Add("bytes", section.bytes);
    json.End('}');
  }
  json.End(']').End('}');
  return json.Take();
}

std::string ToJson(const Explain& explain) {
  JsonText json;
  json.Begin('{');
  json.Add("operation", OperationName(explain.operation));
  json.Add("queries", uint64_t{explain.queries});
  json.Add("expected_rows", explain.expected_rows);
  json.Name("candidates").Begin('[');
  for (const Explain::Candidate& candidate : explain.candidates) {
    json.Begin('{');
    json.Add("route", candidate.route);
    json.Add("predicted_ns", candidate.predicted);
    json.Add("note", candidate.note);
    json.End('}');
  }
  json.End(']');
  json.Add("route", explain.route);
  json.Add("index", explain.index);
  json.Add("reason", explain.reason);
  json.Add("predicted_ns", explain.predicted);
  json.Add("measured_ns", explain.measured);
  json.Name("failures").Begin('[');
  for (const std::string& failure : explain.failures) json.Quote(failure);
  json.End(']').End('}');
  return json.Take();
}

}  // namespace cairn
