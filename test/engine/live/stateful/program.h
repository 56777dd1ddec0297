#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "test/engine/live/stateful/switches.h"

// A program of the stateful test: a world, and commands that run in it. It consists of numbers,
// which can be printed as text and parsed again, and which the shrinker removes and lowers.

namespace cairn::stateful {

// One choice of the world. Value 0 is the simplest one.
enum Field : uint8_t {
  kWrapper,
  kArchive,
  kWritePath,
  kManualFlush,
  kParanoid,
  kStyle,
  kFilter,
  kBuffer,
  kFollow,
  kStore,
  kMerge,
  kOnStale,
  kOperator,
  kExtractor,
  kOrder,  // the last one, because a reopening does not change it
  kFields
};
enum Wrapper : uint32_t { kOpen, kAttach, kAttachTransactions, kAttachOptimistic };
enum Archive : uint32_t { kKeepsLog, kNoArchive, kShortArchive };
enum WritePath : uint32_t { kPlainPath, kPipelined, kTwoQueues, kUnordered };
enum Style : uint32_t { kLevel, kUniversal, kFifo };
enum Orders : uint32_t { kBytes, kMixed, kReverse };
enum Filter : uint32_t { kNoFilter, kRemovingFilter, kChangingFilter };

struct FieldInfo {
  const char* name;
  std::vector<const char*> values;
};
inline const std::array<FieldInfo, kFields>& FieldInfos() {
  static const std::array<FieldInfo, kFields> infos = {{
      {"wrapper", {"open", "attach", "attach_transactions", "attach_optimistic"}},
      {"archive", {"kept", "none", "short"}},
      {"write_path", {"plain", "pipelined", "two_queues", "unordered"}},
      {"manual_wal_flush", {"no", "yes"}},
      {"paranoid_checks", {"yes", "no"}},
      {"style", {"level", "universal", "fifo"}},
      {"filter", {"none", "removes", "changes"}},
      {"write_buffer", {"64MB", "64KB", "tiny_logs"}},
      {"follow", {"10ms", "1ms", "never"}},
      {"store", {"never", "10ms"}},
      {"merge", {"1s", "5ms"}},
      {"on_stale", {"rebuild", "report"}},
      {"merge_operator", {"comma", "bar"}},
      {"extractor", {"1", "2"}},
      {"order", {"bytes", "mixed", "reverse"}},
  }};
  return infos;
}

using World = std::array<uint32_t, kFields>;

enum Op : uint8_t {
  // Rows: each of these is a separate write, or part of a group that an earlier kWrite began.
  kPut,
  kDelete,
  kDeleteRange,
  kMergeOperand,
  kPutEntity,
  kSingle,  // a row that is written once, and then deleted by SingleDelete
  kWrite,
  kFinishPrepared,
  kHoldSnapshot,
  kReleaseSnapshot,
  kFlush,
  kCompact,
  kFlushLog,
  kStoreIndexes,
  kMergeIndex,
  kCreateIndex,
  kDropIndex,
  kRebuildIndex,
  kCheck,
  kIngest,
  kFailingIngest,
  kDeleteFile,
  kMakeFamily,
  kRemakeFamily,
  kReopen,
  kCrash,
  kFilterLog,
  kPlainSession,
  kCopy,
  kRestore,
  kLoseFile,
  kRepair,
  kDisk,
  kIdle,
  kRaceRows,
  kBuildBesideWrites,
  kManyFiles,
  kLoseLog,
  kChurn,
  kOps
};
enum How : uint32_t {  // for kWrite
  kPlainly,
  kSynced,
  kUnlogged,
  kFailingSync,
  kFailingAppend,
  kPastObject,
  kCommitted,
  kPreparedAndCommitted,
  kRolledBack,
  kLeftPrepared,
  kHows
};
// for kDisk
enum DiskState : uint32_t { kGoodDisk, kSlowForIndexes, kSlowForLog, kFullForIndexes };

struct ArgInfo {
  const char* name;
  uint32_t bound;
};
struct OpInfo {
  const char* name;
  uint32_t weight;
  std::vector<ArgInfo> args;
};
inline constexpr uint32_t kRowKeys = 16, kRowValues = 24;

inline const std::array<OpInfo, kOps>& OpInfos() {
  static const ArgInfo family = {"family", 3}, key = {"key", kRowKeys},
                       value = {"value", kRowValues};
  static const std::array<OpInfo, kOps> infos = {{
      {"put", 130, {family, key, value}},
      {"delete", 25, {family, key}},
      {"delete_range", 25, {family, key, {"end", kRowKeys}}},
      {"merge", 25, {family, key, value}},
      {"entity", 10, {family, key, value}},
      {"single", 15, {family, {"delete", 2}, value}},
      {"write", 60, {{"how", kHows}, {"rows", 5}}},
      {"finish_prepared", 5, {{"commit", 2}}},
      {"hold_snapshot", 10, {}},
      {"release_snapshot", 4, {}},
      {"flush", 12, {family}},
      {"compact", 8, {family}},
      {"flush_log", 3, {{"sync", 2}}},
      {"store", 12, {}},
      {"merge_index", 8, {{"index", 8}}},
      {"create_index", 8, {{"index", 8}}},
      {"drop_index", 5, {{"index", 8}}},
      {"rebuild_index", 5, {{"index", 8}}},
      {"check", 25, {{"salt", 1000}}},
      {"ingest", 10, {family, key, value, {"how", 3}}},
      {"failing_ingest", 4, {family}},
      {"delete_file", 4, {{"file", 8}}},
      {"make_family", 6, {{"how", 3}}},
      {"remake_family", 4, {{"family", 3}, {"how", 2}}},
      {"reopen", 16, {{"field", kOrder + 3}, {"value", 4}}},
      {"crash", 16, {{"operations", 30}, {"power", 3}, {"salt", 1000}, {"after_empty_range", 2}}},
      {"filter_log", 4, {{"how", 3}}},
      {"plain_session", 7, {{"how", 4}, key, value}},
      {"copy", 5, {{"slot", 2}}},
      {"restore", 5, {{"slot", 2}, {"what", 3}}},
      {"lose_file", 6, {{"file", 8}, {"how", 6}}},
      {"repair", 4, {}},
      {"disk", 6, {{"how", 4}}},
      {"idle", 1, {}},
      {"race_rows", 2, {family, key}},
      {"build_beside_writes", 5, {{"index", 8}, key}},
      {"many_files", 1, {{"hundreds", 3}}},
      {"lose_log", 6, {{"file", 4}, {"how", 3}}},
      {"churn", 2, {family, {"by_range", 2}}},
  }};
  return infos;
}

struct Command {
  Op op = kCheck;
  std::array<uint32_t, 4> args = {};

