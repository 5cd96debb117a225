#include "app/api/slack_clicks.h"

#include <pthread.h>

#include <utility>

#include "app/api/answer_desk.h"
#include "app/api/slack_reply.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using actions::AnswerTarget;
using Purpose = AnswerTarget::Purpose;

bool decides_on_a_stop(const AnswerTarget& target) {
  return target.purpose == Purpose::approve_stop || target.purpose == Purpose::cancel_stop;
}

/// Why this person may not; empty: they may.
std::string refusal(const SlackHook& hook, const SlackClick& click, const AnswerTarget& target) {
  if (decides_on_a_stop(target)) {
    if (hook.may_stop(click.user)) return {};
    return "You may not decide on stops here, and nothing was done. Who may stands in `stoppers` "
           "of "
           "Tocsin's configuration; your member ID is " +
           click.user + ".";
  }
  if (hook.may_answer(click.user, click.of_our_workspace)) return {};
  return "You may not acknowledge or silence here, and nothing was done. Who may stands in "
         "`operators` of Tocsin's configuration; your member ID is " +
         click.user + ".";
}

}  // namespace

SlackClicks::SlackClicks(const InboundHook& hook, ApiDesk& desk, actions::ClickReplies& replies)
    : hook_(hook),
      desk_(desk),
      replies_(replies),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

SlackClicks::~SlackClicks() {
  thread_.request_stop();
  {
    const core::MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
}

bool SlackClicks::take(SlackClick click, std::string client) {
  {
    const core::MutexLock lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back({std::move(click), std::move(client)});
  }
  changed_.notify_one();
  return true;
}

void SlackClicks::run(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "tocsin-clicks");
  while (!stop.stop_requested()) {
    Waiting next;
    {
      const core::MutexLock lock(mutex_);
      changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return ends_ || !waiting_.empty(); });
      if (ends_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    follow(next);
  }
}

void SlackClicks::follow(const Waiting& one) {
  const std::string body = act(one);
  if (one.click.response_url.empty()) {
    desk_.log.warn("slack_click_unanswered",
                   {{"hook", hook_.name}, {"error", "the click names no response_url"}});
    return;
  }
  reply(one.click, body);
}

void SlackClicks::reply(const SlackClick& click, const std::string& body) {
  const auto sent = replies_.reply(click.response_url, body);
  if (sent) return;
  desk_.log.warn("slack_click_unanswered", {{"hook", hook_.name}, {"error", sent.error().message}});
}

std::string SlackClicks::act(const Waiting& one) {
  const SlackClick& click = one.click;
  const auto target = AnswerTarget::parse(click.value);
  if (!target)
    return slack_whisper("Nothing was done: another version of Tocsin made this button.");
  const std::string person = slack_person(click);
  if (const std::string why = refusal(hook_.slack, click, *target); !why.empty()) {
    desk_.log.warn("slack_click_refused",
                   {{"hook", hook_.name}, {"by", person}, {"what", target->text()}});
    return slack_whisper(why);
  }
  const std::string path = "/hooks/" + hook_.name;
  const HttpRequest request{"POST", path, "", "", one.client};
  const Principal who{person,
                      decides_on_a_stop(*target) ? ApiRole::stopper : ApiRole::operate,
                      KnownBy::signature,
                      {}};
  const UrlQuery no_query;
  const auto& from = hook_.slack.integrations;
  const AnswerBy by{"in Slack", from.size() == 1 ? from.front() : "hooks/" + hook_.name};
  const auto answered = answer_message(desk_, *target, by, ApiCall{request, who, no_query});
  if (!answered) {
    return slack_whisper("Nothing was done: " + answered.error().message +
                         ". Try again, or use the "
                         "command in the message.");
  }
  const std::string changed = slack_changed_message(click, answered->words);
  return changed.empty() ? slack_whisper(answered->words) : changed;
}

}  // namespace tocsin::app
