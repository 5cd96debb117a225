#include "app/config/inbound_check.h"

#include <string>
#include <vector>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {

void check_inbound(const config::Reader& root, const AppConfig& config) {
  for (std::size_t i = 0; i < config.http.inbound.size(); ++i) {
    const InboundHook& hook = config.http.inbound[i];
    std::vector<std::string> ids;
    bool found = hook.integration.empty();
    for (const actions::ConfiguredIntegration& one : config.receivers.integrations) {
      if (one.type != hook.type) continue;
      ids.push_back(one.common.id);
      found = found || one.common.id == hook.integration;
    }
    if (found) continue;
    const std::string near = core::nearest(hook.integration, ids);
    root.error("http.inbound[" + std::to_string(i) + "].integration",
               "no integration of type " + hook.type + " has the id \"" +
                   core::visible(hook.integration, 100) + "\"" +
                   (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
}

}  // namespace tocsin::app
