// Clicks in Slack are done here, behind the answer that Slack wants within three seconds.
#pragma once

#include <deque>
#include <string>
#include <thread>

#include "actions/actions.h"
#include "app/api/api_desk.h"
#include "app/api/slack_click.h"
#include "app/serve/inbound_config.h"
#include "core/mutex.h"

namespace tocsin::app {

/// One hook's clicks, on a thread of their own in the order in which they come. Whoever has pressed gets
/// an answer in any case. Thread-safe.
class SlackClicks {
 public:
  static constexpr std::size_t kMostWaiting = 100;

  /// All outlive it.
  SlackClicks(const InboundHook& hook, ApiDesk& desk, actions::ClickReplies& replies);
  ~SlackClicks();
  SlackClicks(const SlackClicks&) = delete;
  SlackClicks& operator=(const SlackClicks&) = delete;

  /// `client`: the address that it came from. False: too many wait.
  bool take(SlackClick click, std::string client);

 private:
  struct Waiting {
    SlackClick click;
    std::string client;
  };
  void run(const std::stop_token& stop);
  void follow(const Waiting& one);
  [[nodiscard]] std::string act(const Waiting& one);
  void reply(const SlackClick& click, const std::string& body);

  const InboundHook& hook_;
  ApiDesk& desk_;
  actions::ClickReplies& replies_;
  core::Mutex mutex_;
  core::CondVar changed_;
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  bool ends_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace tocsin::app
