// Does the far side of an integration answer now? Asked without sending a message: the action builds the
// requests of a test message, and for each of them only a connection is made, with its TLS.
#pragma once

#include <string>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/contract/receivers.h"
#include "core/time.h"

namespace tocsin::actions {

/// One far side of an integration.
struct ProbedPlace {
  std::string place;    // "https://hooks.example.com", "mail.example.com:587": never a path
  std::string problem;  // why it cannot be used; empty: it answers
  std::string answer;   // "203.0.113.7, certificate until May 1 2027"
  core::Duration took{};
};

struct Probe {
  std::string integration;
  std::string type;
  std::string skipped;  // why nothing was asked; empty: `places` holds what was
  std::vector<ProbedPlace> places;
};

/// Blocks at most a few seconds per place. What writes to topics of the user's is asked by
/// `environment.try_record`, which takes the record back. Datagrams are skipped: nobody answers them.
Probe probe_integration(const ConfiguredIntegration& integration, Environment environment);

}  // namespace tocsin::actions
