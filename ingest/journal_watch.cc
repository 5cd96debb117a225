#include "ingest/journal_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace tocsin::ingest {
namespace {

void note(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

JournalWatch::JournalWatch(std::string directory)
    : directory_(std::move(directory)), inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!inotify_.open()) return;
  root_ = ::inotify_add_watch(inotify_.get(), directory_.c_str(),
                              IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
}

bool JournalWatch::add(const std::string& writer) {
  if (!inotify_.open() || root_ < 0) return false;
  const std::string path = directory_ + "/" + writer;
  const int watch = ::inotify_add_watch(
      inotify_.get(), path.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR);
  if (watch < 0) return false;
  writers_[watch] = writer;
  return true;
}

void JournalWatch::remove(const std::string& writer) {
  for (auto it = writers_.begin(); it != writers_.end(); ++it) {
    if (it->second != writer) continue;
    ::inotify_rm_watch(inotify_.get(), it->first);
    writers_.erase(it);
    return;
  }
}

const JournalWatch::Changes& JournalWatch::wait(std::chrono::milliseconds timeout) {
  changes_.writers = changes_.lost = false;
  changes_.appended.clear();
  changes_.segments.clear();
  struct pollfd ready {};
  ready.fd = inotify_.get();  // -1 is ignored by poll(2), which then only waits
  ready.events = POLLIN;
  if (timeout.count() > 0) ::poll(&ready, 1, static_cast<int>(timeout.count()));
  if (inotify_.open()) read_events();
  return changes_;
}

void JournalWatch::read_events() {
  alignas(struct inotify_event) std::array<char, 16 * 1024> buffer;
  for (;;) {
    const auto got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      struct inotify_event event {};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) changes_.lost = true;
      if (event.wd == root_) {
        changes_.writers = true;
        continue;
      }
      const auto writer = writers_.find(event.wd);
      if (writer == writers_.end()) continue;
      if ((event.mask & IN_IGNORED) != 0) {
        writers_.erase(writer);
        continue;
      }
      if ((event.mask & IN_MODIFY) != 0) note(changes_.appended, writer->second);
      if ((event.mask & (IN_CREATE | IN_MOVED_TO | IN_DELETE)) != 0) {
        note(changes_.segments, writer->second);
      }
    }
  }
}

}  // namespace tocsin::ingest
