// Sees worker processes of this node end. A trainer that is killed says no last word, and the
// node's own samples are no sign of its life: somebody has to hold on to the process itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/lifecycle.h"

namespace tocsin::collectors {

/// Which worker: a later incarnation of the same (run, name) takes the place of the former one.
struct WatchedWorker {
  core::RunUid run;
  std::string name;
  std::uint64_t incarnation = 0;
};

/// Which process, as the worker's `start` record gives it.
struct WatchedProcess {
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;      // start ticks since boot: tells a reused pid
  std::string boot_id;             // empty: not known
  std::int64_t pid_namespace = 0;  // inode; 0: not known
};

struct Death {
  WatchedWorker worker;
  std::int64_t pid = 0;
  /// How it ended, where that can be known (process_exit.h); else neither. A signal: of children.
  std::optional<int> exit_code;
  std::optional<int> signal;
};

/// What can be said of a process when it is first seen.
enum class Watching {
  alive,   // its end will be told by poll()
  dead,    // it has ended (or the machine was booted since); the next poll() tells it
  hidden,  // in another PID namespace, or maybe so: nothing can be said, nothing will be told
};

/// The lifecycle that a node agent publishes for a death (docs/wire.md).
core::Lifecycle to_lifecycle(const Death& death);

/// Lives on one thread. Holds one pidfd per worker, for at most `max_descriptors` workers; further
/// ones are looked up in /proc at every poll, by pid and start time, which is as certain and only
/// costs a read each. Signals nobody and takes no child's exit status away from who waits for it.
class ProcessWatch {
 public:
  static constexpr std::size_t kMaxDescriptors = 256;
  explicit ProcessWatch(std::size_t max_descriptors = kMaxDescriptors);
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch();

  /// Idempotent. An incarnation older than the one that is watched, or one whose death was told, is
  /// ignored (`dead`).
  Watching watch(const WatchedWorker& worker, const WatchedProcess& process);
  /// Whether a worker of this run was seen here, living or dead.
  [[nodiscard]] bool watches(const core::RunUid& run) const;
  /// The run has ended: nothing more is told of its workers.
  void forget(const core::RunUid& run);
  /// Who has died since the last call, each once. Never waits.
  std::vector<Death> poll();

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t descriptors() const noexcept { return descriptors_; }

 private:
  struct Entry {
    WatchedWorker worker;
    WatchedProcess process;
    int descriptor = -1;
    bool told = false;
    bool dead = false;  // found so by watch()
  };
  using Key = std::pair<core::RunUid, std::string>;
  void release(Entry& entry);

  const std::size_t max_descriptors_;
  const std::string boot_id_;
  const std::int64_t pid_namespace_;
  std::size_t descriptors_ = 0;
  std::map<Key, Entry> entries_;
};

/// Inode of the PID namespace of this process; 0 when it cannot be read.
std::int64_t own_pid_namespace();

}  // namespace tocsin::collectors
