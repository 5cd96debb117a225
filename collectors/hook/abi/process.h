// The one client of a process: its state, what fork does to it, and how it is made from options.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "collectors/hook/client/client.h"
#include "collectors/hook/tocsin_client.h"
#include "core/mutex.h"
#include "core/system_clock.h"

/// Opaque to callers. `generation` tells the process that opened it from its children; `pid` from
/// those that were made without fork(), whose handlers did not run.
struct tocsin_client {
  std::shared_ptr<tocsin::hook::Client> client;
  std::uint64_t generation = 0;
  pid_t pid = 0;
};

namespace tocsin::hook {

/// State of the process. Never destroyed: threads may outlive main().
struct Process {
  core::Mutex mutex;
  core::SystemClock clock;
  tocsin_client* open GUARDED_BY(mutex) = nullptr;
  std::uint64_t incarnation GUARDED_BY(mutex) = 0;  // of the newest client
  std::string last_counters GUARDED_BY(mutex);      // of the client that was closed last
  std::string loss GUARDED_BY(mutex);  // what it could not deliver, in words; empty: nothing
  // Of its rules, as tocsin_issues() gives them; empty: it had none.
  std::string last_issues GUARDED_BY(mutex);
  std::atomic<std::uint64_t> generation{1};
};
Process& process();

/// In the child: other threads do not exist, and their locks may be held forever. What the parent
/// opened is leaked here, never destroyed.
void after_fork_in_child();

/// Empty for null.
std::string text(const char* given);

/// Starts nothing. Errors are those of settings, identity and capture.
core::Result<std::shared_ptr<Client>> make_client(const tocsin_options& options, Process& self)
    REQUIRES(self.mutex);

}  // namespace tocsin::hook
