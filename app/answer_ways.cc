#include "app/answer_ways.h"

#include <memory>
#include <string>

#include "app/serve/link_seal.h"

namespace tocsin::app {

actions::AnswerWays answer_ways(const AppConfig& config) {
  actions::AnswerWays out;
  for (const InboundHook& hook : config.http.inbound) {
    for (const std::string& integration : hook.slack.integrations) {
      auto& buttons = out.buttons[integration];
      buttons.stops = buttons.stops || !hook.slack.stoppers.empty();
    }
  }
  if (!config.http.links) return out;
  const auto seal = std::make_shared<const LinkSeal>(*config.http.links);
  out.links = actions::AnswerLinks{config.http.links->lifetime,
                                   [seal](std::string_view text) { return seal->sign(text); }};
  return out;
}

}  // namespace tocsin::app
