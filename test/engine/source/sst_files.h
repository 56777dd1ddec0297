#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/source/sst_levels.h"
#include "rocksdb/sst_file_writer.h"
#include "test/engine/source/source_test.h"
#include "test/require_ok.h"

namespace cairn {

namespace fs = std::filesystem;

using Files = std::vector<std::string>;

// The calls of SstFileWriter for one key.
struct Entry {
  enum Kind { kPut, kDelete, kMerge } kind = kPut;
  std::string value;
};

inline void WriteSst(const std::string& path, const std::map<std::string, Entry>& entries,
                     const std::vector<std::pair<std::string, std::string>>& range_deletions = {},
                     const rocksdb::Options& options = rocksdb::Options()) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  CheckOk(writer.Open(path));
  for (const auto& [begin, end] : range_deletions) CheckOk(writer.DeleteRange(begin, end));
  for (const auto& [key, entry] : entries) {
    if (entry.kind == Entry::kPut) CheckOk(writer.Put(key, entry.value));
    if (entry.kind == Entry::kDelete) CheckOk(writer.Delete(key));
    if (entry.kind == Entry::kMerge) CheckOk(writer.Merge(key, entry.value));
  }
  CheckOk(writer.Finish());
}

// Reads the files in every way. Checks that neither they nor their directory change, and that
// scratch space is removed.
inline void CheckFiles(const std::string& directory, const Files& files, const Rows& expected,
                       std::mt19937_64* random, const rocksdb::Options* options = nullptr) {
  const auto before = DirectoryState(directory);
  const TemporaryDirectory scratch;
  {
    const auto source = OrDie(SnapshotSource::FromSstFiles(files, scratch.path(), options));
    CheckSource(*source, expected, random);
    BOOST_TEST(source->sequence() == 0u);
    BOOST_TEST(source->database_id().empty());
    uint64_t bytes = 0;
    for (const std::string& file : files) bytes += fs::file_size(file);
    BOOST_TEST(source->approximate_bytes() == bytes);
    BOOST_TEST(!fs::is_empty(scratch.path()));
    // A few kilobytes, whatever the size of the files.
    uint64_t used = 0;
    for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) {
      if (!entry.is_symlink() && entry.is_regular_file()) used += entry.file_size();
    }
    BOOST_TEST(used < 4096 + 400 * files.size() + 3 * 70000);
  }
  BOOST_TEST(fs::is_empty(scratch.path()));
  BOOST_TEST((DirectoryState(directory) == before));
}

// Checks that the files are rejected, and that no scratch files remain.
inline absl::Status Refused(const Files& files, const rocksdb::Options* options = nullptr) {
  const TemporaryDirectory scratch;
  const absl::Status status = SnapshotSource::FromSstFiles(files, scratch.path(), options).status();
  BOOST_TEST(!status.ok());
  BOOST_TEST(fs::is_empty(scratch.path()));
  return status;
}

// The live SST files of a column family, in no particular order. Waits for background work, which
// removes files after a flush.
inline Files LiveFiles(rocksdb::DB* db, std::mt19937_64* random) {
  CheckOk(db->PauseBackgroundWork());
  CheckOk(db->ContinueBackgroundWork());
  std::vector<rocksdb::LiveFileMetaData> metadata;
  db->GetLiveFilesMetaData(&metadata);
  Files files;
  for (const auto& file : metadata) files.push_back(file.directory + "/" + file.relative_filename);
  std::shuffle(files.begin(), files.end(), *random);
  return files;
}

inline rocksdb::Options SmallFiles() {
  rocksdb::Options options;
  options.write_buffer_size = 64 << 10;
  options.target_file_size_base = 16 << 10;
  options.max_bytes_for_level_base = 64 << 10;
  options.max_bytes_for_level_multiplier = 3;
  options.compression = rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = false;
  return options;
}

// Flushes, and keeps the files unchanged until ContinueBackgroundWork.
inline void Freeze(rocksdb::DB* db) {
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  CheckOk(db->PauseBackgroundWork());
}

}  // namespace cairn
