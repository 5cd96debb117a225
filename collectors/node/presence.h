// How a node agent learns which processes are workers: each hook tells the agents of its machine
// who it is, by a datagram that costs it nothing when nobody listens. The kernel vouches for the
// pid.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collectors/node/process_watch.h"
#include "core/result.h"

namespace tocsin::collectors {

/// Agents of one machine (network namespace) that may listen at the same time: of several clusters,
/// or several users.
inline constexpr int kAgentsPerMachine = 8;

/// The hook's side. Never blocks, never fails loudly: whoever is not there hears nothing.
class PresenceSender {
 public:
  PresenceSender();
  PresenceSender(const PresenceSender&) = delete;
  PresenceSender& operator=(const PresenceSender&) = delete;
  ~PresenceSender();
  /// Says it again to all agents; call it at start and with every heartbeat, so that an agent that
  /// comes later hears it too.
  void announce(const WatchedWorker& worker, const WatchedProcess& process) const noexcept;

 private:
  int descriptor_ = -1;
};

/// The agent's side. Lives on one thread.
class PresenceListener {
 public:
  /// resource_exhausted: kAgentsPerMachine others listen.
  static core::Result<PresenceListener> open();
  PresenceListener(PresenceListener&& other) noexcept;
  PresenceListener& operator=(PresenceListener&& other) noexcept;
  ~PresenceListener();

  using Heard = std::pair<WatchedWorker, WatchedProcess>;
  /// What was said since the last call, at most 4096; never waits. Who claims another's pid, or
  /// what cannot be read, is passed over and counted.
  std::vector<Heard> poll();
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  explicit PresenceListener(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
  std::uint64_t refused_ = 0;
};

}  // namespace tocsin::collectors