  friend bool operator==(const Command&, const Command&) = default;
};

struct Program {
  World world = {};
  uint32_t indexes = 0xff;  // created first; a bit for each
  std::vector<Command> commands;
};

inline std::string ToText(const Command& command) {
  const OpInfo& info = OpInfos()[command.op];
  std::string text = info.name;
  for (size_t i = 0; i < info.args.size(); ++i) {
    absl::StrAppend(&text, " ", info.args[i].name, "=", command.args[i]);
  }
  return text;
}

// Default values of the world are omitted.
inline std::string ToText(const Program& program) {
  std::string text = absl::StrCat("world indexes=", program.indexes);
  for (size_t i = 0; i < kFields; ++i) {
    const FieldInfo& info = FieldInfos()[i];
    if (program.world[i] != 0) {
      absl::StrAppend(&text, " ", info.name, "=", info.values[program.world[i]]);
    }
  }
  text += "\n";
  for (const Command& command : program.commands) absl::StrAppend(&text, ToText(command), "\n");
  return text;
}

// Parses the output of ToText; nothing for any other text.
inline std::optional<Program> ProgramOf(const std::string& text) {
  Program program;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') continue;
    Command command;
    size_t op = 0;
    while (op < kOps && words[0] != OpInfos()[op].name) ++op;
    if (op == kOps && words[0] != "world") return std::nullopt;
    command.op = static_cast<Op>(op);
    for (size_t w = 1; w < words.size(); ++w) {
      const size_t equals = words[w].find('=');
      if (equals == std::string::npos) return std::nullopt;
      const std::string name = words[w].substr(0, equals), value = words[w].substr(equals + 1);
      uint32_t number = 0;
      const bool is_number = absl::SimpleAtoi(value, &number);
      if (words[0] == "world") {
        if (name == "indexes" && is_number) program.indexes = number;
        for (size_t i = 0; i < kFields; ++i) {
          const FieldInfo& info = FieldInfos()[i];
          for (size_t v = 0; name == info.name && v < info.values.size(); ++v) {
            if (value == info.values[v]) program.world[i] = static_cast<uint32_t>(v);
          }
        }
      } else if (w - 1 < command.args.size() && is_number) {
        command.args[w - 1] = number;
      }
    }
    if (words[0] != "world") program.commands.push_back(command);
  }
  return program;
}

// RocksDB 7.8 deadlocks with unordered_write and manual_wal_flush. Its transactions need an order,
// and may end the process with two queues after it has lost numbers.
inline void MakePossible(World* world) {
  uint32_t& path = (*world)[kWritePath];
  if (path == kUnordered) (*world)[kManualFlush] = 0;
  const bool in_order = path == kPlainPath || path == kPipelined;
  if ((*world)[kWrapper] == kAttachTransactions && !in_order) path = kPlainPath;
}

// Whether indexes of a database with these options are rejected (IndexedDB lists them).
inline bool RefusesIndexes(const World& world) {
  const uint32_t path = world[kWritePath];
  return world[kParanoid] != 0 || path == kUnordered ||
         (world[kWrapper] != kOpen && (path == kPipelined || path == kTwoQueues));
}
// Whether compactions drop or change rows.
inline bool DropsRows(const World& world) {
  return world[kFilter] != kNoFilter || world[kStyle] == kFifo;
}

