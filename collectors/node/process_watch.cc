#include "collectors/node/process_watch.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "collectors/node/process_exit.h"

namespace tocsin::collectors {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<std::int64_t> start_ticks(std::int64_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? std::optional(static_cast<std::int64_t>(stat->start_ticks)) : std::nullopt;
}

void read_status(const EndedProcess& process, Death& death) {
  const auto status = wait_status(process);
  if (!status) return;
  if (WIFSIGNALED(*status)) {
    death.signal = WTERMSIG(*status);
  } else {
    death.exit_code = WEXITSTATUS(*status);
  }
}

bool readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

}  // namespace

std::int64_t own_pid_namespace() {
  struct stat facts {};
  if (stat("/proc/self/ns/pid", &facts) != 0) return 0;
  return static_cast<std::int64_t>(facts.st_ino);
}

core::Lifecycle to_lifecycle(const Death& death) {
  core::Lifecycle out;
  out.event = core::LifecycleEvent::died;
  out.died_worker = death.worker.name;
  out.died_incarnation = death.worker.incarnation;
  out.pid = death.pid;
  out.exit_code = death.exit_code;
  out.signal = death.signal;
  return out;
}

ProcessWatch::ProcessWatch(std::size_t max_descriptors)
    : max_descriptors_(max_descriptors),
      boot_id_(read_text("/proc/sys/kernel/random/boot_id")),
      pid_namespace_(own_pid_namespace()) {}

ProcessWatch::~ProcessWatch() {
  for (auto& [key, entry] : entries_) release(entry);
}

void ProcessWatch::release(Entry& entry) {
  if (entry.descriptor < 0) return;
  close(entry.descriptor);
  entry.descriptor = -1;
  --descriptors_;
}

Watching ProcessWatch::watch(const WatchedWorker& worker, const WatchedProcess& process) {
  if (process.pid < 2 || process.pid_start <= 0) return Watching::hidden;  // names no process
  const Key key{worker.run, worker.name};
  if (const auto known = entries_.find(key); known != entries_.end()) {
    Entry& entry = known->second;
    if (worker.incarnation < entry.worker.incarnation) return Watching::dead;
    if (worker.incarnation == entry.worker.incarnation) {
      return entry.told || entry.dead ? Watching::dead : Watching::alive;
    }
  }
  Entry made{worker, process};
  if (!process.boot_id.empty() && !boot_id_.empty() && process.boot_id != boot_id_) {
    made.dead = true;
  } else {
    if (process.pid_namespace != 0 && process.pid_namespace != pid_namespace_) {
      return Watching::hidden;
    }
    // Pinned first and then compared: what the descriptor stands for cannot change any more.
    if (descriptors_ < max_descriptors_) {
      made.descriptor =
          static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0U));
      if (made.descriptor >= 0) ++descriptors_;
    }
    if (start_ticks(process.pid) != process.pid_start) {
      release(made);
      // The number may mean another process where the worker runs.
      if (process.pid_namespace == 0) return Watching::hidden;
      made.dead = true;
    }
  }
  if (const auto known = entries_.find(key); known != entries_.end()) release(known->second);
  const bool dead = made.dead;
  entries_.insert_or_assign(key, std::move(made));
  return dead ? Watching::dead : Watching::alive;
}

bool ProcessWatch::watches(const core::RunUid& run) const {
  const auto at = entries_.lower_bound({run, ""});
  return at != entries_.end() && at->first.first == run;
}

void ProcessWatch::forget(const core::RunUid& run) {
  for (auto at = entries_.lower_bound({run, ""}); at != entries_.end() && at->first.first == run;) {
    release(at->second);
    at = entries_.erase(at);
  }
}

std::vector<Death> ProcessWatch::poll() {
  std::vector<Death> out;
  for (auto& [key, entry] : entries_) {
    if (entry.told) continue;
    const bool ended = entry.dead || (entry.descriptor >= 0 ? readable(entry.descriptor)
                                                            : start_ticks(entry.process.pid) !=
                                                                  entry.process.pid_start);
    if (!ended) continue;
    Death death{entry.worker, entry.process.pid, std::nullopt, std::nullopt};
    read_status({entry.descriptor, entry.process.pid, entry.process.pid_start}, death);
    entry.told = true;
    release(entry);
    out.push_back(std::move(death));
  }
  return out;
}

}  // namespace tocsin::collectors
