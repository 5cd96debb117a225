// Which request gets which answer: the table of HTTP routes, without sockets.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::app {

/// A whole request. Views are valid until the handler returns.
struct HttpRequest {
  std::string_view method;  // "GET"
  std::string_view path;    // without the query
  std::string_view query;   // behind the '?'
  std::string_view body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string allow;  // the header Allow, which a 405 must have; empty: left out
};

/// What a handler says; its route has the content type.
struct HttpAnswer {
  int status = 200;
  std::string body;
};

/// One method of one path. GET answers HEAD too: the server leaves the body out.
struct HttpRoute {
  std::string method;
  std::string path;
  std::string content_type;
  std::function<HttpAnswer(const HttpRequest&)> handler;
  bool named = true;  // a 404 names it; false for another name of the same page
};

/// The table. answer() may be called by several threads if the handlers allow it.
class HttpRoutes {
 public:
  explicit HttpRoutes(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {}

  /// 404 with the paths that are served, 405 with Allow for another method of a known path (RFC
  /// 9110, 15.5.5 and 15.5.6), else what the handler says.
  [[nodiscard]] HttpResponse answer(const HttpRequest& request) const;

 private:
  [[nodiscard]] HttpResponse not_found() const;

  std::vector<HttpRoute> routes_;
};

}  // namespace tocsin::app
