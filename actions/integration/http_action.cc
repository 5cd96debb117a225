#include "actions/integration/http_action.h"

#include <algorithm>
#include <chrono>

#include "actions/integration/attempt_notes.h"
#include "actions/integration/http_caller.h"
#include "actions/integration/http_dialog.h"
#include "actions/message/answer_links.h"
#include "actions/message/span_context.h"
#include "actions/transport/redact.h"
#include "core/json.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxDetail = 2048;
constexpr std::size_t kMaxAnswer = 65'536;
// Of batches that are refused although nothing can be taken from them: then all of it is at fault.
constexpr std::size_t kMaxRefused = 50;

class HttpAction final : public core::Action {
 public:
  HttpAction(std::shared_ptr<const HttpIntegration> integration, const Environment& environment,
             const std::string& name, const CommonConfig& common)
      : integration_(std::move(integration)),
        common_(common),
        clock_(*environment.clock),
        sender_{environment.cluster, environment.external_url, environment.place},
        traced_(environment.traced),
        caller_(integration_->http(), environment, common) {
    const auto buttons = environment.answers.buttons.find(name);
    if (buttons != environment.answers.buttons.end()) sender_.buttons = buttons->second;
    sender_.links = environment.answers.links;
  }

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    if (integration_->sends_batches()) return stored(integration_->render(notification, sender_));
    return stored(fitting(notification, common_.max_payload.count,
                          [&](const auto& form) { return integration_->render(form, sender_); }));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t attempt,
                               std::chrono::milliseconds budget) override {
    const auto rendered = parse_rendered(notification.rendered.empty() ? *render(notification)
                                                                       : notification.rendered);
    if (!rendered) return misconfigured(rendered.error().message);
    if (integration_->sends_batches()) return send_batches(notification, *rendered, budget);
    Dialog dialog(*this, notification, *rendered, attempt, budget);
    core::AttemptOutcome out = dialog.masked(integration_->carry_out(dialog));
    if (out.outcome == core::OutcomeClass::delivered) dialog.leave({});
    return out;
  }

 private:
  class Dialog final : public HttpDialog {
   public:
    Dialog(HttpAction& action, const core::Notification& notification, const Rendered& rendered,
           std::uint32_t attempt, std::chrono::milliseconds budget)
        : action_(action),
          notification_(notification),
          rendered_(rendered),
          attempt_(attempt),
          end_(action.clock_.monotonic() + budget) {}

    [[nodiscard]] const core::Notification& notification() const override { return notification_; }
    [[nodiscard]] const Rendered& rendered() const override { return rendered_; }
    [[nodiscard]] core::WallTime now() const override { return action_.clock_.now(); }
    [[nodiscard]] const CommonConfig& common() const override { return action_.common_; }
    [[nodiscard]] bool last_attempt() const override {
      const std::uint32_t most = action_.common_.retry.max_attempts;
      return most > 0 && attempt_ >= most;
    }
    [[nodiscard]] std::string left() const override {
      return action_.notes_.at(notification_.notification_id);
    }
    void leave(std::string text) override {
      action_.notes_.set(notification_.notification_id, std::move(text));
    }

    core::AttemptOutcome deliver() override {
      return action_.send(notification_, rendered_, time_left());
    }

    HttpResult ask(const HttpAsk& ask) override {
      auto request = action_.caller_.request(opened_, ask.content_type);
      if (!request) return {HttpFailure::bad_request, request.error().message, {}};
      request->timeout = time_left();
      if (request->timeout.count() <= 0) {
        return {HttpFailure::unreachable, "the requests before took the time of the attempt", {}};
      }
      request->method = ask.method;
      if (!ask.path.empty()) {
        request->url.erase(request->url.find_last_not_of('/') + 1);
        request->url += ask.path;
      }
      const Rendered asked{ask.content_type, ask.body, rendered_.fields};
      if (const auto problem = action_.fill(*request, {notification_, asked, now(), opened_});
          !problem) {
        return {HttpFailure::bad_request, problem.error().message, {}};
      }
      HttpSent sent = action_.caller_.send(*request, opened_);
      if (!sent.not_sent) return std::move(sent.result);
      const bool configured_wrong = sent.not_sent->outcome == core::OutcomeClass::configuration;
      return {configured_wrong ? HttpFailure::bad_request : HttpFailure::unreachable,
              std::move(sent.not_sent->detail),
              {}};
    }

    [[nodiscard]] core::AttemptOutcome masked(core::AttemptOutcome out) const {
      mask(opened_, out);
      return out;
    }

   private:
    [[nodiscard]] std::chrono::milliseconds time_left() const {
      return std::chrono::duration_cast<std::chrono::milliseconds>(end_ -
                                                                   action_.clock_.monotonic());
    }

    HttpAction& action_;
    const core::Notification& notification_;
    const Rendered& rendered_;
    std::uint32_t attempt_;
    core::Duration end_;
    Opened opened_;
  };

  static void mask(const Opened& opened, core::AttemptOutcome& out) {
    out.detail = printable(opened.masked(std::move(out.detail)), kMaxDetail);
    for (auto& [name, value] : out.handles) {
      value = printable(opened.masked(std::move(value)), kMaxDetail);
    }
  }

  // One that is refused as bad holds back no other; another failure ends the attempt, and what went
  // before is repeated with the rest: the state is the same.
  core::AttemptOutcome send_batches(const core::Notification& notification,
                                    const Rendered& rendered, std::chrono::milliseconds budget) {
    const core::Duration end = clock_.monotonic() + budget;
    core::AttemptOutcome out;
    std::size_t refused = 0;
    std::vector<std::string> left =
        integration_->batches(rendered, static_cast<std::size_t>(common_.max_payload.count));
    std::reverse(left.begin(), left.end());
    while (!left.empty()) {
      const Rendered batch{rendered.content_type, std::move(left.back()), rendered.fields};
      left.pop_back();
      const auto time =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.monotonic());
      if (time.count() <= 0) return out_of_time(left.size() + 1);
      core::AttemptOutcome one = send(notification, batch, time);
      if (one.outcome == core::OutcomeClass::bad_payload) {
        const auto instead = integration_->in_place_of(batch.body);
        left.insert(left.end(), instead.rbegin(), instead.rend());
        if (instead.empty() && refused++ == 0) out = std::move(one);
        if (refused < kMaxRefused) continue;
        out.detail = "refused again and again, the first: " + out.detail;
        return out;
      }
      if (one.outcome != core::OutcomeClass::delivered) return one;
      if (refused == 0) out = std::move(one);
    }
    if (refused > 0) {
      out.detail = std::to_string(refused) + " refused, all others taken; the first: " + out.detail;
    }
    return out;
  }

  static core::AttemptOutcome out_of_time(std::size_t left) {
    core::AttemptOutcome out;
    out.outcome = core::OutcomeClass::transient;
    out.code = "timeout";
    out.detail = std::to_string(left) + " requests were not sent within the time of an attempt";
    return out;
  }

  core::AttemptOutcome send(const core::Notification& notification, const Rendered& rendered,
                            std::chrono::milliseconds budget) {
    Opened opened;
    auto request = caller_.request(opened, rendered.content_type);
    if (!request) return misconfigured(request.error().message);
    request->timeout = budget;
    const core::Duration begin = clock_.monotonic();
    if (const auto problem = fill(*request, {notification, rendered, clock_.now(), opened});
        !problem) {
      return misconfigured(problem.error().message);
    }
    HttpSent sent = caller_.send(*request, opened);
    if (sent.not_sent) return std::move(*sent.not_sent);
    const HttpResult& result = sent.result;
    if (!notification.handles.empty() && integration_->lost(result.response)) {
      core::Notification anew = notification;
      anew.handles.clear();
      const auto spent =
          std::chrono::duration_cast<std::chrono::milliseconds>(clock_.monotonic() - begin);
      if (spent >= budget) return out_of_time(1);
      return send(anew, rendered, budget - spent);
    }
    core::AttemptOutcome out = integration_->classify(result, clock_.now());
    if (out.outcome == core::OutcomeClass::delivered) {
      out.handles = integration_->handles(result.response, notification);
    }
    mask(opened, out);
    return out;
  }

  core::Status fill(HttpRequest& request, const HttpAttempt& attempt) const {
    std::vector<std::string> signatures;
    request.body = signed_links(attempt.rendered.body, attempt.notification, sender_, signatures);
    for (std::string& one : signatures) attempt.opened.add(std::move(one));
    const TraceContext trace = trace_of(attempt.notification);
    const std::string parent = traced_ ? traceparent_to(attempt.notification) : trace.parent;
    if (!parent.empty()) {
      request.headers.emplace_back("traceparent", parent);
      if (!trace.state.empty()) request.headers.emplace_back("tracestate", trace.state);
    }
    return integration_->complete(request, attempt);
  }

  std::shared_ptr<const HttpIntegration> integration_;
  CommonConfig common_;
  core::Clock& clock_;
  Sender sender_;
  bool traced_;
  HttpCaller caller_;
  AttemptNotes notes_;
};

}  // namespace

void HttpIntegration::declare(config::Reader& in) {
  in.secret("url", http_.url, url_means_, !http_.url.set());
  keys(in);
  http_.declare(in);
  check(in);
}

core::AttemptOutcome HttpIntegration::carry_out(HttpDialog& dialog) const {
  return dialog.deliver();
}

core::Value json_answer(const HttpResponse& response) {
  auto read = core::parse_json(response.body, kMaxAnswer);
  return read ? std::move(*read) : core::Value();
}

core::Result<std::unique_ptr<core::Action>> HttpIntegration::build(
    const Environment& environment, const IntegrationName& name, const CommonConfig& common) const {
  return std::unique_ptr<core::Action>(
      std::make_unique<HttpAction>(shared_from_this(), environment, name.id, common));
}

}  // namespace tocsin::actions
