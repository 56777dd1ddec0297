#include "tools/cli/command.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "cairn/key_order.h"

namespace cairn::tools {
namespace {

// Marks the statuses from UsageError.
constexpr char kUsageMark[] = "cairn/usage";

}  // namespace

absl::Status UsageError(std::string_view message) {
  absl::Status status = absl::InvalidArgumentError(std::string(message));
  status.SetPayload(kUsageMark, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) {
  return status.GetPayload(kUsageMark).has_value();
}

absl::Status AsUsageError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? UsageError(std::string(status.message())) : status;
}

CLI::Option* AddValues(CLI::App* app, const std::string& name, const std::string& type,
                       const std::string& description) {
  // The values are read from Option::results(), unchanged: CLI11's conversions would interpret
  // braces and brackets.
  return app
      ->add_option(
          name, [](const CLI::results_t&) { return true; }, description)
      ->type_name(type)
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

CLI::Validator Count(uint64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        uint64_t number = 0;
        if (absl::SimpleAtoi(text, &number) && number >= least) return std::string();
        return absl::StrFormat("'%s' is not a whole number from %d to %d", text, least,
                               std::numeric_limits<uint64_t>::max());
      },
      "");
}

CLI::Validator Bytes() {
  // CLI11 would convert a negative number to a huge one.
  return CLI::Validator(
      [size = CLI::AsSizeValue(false)](std::string& text) {
        if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text[0]))) {
          return absl::StrFormat("'%s' is not a number of bytes, such as 512M", text);
        }
        return size(text);
      },
      "");
}

void AddComparatorOption(CLI::App* app) {
  const auto declare = [](const CLI::results_t& values) {
    for (const std::string& value : values) {
      const size_t equals = value.rfind('=');
      const std::string order = equals == std::string::npos ? "" : value.substr(equals + 1);
      if (order != "bytes" && order != "reverse") {
        throw CLI::ValidationError(
            "--comparator",
            absl::StrFormat("expected NAME=bytes or NAME=reverse, got '%s'", value));
      }
      const absl::Status declared =
          DeclareComparator(value.substr(0, equals),
                            order == "bytes" ? KeyOrder::kBytewise : KeyOrder::kReverseBytewise);
      if (!declared.ok()) {
        throw CLI::ValidationError("--comparator", std::string(declared.message()));
      }
    }
    return true;
  };
  app->add_option("--comparator", declare,
                  "The order of a comparator that is neither RocksDB's nor MyRocks': bytes, or "
                  "reverse for the reverse order of bytes")
      ->type_name("NAME=ORDER")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->group("Source");
}

void AddSourceOptions(CLI::App* app, SourceOptions* options) {
  CLI::Option* db = app->add_option("--db", options->db, "A RocksDB database, opened read-only")
                        ->type_name("DIR")
                        ->group("Source");
  CLI::Option* checkpoint =
      app->add_option("--checkpoint", options->checkpoint, "A checkpoint of a database")
          ->type_name("DIR")
          ->group("Source");
  CLI::Option* sst = app->add_option("--sst", options->sst,
                                     "SST files; if two have a key, the newer one is used, or "
                                     "the later one in the list")
                         ->type_name("FILE")
                         ->group("Source");
  db->excludes(checkpoint)->excludes(sst);
  checkpoint->excludes(sst);
  AddComparatorOption(app);
}

absl::StatusOr<std::unique_ptr<SnapshotSource>> OpenSource(const SourceOptions& options,
                                                           const std::string& column_family) {
  if (!options.sst.empty()) return SnapshotSource::FromSstFiles(options.sst);
  const std::string& directory = options.db.empty() ? options.checkpoint : options.db;
  return SnapshotSource::FromDirectory(directory, column_family);
}

}  // namespace cairn::tools
