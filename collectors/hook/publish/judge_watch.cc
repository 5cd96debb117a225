#include "collectors/hook/publish/judge_watch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>

namespace tocsin::hook {
namespace {

// Shared, and for a moment: an engine that starts just then tries again.
bool is_locked(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return locked;
}

}  // namespace

bool engine_reads(const std::string& journal, const std::string& prefix) {
  // The engine's own group, and those of rules in Python that stand alone (EvaluateStage).
  const std::string group = prefix + "-rules";
  std::error_code error;
  for (std::filesystem::directory_iterator at(journal, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(group) && name.ends_with(".lock") && is_locked(at->path().string())) {
      return true;
    }
  }
  return false;
}

void JudgeWatch::ask() {
  const std::optional<bool> found = question_.ask();
  if (found) answer_ = *found ? kYes : kNo;
}

void JudgeWatch::look(core::Duration now) {
  if (question_.ask == nullptr) return;
  if (!next_) next_ = now + question_.first;
  if (now < *next_) return;
  next_ = now + kAgain;
  ask();
}

void JudgeWatch::last_look() {
  if (question_.ask != nullptr && question_.quick && answer_ == kUnknown) ask();
}

core::Value JudgeWatch::judged() const {
  const int answer = answer_.load();
  return answer == kUnknown ? core::Value() : core::Value(answer == kYes);
}

}  // namespace tocsin::hook
