// `tocsin agent`: how often a node's agent samples, and what, while it runs (docs/node-agent.md).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace tocsin::app {

struct AgentOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string node;         // show: empty: all
  std::optional<core::Duration> interval, lasts;
  std::vector<std::string> collectors;             // empty: as the agent's file says
  core::Duration wait = std::chrono::seconds(10);  // for the agent's answer
  std::string author;                              // empty: user and host
  bool dry_run = false;
  bool json = false;
};

// 0: shown; 2: usage; 3, 4: as refuse().
int agent_show(const AgentOptions& options);
// 0: the agent has applied it, or nobody waited; 1: it refused; 75: no answer yet; 2, 3, 4.
int agent_set(const AgentOptions& options);
// 0: nothing is asked of it any more; 1: nothing was; 2, 3, 4.
int agent_reset(const AgentOptions& options);

}  // namespace tocsin::app
