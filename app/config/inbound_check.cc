#include "app/config/inbound_check.h"

#include <string>
#include <vector>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

/// The integration of that type and id; null: there is none, which is an error at `key`.
const actions::ConfiguredIntegration* named_integration(const config::Reader& root,
                                                        const AppConfig& config,
                                                        const std::string& key,
                                                        const std::string& type,
                                                        const std::string& id) {
  std::vector<std::string> ids;
  for (const actions::ConfiguredIntegration& one : config.receivers.integrations) {
    if (one.type != type) continue;
    if (one.common.id == id) return &one;
    ids.push_back(one.common.id);
  }
  const std::string near = core::nearest(id, ids);
  root.error(key, "no integration of type " + type + " has the id \"" + core::visible(id, 100) +
                      "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  return nullptr;
}

void check_slack_hook(const config::Reader& root, const AppConfig& config, const std::string& hook,
                      const std::vector<std::string>& integrations) {
  for (std::size_t i = 0; i < integrations.size(); ++i) {
    const std::string key = hook + ".integrations[" + std::to_string(i) + "]";
    const auto* one = named_integration(root, config, key, "slack", integrations[i]);
    if (one == nullptr || one->config->takes_buttons()) continue;
    root.error(key, core::visible(integrations[i], 100) +
                        " posts by an incoming webhook, so its messages have no buttons: give it a "
                        "`token` and a `channel`");
  }
}

}  // namespace

void check_inbound(const config::Reader& root, const AppConfig& config) {
  for (std::size_t i = 0; i < config.http.inbound.size(); ++i) {
    const InboundHook& hook = config.http.inbound[i];
    const std::string key = "http.inbound[" + std::to_string(i) + "]";
    if (hook.type == "slack") {
      check_slack_hook(root, config, key, hook.slack.integrations);
    } else if (!hook.integration.empty()) {
      named_integration(root, config, key + ".integration", hook.type, hook.integration);
    }
  }
}

void check_links(const config::Reader& root, const AppConfig& config) {
  if (!config.http.links || !config.external_url.empty()) return;
  root.error("http.links",
             "needs http.external_url: the address at which people reach this server");
}

}  // namespace tocsin::app
