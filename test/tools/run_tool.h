#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

// The result of a run of the command line tool.
struct ToolResult {
  int exit_status = -1;  // or minus the signal that ended it
  std::string out;
  std::string err;

  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::istringstream stream(out);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
};

// Starts the tool; its output goes to the given files or devices.
inline pid_t StartTool(const std::vector<std::string>& arguments, const std::string& out,
                       const std::string& err, const std::string& in = "/dev/null") {
  std::vector<std::string> copy = {std::string(CAIRN_TOOL)};
  copy.insert(copy.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : copy) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    const auto redirect = [](const std::string& path, int flags, int to) {
      const int fd = open(path.c_str(), flags, 0644);
      if (fd < 0 || dup2(fd, to) < 0) _exit(125);
    };
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(126);
  }
  return child;
}

inline int WaitForTool(pid_t child) {
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

inline ToolResult RunTool(const std::vector<std::string>& arguments,
                          const std::string& input = "") {
  TemporaryDirectory directory;
  WriteFile(directory / "in", input);
  const pid_t child = StartTool(arguments, directory / "out", directory / "err", directory / "in");
  ToolResult result;
  result.exit_status = WaitForTool(child);
  result.out = ReadFile(directory / "out");
  result.err = ReadFile(directory / "err");
  return result;
}

// Runs the tool, which must succeed.
inline ToolResult MustRun(const std::vector<std::string>& arguments,
                          const std::string& input = "") {
  ToolResult result = RunTool(arguments, input);
  BOOST_REQUIRE_MESSAGE(result.exit_status == 0,
                        "exit status " << result.exit_status << ": " << result.err << result.out);
  return result;
}

// One column family's rows, read only by RocksDB.
inline std::map<std::string, std::string> ReadRows(const std::string& directory,
                                                   const std::string& column_family) {
  std::vector<std::string> names;
  RequireOk(rocksdb::DB::ListColumnFamilies({}, directory, &names));
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) descriptors.push_back({name, {}});
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::OpenForReadOnly({}, directory, descriptors, &handles, Into(&db)));
  std::map<std::string, std::string> rows;
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    if (handle->GetName() == column_family) {
      const std::unique_ptr<rocksdb::Iterator> row(db->NewIterator({}, handle));
      for (row->SeekToFirst(); row->Valid(); row->Next()) {
        rows[row->key().ToString()] = row->value().ToString();
      }
      RequireOk(row->status());
    }
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  return rows;
}

// Opens or creates a database with the default column family, passes it to `write`, and closes it.
template <typename Write>
void WriteDb(const std::string& directory, Write write) {
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::Open(options, directory, Into(&db)));
  write(db.get());
}

// The notation of tsv: every byte outside '!' … '~', and the backslash, as \xHH; in a composite key
// also the comma.
inline std::string Escaped(std::string_view bytes, bool comma = false) {
  std::string text;
  for (const char c : bytes) {
    if (c > ' ' && c < '\x7f' && c != '\\' && !(comma && c == ',')) {
      text += c;
    } else {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
      text += hex;
    }
  }
  return text;
}

// Field `i`, from 0, of a delimited value.
inline std::string Field(const std::string& value, int i) {
  size_t begin = 0;
  while (i-- > 0) begin = value.find('|', begin) + 1;
  return value.substr(begin, value.find('|', begin) - begin);
}

}  // namespace cairn
