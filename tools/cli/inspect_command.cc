// cairn inspect: an index's properties and the contents of its files.
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "cairn/ordered_index.h"
#include "cairn/secondary_index.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/print/output.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

void Line(const char* name, const std::string& value, Output* output) {
  output->Write(absl::StrFormat("%-17s %s\n", name, value));
}

std::string Size(uint64_t bytes) {
  return bytes < 1024 ? WithUnit(bytes)
                      : absl::StrFormat("%s (%s B)", WithUnit(bytes), WithCommas(bytes));
}

// Prints the changes since the index was built or last compacted.
void PrintDelta(const IndexStats::Delta& delta, bool should_compact, Output* output) {
  if (delta.added_entries == 0 && delta.removed_entries == 0) {
    return Line("changes", "none", output);
  }
  Line("changes",
       absl::StrFormat("%s entries added, %s removed; %s new rows", WithCommas(delta.added_entries),
                       WithCommas(delta.removed_entries), WithCommas(delta.new_rows)),
       output);
  Line("", absl::StrFormat("%d segments, %s in memory", delta.segments, WithUnit(delta.bytes)),
       output);
  Line("compaction", should_compact ? "pays" : "does not pay yet", output);
}

void PrintShards(const std::vector<IndexStats::Shard>& shards, Output* output) {
  Line("shards", std::to_string(shards.size()), output);
  for (const IndexStats::Shard& shard : shards) {
    output->Write(absl::StrFormat("  %-28s %s entries of %s rows at %d, %s\n", shard.directory,
                                  WithCommas(shard.entries), WithCommas(shard.rows), shard.sequence,
                                  shard.bounds));
  }
}

absl::StatusOr<int> RunInspect(const std::string& directory) {
  // Opening checks headers, sizes and every section's checksum.
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> index, SecondaryIndex::Open(directory));
  ASSIGN_OR_RETURN(IndexStats stats, index->Stats());
  uint64_t bytes = 0;
  for (const IndexStats::Section& section : stats.sections) bytes += section.bytes;

  Output output;
  Line("index", directory, &output);
  Line("spec", index->spec().ToString(), &output);
  Line("column family", index->spec().column_family, &output);
  Line("physical keys", std::string(PhysicalTypeName(index->codec().kind())), &output);
  Line("rows", WithCommas(stats.rows), &output);
  Line("entries", WithCommas(stats.entries), &output);
  Line("distinct keys", WithCommas(stats.distinct_keys), &output);
  Line(index->in_shards() ? "generation" : "version", std::to_string(stats.version), &output);
  Line("sequence number", std::to_string(stats.sequence), &output);
  PrintDelta(stats.delta, index->ShouldCompact(), &output);
  Line("database id", stats.database_id.empty() ? "(none)" : stats.database_id, &output);
  if (index->in_shards()) PrintShards(stats.shards, &output);
  for (const IndexStats::OrderedIndex& ordered : stats.ordered_indexes) {
    Line("searched with",
         absl::StrFormat(
             "%s, %s in memory, %s of it in huge pages%s", ordered.description,
             WithUnit(ordered.bytes), WithUnit(ordered.huge_page_bytes),
             ordered.mapped_bytes == 0
                 ? ""
                 : absl::StrFormat(", %s of stored leaves mapped", WithUnit(ordered.mapped_bytes))),
         &output);
  }
  if (!stats.fallback.empty()) Line("not on a GPU", stats.fallback, &output);
  Line("sections", Size(bytes), &output);
  for (const IndexStats::Section& section : stats.sections) {
    output.Write(
        absl::StrFormat("  %-20s %-16s %s\n", section.file, section.name, Size(section.bytes)));
  }
  Line("checksums", "good", &output);
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddInspectCommand(CLI::App* app, Action* action) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand(
      "inspect",
      "Prints an index's properties and the contents of its files, and verifies checksums");
  command->add_option("INDEX", *directory, "The index's directory")->required();
  command->callback(
      [directory, action] { *action = [directory] { return RunInspect(*directory); }; });
}

}  // namespace cairn::tools
