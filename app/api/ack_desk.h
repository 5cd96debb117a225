// Acknowledgements are written and taken back here, whoever asks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/result.h"
#include "routing/routing.h"

namespace tocsin::app {

/// What somebody takes on.
struct AckWish {
  std::string what;        // as `tocsin ack` takes it; empty: `group`
  std::string job;         // `what` is a run of it
  std::string group = {};  // hash of a group
  std::string by = {};     // empty: the one who asks
  std::string note;
  std::optional<core::WallTime> at = {};  // nullopt: now
  std::optional<core::WallTime> until = {};
  std::string origin = "api";
};

struct TakenOn {
  routing::Acknowledgement ack;
  std::vector<std::string> open;  // keys of the open issues
};

/// Returns once our own view shows it. not_found, failed_precondition: `what` is nothing that fires, or
/// several things.
core::Result<TakenOn> take_on(ApiDesk& desk, const AckWish& wish, const ApiCall& call);
/// not_found: there is no such acknowledgement.
core::Status take_back(ApiDesk& desk, const std::string& id, const ApiCall& call);
/// For records of who changed what.
core::Value ack_fields(const routing::Acknowledgement& ack);

}  // namespace tocsin::app
