// Which of how many processes this one is, as whatever has started it says in the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collectors/hook/identity/variables.h"

namespace tocsin::hook {

struct Ranks {
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world;  // of those that take steps: no parameter servers
  std::optional<bool> one_host;       // all of them run here; nullopt: nobody says
  std::string role;                   // "ps", "server", "scheduler", "evaluator"; empty: it trains
  std::int64_t index = 0;             // among those of its role
  /// What the processes of a launch share that have no parent in common; empty: their parent.
  std::string group;
};

/// The first launcher that says anything decides, of each; docs/launchers.md has the table.
Ranks ranks_of(const Variables& env);

}  // namespace tocsin::hook
