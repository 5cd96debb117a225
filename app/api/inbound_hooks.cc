#include "app/api/inbound_hooks.h"

#include <algorithm>
#include <utility>

#include "app/api/ack_desk.h"
#include "app/api/slack_clicks.h"
#include "app/serve/problem.h"
#include "app/serve/session_table.h"
#include "app/view/ack_choice.h"
#include "app/view/ack_words.h"
#include "core/identity.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using Kind = InboundEvent::Kind;

constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kMostDone = 10'000;
constexpr core::Duration kAhead = 5min;  // that a tool's clock may be
constexpr core::Duration kOldest = 24h;  // tools try again for hours
constexpr std::string_view kHookBearer = "Bearer ";

bool opens(const InboundHook& hook, const config::Secret& secret, const HttpRequest& request) {
  if (!secret.set()) return false;
  const auto opened = secret.reveal();
  if (!opened || opened->size() < kShortestSecret) return false;
  if (hook.type == "slack") {
    return has_slack_signature(request.header("x-slack-signature"),
                               request.header("x-slack-request-timestamp"), *opened, request.body);
  }
  if (hook.type == "pagerduty") {
    return has_pagerduty_signature(request.header("x-pagerduty-signature"), *opened, request.body);
  }
  const std::string_view given = request.header("authorization");
  return given.starts_with(kHookBearer) &&
         core::sha256(given.substr(kHookBearer.size())) == core::sha256(*opened);
}

// The far side tries again for what is not 2xx: what needs no second try is 200.
HttpAnswer said(std::string text) {
  return {200, std::move(text) + "\n", "text/plain; charset=utf-8"};
}

std::string tool_of(const InboundHook& hook) {
  return hook.type == "pagerduty" ? "PagerDuty" : "Jira Service Management";
}

// Those that this tool has made for the group; what people wrote elsewhere stays.
std::vector<std::string> own_acks(const TopicView& view, const InboundHook& hook,
                                  const std::string& group) {
  std::vector<std::string> out;
  for (const auto& [id, ack] : view.acknowledgements()) {
    if (ack.origin == hook.integration && ack.group == group) out.push_back(id);
  }
  return out;
}

}  // namespace

struct InboundHooks::Clicks {
  Clicks(const InboundHook& hook, ApiDesk& desk)
      : replies(actions::http_click_replies(hook.slack.replies)), clicks(hook, desk, *replies) {}
  std::unique_ptr<actions::ClickReplies> replies;
  SlackClicks clicks;
};

InboundHooks::~InboundHooks() = default;

InboundHooks::InboundHooks(std::vector<InboundHook> hooks, ApiDesk& desk,
                           core::Telemetry& telemetry)
    : hooks_(std::move(hooks)), desk_(desk) {
  for (const InboundHook& hook : hooks_) {
    if (hook.type == "slack") clicks_[hook.name] = std::make_unique<Clicks>(hook, desk);
    failures_[hook.name] =
        &telemetry.counter("tocsin_router_signature_failures_total",
                           "webhooks that were refused because their signature, or token, is wrong",
                           {{"hook", hook.name}});
    const auto secret = hook.secret.reveal();
    if (secret && secret->size() >= kShortestSecret) continue;
    desk.log.warn(
        "inbound_secret_unusable",
        {{"hook", hook.name},
         {"error", secret ? "it has fewer than " + std::to_string(kShortestSecret) + " characters"
                          : secret.error().message}});
  }
}

std::vector<HttpRoute> InboundHooks::routes() {
  std::vector<HttpRoute> out;
  const auto add = [&](const std::string& path, bool may_wait, const std::string& hook) {
    HttpRoute route{"POST", path, "text/plain; charset=utf-8", {}, false, may_wait};
    route.handler = [this, hook](const HttpRequest& request) {
      HttpAnswer made = answer(request, hook.empty() ? request.in_path.find("name")->second : hook);
      made.headers.emplace_back("Cache-Control", "no-store");
      return made;
    };
    out.push_back(std::move(route));
  };
  // Slack waits three seconds: its clicks are answered before requests that wait for topics.
  for (const InboundHook& hook : hooks_) {
    if (hook.type == "slack") add("/hooks/" + hook.name, false, hook.name);
  }
  if (!hooks_.empty()) add("/hooks/{name}", true, {});
  return out;
}

// An unknown name is refused in the same words: they say nothing of which there are.
HttpAnswer InboundHooks::refuse(const InboundHook* hook, const HttpRequest& request) {
  if (hook != nullptr) {
    failures_.at(hook->name)->add();
    desk_.log.warn("inbound_refused",
                   {{"hook", hook->name}, {"client", std::string(request.client)}});
  }
  return problem(401, "signature", "no webhook has this name and this signature or token");
}

