#include "actions/metrics/metric_http.h"

#include <algorithm>

#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxAnswerWords = 2048;

}  // namespace

MetricAnswer MetricHttp::send(MetricRequest request, std::chrono::milliseconds budget) const {
  Opened opened;
  auto made = caller_.request(opened, std::move(request.content_type));
  if (!made) return {misconfigured(made.error().message), {}};
  made->method = std::move(request.method);
  made->url = url_with_path(made->url, request.path, request.default_path);
  made->body = std::move(request.body);
  made->body_in_words = std::move(request.body_in_words);
  made->timeout = budget;
  for (auto& header : request.headers) made->headers.push_back(std::move(header));
  if (request.complete) {
    if (const auto done = request.complete(*made, opened); !done) {
      return {misconfigured(done.error().message), {}};
    }
  }
  HttpSent sent = caller_.send(*made, opened);
  if (sent.not_sent) return {std::move(*sent.not_sent), {}};
  MetricAnswer out{classify(sent.result, clock_.now()), std::move(sent.result.response)};
  out.outcome.detail = printable(opened.masked(std::move(out.outcome.detail)), kMaxAnswerWords);
  return out;
}

core::AttemptOutcome out_of_push_time(std::size_t requests_left) {
  core::AttemptOutcome out;
  out.outcome = core::OutcomeClass::transient;
  out.code = "timeout";
  out.detail =
      std::to_string(requests_left) + " requests were not sent within the time of an attempt";
  return out;
}

std::string url_with_path(const std::string& url, const std::string& path,
                          const std::string& default_path) {
  const std::size_t query = std::min(url.find('?'), url.size());
  std::string out = url.substr(0, query);
  const std::size_t host = out.find("//");
  const std::size_t begin = out.find('/', host == std::string::npos ? 0 : host + 2);
  const bool bare = begin == std::string::npos || begin + 1 == out.size();
  if (path.empty() && (!bare || default_path.empty())) return url;
  while (out.ends_with('/')) out.pop_back();
  if (bare) out += default_path;
  return out + path + url.substr(query);
}

}  // namespace tocsin::actions
