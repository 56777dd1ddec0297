#include "engine/source/manifest_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"

namespace cairn {
namespace {

// Whether each change of a file of the database is an event of the local file system.
bool FilesHaveEvents(rocksdb::DB* db) {
  const std::string_view name = db->GetFileSystem()->Name();
  return name == rocksdb::FileSystem::Default()->Name() && !db->GetDBOptions().allow_mmap_writes;
}

}  // namespace

ManifestWatch::ManifestWatch(rocksdb::DB* db, absl::Duration latency,
                             std::function<absl::Status()> check)
    : db_(db), latency_(latency), check_(std::move(check)) {
  const bool has_events = FilesHaveEvents(db);
  end_ = eventfd(0, EFD_CLOEXEC);
  if (end_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  if (has_events) events_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  // A new MANIFEST takes the old one's place when the file CURRENT is replaced.
  if (events_ >= 0 && inotify_add_watch(events_, db->GetName().c_str(), IN_MOVED_TO) < 0) {
    close(std::exchange(events_, -1));
  }
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (...) {
    close(end_);
    if (events_ >= 0) close(events_);
    throw;
  }
}

ManifestWatch::~ManifestWatch() {
  const uint64_t one = 1;
  while (write(end_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  close(end_);
  if (events_ >= 0) close(events_);
}

void ManifestWatch::Run() {
  bool goes_on = true;
  while (goes_on) {
    try {
      const bool has_events = events_ >= 0 && WatchFile();
      const bool done = check_().ok();
      goes_on = Wait(/*for_events=*/false, latency_) &&
                (!has_events || !done || Wait(/*for_events=*/true, absl::InfiniteDuration()));
    } catch (...) {  // without memory, for example: it is called again
      goes_on = Wait(/*for_events=*/false, latency_);
    }
  }
}

bool ManifestWatch::WatchFile() {
  // Events that have arrived are covered by the call that follows.
  alignas(inotify_event) char buffer[sizeof(inotify_event) + NAME_MAX + 1];
  while (read(events_, buffer, sizeof buffer) > 0) {
  }
  std::string name;
  if (!rocksdb::ReadFileToString(db_->GetFileSystem(), db_->GetName() + "/CURRENT", &name).ok() ||
      name.empty()) {
    return false;
  }
  name.pop_back();  // the line end
  if (name == watched_) return true;
  watched_.clear();
  if (watch_ >= 0) inotify_rm_watch(events_, std::exchange(watch_, -1));
  watch_ = inotify_add_watch(events_, (db_->GetName() + "/" + name).c_str(), IN_MODIFY);
  if (watch_ >= 0) watched_ = std::move(name);
  return watch_ >= 0;
}

bool ManifestWatch::Wait(bool for_events, absl::Duration timeout) const {
  pollfd files[] = {{end_, POLLIN, 0}, {events_, POLLIN, 0}};
  const bool forever = timeout == absl::InfiniteDuration();
  const int milliseconds = forever ? -1 : static_cast<int>(absl::ToInt64Milliseconds(timeout));
  while (poll(files, for_events ? 2 : 1, milliseconds) < 0 && errno == EINTR) {
  }
  return (files[0].revents & POLLIN) == 0;
}

}  // namespace cairn