HttpAnswer InboundHooks::answer(const HttpRequest& request, const std::string& name) {
  const auto hook = std::find_if(hooks_.begin(), hooks_.end(),
                                 [&](const InboundHook& one) { return one.name == name; });
  if (hook == hooks_.end()) return refuse(nullptr, request);
  if (!is_from(*hook, request)) return refuse(&*hook, request);
  if (hook->type == "slack") return answer_slack(*hook, request);
  const auto event =
      hook->type == "pagerduty" ? read_pagerduty_hook(request.body) : read_jsm_hook(request.body);
  if (!event) return problem(400, "invalid-event", event.error().message);
  if (event->kind == Kind::other) return said("nothing to do");
  if (event->group.empty()) return said("no incident of ours");
  const core::WallTime now = desk_.clock.now();
  if (event->at && *event->at > now + kAhead)
    return problem(400, "invalid-event", "the event is of a time to come");
  if (event->at && *event->at < now - kOldest) return said("too long ago");
  const std::string id = event->id.empty() ? std::string() : hook->name + "/" + event->id;
  if (was_done(id)) return said("known already");
  HttpAnswer out = follow(*hook, request, *event);
  if (out.status == 200) done(id);
  return out;
}

bool InboundHooks::is_from(const InboundHook& hook, const HttpRequest& request) const {
  if (hook.type == "slack") {
    const auto sent = slack_timestamp(request.header("x-slack-request-timestamp"));
    const core::WallTime now = desk_.clock.now();
    if (!sent || *sent > now + kSlackClockMayDiffer || *sent < now - kSlackClockMayDiffer)
      return false;
  }
  return opens(hook, hook.secret, request) || opens(hook, hook.previous_secret, request);
}

// What is asked is done behind the answer.
HttpAnswer InboundHooks::answer_slack(const InboundHook& hook, const HttpRequest& request) {
  auto click = read_slack_click(request.body);
  if (!click) return problem(400, "invalid-event", click.error().message);
  if (!*click) return {200, ""};
  const std::string id = hook.name + "/" + core::params_hash(request.header("x-slack-signature"));
  if (was_done(id)) return {200, ""};
  if (!clicks_.at(hook.name)->clicks.take(std::move(**click), std::string(request.client))) {
    HttpAnswer out = problem(503, "too-many", "too many clicks wait; press again in a moment");
    out.headers.emplace_back("Retry-After", "5");
    return out;
  }
  done(id);
  return {200, ""};
}

HttpAnswer InboundHooks::follow(const InboundHook& hook, const HttpRequest& request,
                                const InboundEvent& event) {
  const Principal who{
      event.by.empty() ? tool_of(hook) : event.by, ApiRole::operate, KnownBy::signature, {}};
  const UrlQuery no_query;
  const ApiCall call{request, who, no_query};
  bool is_open = false;
  bool all_taken = true;
  std::vector<std::string> own;
  const auto seen = desk_.view.read([&](const TopicView& view) {
    const AckChoice choice = choose_group(view, desk_.told.groups(), event.group);
    const core::WallTime now = desk_.clock.now();
    for (const auto& [key, issue] : choice.open) {
      is_open = true;
      all_taken = all_taken && acknowledged(view, key, *issue, now) != nullptr;
    }
    own = own_acks(view, hook, event.group);
  });
  if (!seen) return problem(seen.error());
  if (event.kind == Kind::unacknowledged) {
    for (const std::string& id : own) {
      if (const auto back = take_back(desk_, id, call); !back) return problem(back.error());
    }
    return said(own.empty() ? "nothing to take back" : "taken back");
  }
  if (!is_open) return said("nothing of it is open");
  // Also the tool's word on what we have passed on to it: a second record would begin a loop.
  if (all_taken) return said("acknowledged already");
  AckWish wish;
  wish.group = event.group;
  wish.note = "in " + tool_of(hook);
  wish.at = std::min(event.at.value_or(desk_.clock.now()), desk_.clock.now());
  wish.origin = hook.integration;
  const auto taken = take_on(desk_, wish, call);
  return taken ? said("acknowledged") : problem(taken.error());
}

bool InboundHooks::was_done(const std::string& id) {
  const core::MutexLock lock(mutex_);
  return !id.empty() && done_.contains(id);
}

void InboundHooks::done(const std::string& id) {
  if (id.empty()) return;
  const core::MutexLock lock(mutex_);
  if (done_.insert(id).second) order_.push_back(id);
  if (order_.size() <= kMostDone) return;
  done_.erase(order_.front());
  order_.pop_front();
}

}  // namespace tocsin::app
