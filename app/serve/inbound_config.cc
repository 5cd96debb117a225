#include "app/serve/inbound_config.h"

namespace tocsin::app {
namespace {

// Each type has keys of its own.
void check_hook_type(const config::Reader& item, const InboundHook& hook) {
  const bool slack = hook.type == "slack";
  if (!slack && hook.integration.empty()) {
    item.error("integration",
               "missing key \"integration\": the id of the integration of type " + hook.type);
  }
  if (slack && !hook.integration.empty()) {
    item.error("integration", "a webhook of type slack names `integrations`, a list");
  }
  if (slack && hook.slack.integrations.empty()) {
    item.error("integrations", "missing key \"integrations\": ids of integrations of type slack");
  }
  if (slack) return;
  for (const char* key : {"integrations", "operators", "stoppers", "replies_to", "allow_private"}) {
    if (item.has(key)) item.error(key, "only a webhook of type slack has this key");
  }
}

}  // namespace

void read_inbound(config::Reader& in, std::vector<InboundHook>& out) {
  config::Check<std::string> name;
  name.ok = [](const std::string& text) {
    constexpr std::size_t kLongest = 60;
    return !text.empty() && text.size() <= kLongest &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
  };
  name.expected = "1 … 60 of the characters a-z, 0-9, - and _";
  in.list("inbound",
          "webhooks by which tools tell that somebody has acknowledged an incident there",
          [&](config::Reader& item) {
            InboundHook hook;
            item.required("name", hook.name, name, "the tool calls POST /hooks/<name>");
            item.required("type", hook.type, config::one_of({"pagerduty", "jsm", "slack"}),
                          "whose webhook it is");
            item.optional("integration", hook.integration,
                          "pagerduty, jsm: id of the integration whose incidents it is about: "
                          "receiver/type, or its `id`");
            read_slack_hook(item, hook.slack);
            item.secret("secret", hook.secret,
                        "pagerduty: the signing secret of the subscription; jsm: the token in the "
                        "header Authorization: Bearer; slack: the signing secret of the app; at "
                        "least 16 characters",
                        true);
            item.secret("previous_secret", hook.previous_secret,
                        "accepted too while the secret is rotated");
            if (!item.describing()) check_hook_type(item, hook);
            for (const InboundHook& other : out) {
              if (!item.describing() && other.name == hook.name)
                item.error("name", "two webhooks are called \"" + hook.name + "\"");
            }
            out.push_back(std::move(hook));
          });
}

}  // namespace tocsin::app
