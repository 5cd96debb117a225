// Who may do what by buttons in Slack: the keys of http.inbound[] of type slack.
#pragma once

#include <string>
#include <vector>

#include "actions/actions.h"
#include "config/config.h"

namespace tocsin::app {

struct SlackHook {
  std::vector<std::string> integrations;  // ids; their messages have buttons
  std::vector<std::string>
      operators;                      // ids of users who may acknowledge and silence; empty: all of
                                      // the app's workspace
  std::vector<std::string> stoppers;  // ids of users who may decide on stops; empty: nobody
  actions::ClickReplyPlace replies;   // where answers to clicks go

  [[nodiscard]] bool may_answer(const std::string& user, bool of_our_workspace) const;
  [[nodiscard]] bool may_stop(const std::string& user) const;
};
void read_slack_hook(config::Reader& in, SlackHook& out);

}  // namespace tocsin::app
