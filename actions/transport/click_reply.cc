#include "actions/transport/click_reply.h"

#include <chrono>
#include <utility>

#include "actions/transport/http_client.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kLongestReplyUrl = 2000;
constexpr std::chrono::milliseconds kReplyWithin{5000};

class HttpClickReplies final : public ClickReplies {
 public:
  explicit HttpClickReplies(const ClickReplyPlace& place)
      : origin_(place.origin), client_(curl_http_client()) {
    if (auto guard = AddressGuard::create(place.allow_private)) guard_ = std::move(*guard);
  }

  core::Status reply(const std::string& url, const std::string& body) override {
    // Behind the origin comes a path: no other host begins with its name.
    if (!url.starts_with(origin_ + "/") || url.size() > kLongestReplyUrl ||
        url.find_first_of(" \r\n\t") != std::string::npos || !url_problem(url, guard_).empty()) {
      return core::invalid_argument("response_url: expected one of " + origin_);
    }
    HttpRequest request;
    request.url = url;
    request.headers = {{"content-type", "application/json; charset=utf-8"},
                       {"user-agent", "tocsin"}};
    request.body = body;
    request.timeout = kReplyWithin;
    request.guard = guard_;
    std::string why;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const HttpResult result = client_->send(request);
      if (result.failure == HttpFailure::none && result.response.status / 100 == 2)
        return core::ok();
      why = result.failure == HttpFailure::none
                ? "Slack answered " + std::to_string(result.response.status)
            : result.failure == HttpFailure::blocked ? "its address is private: see allow_private"
                                                     : "Slack did not answer";
      // What Slack refuses, or may have taken, is not sent again.
      const bool again = result.failure == HttpFailure::unreachable ||
                         (result.failure == HttpFailure::none && result.response.status / 100 == 5);
      if (!again) break;
    }
    return core::Error{core::Code::unavailable, std::move(why)};
  }

 private:
  const std::string origin_;
  AddressGuard guard_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace

std::string click_reply_problem(const ClickReplyPlace& place) {
  const auto guard = AddressGuard::create(place.allow_private);
  if (!guard) return guard.error().message;
  if (std::string problem = url_problem(place.origin, *guard); !problem.empty()) return problem;
  const std::size_t host = place.origin.find("//") + 2;
  if (place.origin.find_first_of("/?#", host) != std::string::npos)
    return "expected scheme and host alone, such as https://hooks.slack.com";
  if (place.origin.starts_with("http://") && place.allow_private.empty()) return "expected https";
  return {};
}

std::unique_ptr<ClickReplies> http_click_replies(const ClickReplyPlace& place) {
  return std::make_unique<HttpClickReplies>(place);
}

}  // namespace tocsin::actions
