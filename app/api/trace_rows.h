// Traces of PyTorch's profiler that ranks of a run have sent, as their answers tell.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/command.h"
#include "core/time.h"
#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {

/// One trace of one rank.
struct SentTrace {
  std::string id;  // "1-0-131": attempt, rank, step
  std::string command_id;
  std::string by;      // who asked; empty: nobody knows any more
  std::string worker;  // "worker_0"
  std::string node;
  std::uint32_t attempt = 1;
  std::uint32_t rank = 0;
  std::int64_t step = 0;  // at which it was sent
  std::optional<std::int64_t> first_step;
  std::optional<std::int64_t> steps;
  std::uint64_t bytes = 0;  // compressed, as it is read
  core::WallTime at{};
};

/// What the answer of a rank says of its trace; nullopt: it speaks of none that was sent.
std::optional<SentTrace> trace_of(const core::Ack& ack);

/// Of all that the store has of a run, newest first; of one command by rank.
std::vector<SentTrace> traces_of(const std::vector<insights::KeptRecord>& events);

core::Value trace_row(const SentTrace& trace);

}  // namespace tocsin::app
