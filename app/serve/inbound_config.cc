#include "app/serve/inbound_config.h"

namespace tocsin::app {

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
            item.required("type", hook.type, config::one_of({"pagerduty", "jsm"}),
                          "whose webhook it is");
            item.required("integration", hook.integration, config::not_empty(),
                          "id of the integration whose incidents it is about: receiver/type, or "
                          "its `id`");
            item.secret("secret", hook.secret,
                        "pagerduty: the signing secret of the subscription; jsm: the token in the "
                        "header Authorization: Bearer; at least 16 characters",
                        true);
            item.secret("previous_secret", hook.previous_secret,
                        "accepted too while the secret is rotated");
            for (const InboundHook& other : out) {
              if (!item.describing() && other.name == hook.name)
                item.error("name", "two webhooks are called \"" + hook.name + "\"");
            }
            out.push_back(std::move(hook));
          });
}

}  // namespace tocsin::app
