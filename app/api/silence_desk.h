// Silences are begun, changed and ended here, whichever API is asked.
#pragma once

#include <map>
#include <string>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/result.h"
#include "routing/routing.h"

namespace tocsin::app {

using KnownSilences = std::map<std::string, routing::Silence>;

core::Result<KnownSilences> known_silences(ApiDesk& desk);
core::Error no_silence(std::string_view id);

/// Begins `asked`, or changes the silence `id` (empty: a new one). Returns once our own view shows it.
/// The one who asks is written where it names nobody. The value is the silence as it is kept.
core::Result<routing::Silence> set_silence(ApiDesk& desk, routing::Silence asked,
                                           const std::string& id, const ApiCall& call);
/// The same, without writing it.
core::Result<routing::Silence> preview_silence(ApiDesk& desk, routing::Silence asked,
                                               const ApiCall& call);
/// Ok also for one that has ended. not_found: there is none.
core::Status end_silence(ApiDesk& desk, const std::string& id, const ApiCall& call);

}  // namespace tocsin::app
