// Port: what is told to the person who has pressed a button in Slack, over the URL that came with the
// click. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.h"

namespace tocsin::actions {

class ClickReplies {
 public:
  virtual ~ClickReplies() = default;
  /// Posts a JSON body. invalid_argument: `url` is none that may be asked. unavailable: it was not taken,
  /// and why, without the URL, which is a credential. Blocks at most 10 s, tries twice.
  virtual core::Status reply(const std::string& url, const std::string& body) = 0;
};

/// Where replies may go.
struct ClickReplyPlace {
  std::string origin = "https://hooks.slack.com";  // scheme and host of every URL
  std::vector<std::string> allow_private;          // networks, as the actions' key of that name
};
/// Problem with `origin` or `allow_private`; empty: none.
std::string click_reply_problem(const ClickReplyPlace& place);
/// Over HTTP, guarded against other addresses than `place` names.
std::unique_ptr<ClickReplies> http_click_replies(const ClickReplyPlace& place);

}  // namespace tocsin::actions
