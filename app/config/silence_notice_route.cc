#include "app/config/silence_notice_route.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr const char* kNoticesKey = "router.silence_notices";

// As the tree derives them from the places of routes (docs/routing.md, Identity of a route).
void keep_identities(routing::RouteConfig& route, const std::string& derived) {
  if (route.id.empty()) route.id = derived;
  for (std::size_t i = 0; i < route.routes.size(); ++i) {
    const auto matchers = routing::Matchers::parse(route.routes[i].matchers);
    if (!matchers) continue;  // reported where it was read
    keep_identities(route.routes[i], derived + "/" + std::to_string(i) + matchers->canonical());
  }
}

}  // namespace

void check_silence_notices(const config::Reader& root, const AppConfig& config,
                           const std::string& receiver) {
  if (receiver.empty()) return;
  const auto& names = config.receivers.names;
  if (std::find(names.begin(), names.end(), receiver) == names.end()) {
    const std::string near = core::nearest(receiver, names);
    root.error(kNoticesKey, "there is no receiver \"" + core::visible(receiver, 100) + "\"" +
                                (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  } else if (!config.has_route) {
    root.error(kNoticesKey,
               "needs a `route`: without one nobody is told of anything; write `route: {receiver: "
               "…}`");
  }
}

std::string silence_notices_receiver(const config::Reader& root) {
  const auto value = root.value(kNoticesKey);
  const auto* text = value ? core::as<std::string>(*value) : nullptr;
  return text == nullptr ? "" : *text;
}

void add_silence_notices(routing::RouteConfig& tree, const std::string& receiver) {
  keep_identities(tree, "{}");
  routing::RouteConfig notices;
  notices.id = "silence_notices";
  notices.matchers = {"rule=\"silence_notice\""};
  notices.receivers = {receiver};
  notices.group_by = {{"silence"}};
  notices.group_wait = core::Duration::zero();
  notices.group_interval = std::chrono::seconds(10);
  notices.repeat_interval = {routing::RepeatStep{std::nullopt, std::chrono::hours(168)}};
  notices.further.steps.emplace();  // nobody is paged for one
  tree.routes.insert(tree.routes.begin(), std::move(notices));
}

}  // namespace tocsin::app