// Whether the switches (switches.h) allow a world, and a command in it.
inline bool Allows(const World& world) {
  if (world[kWritePath] == kUnordered && !IsOn("unordered")) return false;
  if (world[kFilter] == kRemovingFilter && !IsOn("removing_filters")) return false;
  if (world[kFilter] == kChangingFilter && !IsOn("changing_filters")) return false;
  if (world[kStyle] == kFifo && !IsOn("fifo")) return false;
  if (world[kOperator] != 0 && !IsOn("operator_names")) return false;
  if (world[kExtractor] != 0 && !IsOn("extractor_versions")) return false;
  return true;
}
inline bool Allows(const World& world, const Command& command) {
  const auto& args = command.args;
  switch (command.op) {
    case kDeleteRange:
      if (args[1] == args[2]) return IsOn("empty_ranges");
      return args[1] < args[2] || IsOn("inverted_ranges");
    case kWrite:
      if (args[0] == kUnlogged) return IsOn("unlogged_writes");
      if (args[0] == kFailingSync || args[0] == kFailingAppend) {
        if (world[kParanoid] != 0) return IsOn("failing_writes_not_paranoid");
        return world[kWritePath] == kPipelined ? IsOn("failing_writes_pipelined")
                                               : IsOn("failing_writes");
      }
      return true;
    case kReopen:
      if (args[0] == kOperator) return IsOn("operator_names");
      if (args[0] == kExtractor) return IsOn("extractor_versions");
      if (args[0] == kWritePath && args[1] == kUnordered) return IsOn("unordered");
      if (args[0] == kFilter) return IsOn("removing_filters") || IsOn("changing_filters");
      if (args[0] == kStyle) return IsOn("fifo");
      return true;
    case kCrash:
      return args[3] == 0 || IsOn("empty_ranges");
    case kIngest:
      return args[3] != 1 ||
             (world[kWrapper] == kOpen && (args[0] != 2 || IsOn("ingest_new_family")));
    case kFailingIngest:
      return IsOn("failing_ingest");
    case kDeleteFile:
      return IsOn("delete_file");
    case kMakeFamily:
      return args[0] != 2 || IsOn("import_family");
    case kRemakeFamily:
      return args[1] == 0 || IsOn("remake_past_object");
    case kFilterLog:
      return IsOn("filter_log");
    case kLoseFile:
      if (args[1] == 1) return IsOn("plain_best_efforts");
      return args[1] == 0 ? IsOn("best_efforts") : IsOn("removed_files");
    case kLoseLog:
      return IsOn("lost_logs");
    case kRepair:
      return IsOn("repair");
    case kDisk:
      return args[0] != kFullForIndexes || IsOn("full_disk");
    case kRaceRows:
      return IsOn("race_rows");
    default:
      return true;
  }
}

inline bool Allows(const Program& program) {
  for (const Command& command : program.commands) {
    if (!Allows(program.world, command)) return false;
  }
  return Allows(program.world);
}

// The program for a seed.
inline Program Generate(uint64_t seed) {
  std::mt19937_64 random(seed);
  Program program;
  do {
    for (size_t i = 0; i < kFields; ++i) {
      const uint64_t values = FieldInfos()[i].values.size();
      program.world[i] = random() % 2 == 0 ? 0 : static_cast<uint32_t>(random() % values);
    }
    MakePossible(&program.world);
  } while (!Allows(program.world));
  program.indexes = static_cast<uint32_t>(random() | random()) & 0xff;
  // Each program prefers some commands, and never uses some others, so that defects that need
  // several rare commands are found sooner.
  std::array<uint64_t, kOps> weights = {};
  uint64_t sum = 0;
  for (size_t op = 0; op < kOps; ++op) {
    const uint64_t dice = random() % 4;
    weights[op] = OpInfos()[op].weight * (dice == 0 && op > kSingle ? 0 : dice == 1 ? 6 : 1);
    sum += weights[op];
  }
  const uint32_t how = static_cast<uint32_t>(random() % kHows);
  const uint32_t field = static_cast<uint32_t>(random() % kOrder);
  const size_t count = 4 + random() % 36;
  while (program.commands.size() < count) {
    Command command;
    uint64_t dice = random() % sum;
    size_t op = 0;
    while (dice >= weights[op]) dice -= weights[op++];
    command.op = static_cast<Op>(op);
    const std::vector<ArgInfo>& args = OpInfos()[op].args;
    for (size_t i = 0; i < args.size(); ++i) {
      command.args[i] = static_cast<uint32_t>(random() % args[i].bound);
    }
    if (command.op == kDeleteRange && random() % 4 == 0) command.args[2] = command.args[1];
    if (command.op == kWrite && random() % 2 == 0) command.args[0] = how;
    if (command.op == kReopen && random() % 2 == 0) command.args[0] = field;
    if (Allows(program.world, command)) program.commands.push_back(command);
  }
  return program;
}

}  // namespace cairn::stateful
