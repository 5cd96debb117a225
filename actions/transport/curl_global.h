// libcurl's process-wide initialisation. Internal to actions.
#pragma once

namespace tocsin::actions {

/// Once per process, thread-safe.
void curl_global();

}  // namespace tocsin::actions
