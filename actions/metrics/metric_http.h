// Requests of metric transports over HTTP. Internal to actions.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actions/integration/http_caller.h"

namespace tocsin::actions {

struct MetricRequest {
  std::string method = "POST";
  std::string path;          // put behind the path of the configured URL
  std::string default_path;  // of a URL without one
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body;
  std::string body_in_words;
  /// What is added last, with credentials of the transport's own; may be empty.
  std::function<core::Status(HttpRequest&, Opened&)> complete = {};
};

struct MetricAnswer {
  core::AttemptOutcome outcome;  // by the table of http_outcome.cc, without a credential
  HttpResponse response;         // status 0: there is none
};

class MetricHttp {
 public:
  MetricHttp(const HttpSettings& settings, const Environment& environment,
             const CommonConfig& common)
      : clock_(*environment.clock), caller_(settings, environment, common) {}

  MetricAnswer send(MetricRequest request, std::chrono::milliseconds budget) const;
  [[nodiscard]] core::Duration monotonic() const { return clock_.monotonic(); }

 private:
  core::Clock& clock_;
  HttpCaller caller_;
};

/// What is left of the time of a push.
class PushTime {
 public:
  PushTime(const MetricHttp& http, std::chrono::milliseconds budget)
      : http_(http), end_(http.monotonic() + budget) {}
  [[nodiscard]] std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ - http_.monotonic());
  }

 private:
  const MetricHttp& http_;
  core::Duration end_;
};

/// The outcome of a push whose time is over.
core::AttemptOutcome out_of_push_time(std::size_t requests_left);

/// `url` with its path replaced or extended; a query stays.
std::string url_with_path(const std::string& url, const std::string& path,
                          const std::string& default_path);

}  // namespace tocsin::actions
