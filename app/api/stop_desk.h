// A person's word on a stop, whoever asks.
#pragma once

#include <string>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/result.h"

namespace tocsin::app {

/// What became of a word, in words.
struct StopDecided {
  std::string id;
  std::string state;   // approved, cancelled
  std::string detail;  // one sentence
};

/// The leader writes the command: it knows the launch that runs now, and counts. not_found,
/// failed_precondition: no such stop, several, or it does not wait.
core::Result<StopDecided> approve_stop(ApiDesk& desk, const std::string& id,
                                       const std::string& comment, const ApiCall& call);
/// Rejects one that waits, and no other.
core::Result<StopDecided> reject_stop(ApiDesk& desk, const std::string& id,
                                      const std::string& comment, const ApiCall& call);
/// Rejects one that waits; withdraws one that was asked of its run.
core::Result<StopDecided> cancel_stop(ApiDesk& desk, const std::string& id,
                                      const std::string& comment, const ApiCall& call);

}  // namespace tocsin::app
