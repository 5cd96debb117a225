// Silences are begun, changed and ended here, whichever API is asked.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/result.h"
#include "routing/routing.h"

namespace tocsin::app {

using KnownSilences = std::map<std::string, routing::Silence>;

core::Result<KnownSilences> known_silences(ApiDesk& desk);
core::Error no_silence(std::string_view id);

/// What somebody asks of a silence.
struct SilenceWish {
  routing::Silence silence;   // names who asks, or nobody
  std::string id;             // of the silence that it changes; empty: a new one
  std::uint64_t version = 0;  // that the change follows from; 0: of any
  bool force = false;         // also what check_asked() refuses unless somebody insists
  std::set<std::string> named =
      {};  // fields that were asked for; a change leaves the others as they are
};

/// The parameter `force`, and its value in a call.
ApiParameter force_parameter();
[[nodiscard]] bool is_forced(const ApiCall& call);

/// Begins the silence, or changes another one. Returns once our own view shows it. The one who asks is
/// written where it names nobody. The value is the silence as it is kept. failed_precondition: somebody
/// else changed it.
core::Result<routing::Silence> set_silence(ApiDesk& desk, SilenceWish wish, const ApiCall& call);
/// The same, without writing it.
core::Result<routing::Silence> preview_silence(ApiDesk& desk, SilenceWish wish,
                                               const ApiCall& call);
/// Ok also for one that has ended. not_found: there is none.
core::Status end_silence(ApiDesk& desk, const std::string& id, const ApiCall& call);

}  // namespace tocsin::app
