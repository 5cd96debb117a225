// Which request gets which answer: the table of HTTP routes, without sockets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/serve/http_stream.h"

namespace tocsin::app {

/// A whole request. Views are valid until the handler returns.
struct HttpRequest {
  std::string_view method;  // "GET"
  std::string_view path;    // without the query
  std::string_view query;   // behind the '?'
  std::string_view body;
  std::string_view client = {};  // its address, without the port: "127.0.0.1"
  std::vector<std::pair<std::string_view, std::string_view>> headers = {};
  /// What stands in the path where the route has {name}; percent escapes are decoded.
  std::map<std::string, std::string, std::less<>> in_path = {};

  bool secure = false;                // it came over TLS
  std::string_view certificate = {};  // name in the one that the client has shown; empty: none

  /// The first header of that name, in any letter case; empty: there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
  /// How many headers have that name.
  [[nodiscard]] std::size_t count(std::string_view name) const;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  HttpHeaders headers = {};
  std::shared_ptr<HttpStream> stream = {};  // in place of the body
};

/// What a handler says; its route has the content type, unless the answer names another.
struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = {};
  HttpHeaders headers = {};
  std::shared_ptr<HttpStream> stream = {};  // in place of the body; it has an end only by itself
};

/// One method of one path. GET answers HEAD too: the server leaves the body out.
struct HttpRoute {
  std::string method;
  std::string path;  // "/api/v2/silence/{id}": a name in braces stands for one part
  std::string content_type;
  std::function<HttpAnswer(const HttpRequest&)> handler;
  bool named = true;      // a 404 names it; false for another name of the same page
  bool may_wait = false;  // the handler waits for a broker or walks much: not on the io thread
};

/// The table. answer() may be called by several threads if the handlers allow it.
class HttpRoutes {
 public:
  explicit HttpRoutes(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {}

  /// 404 with the paths that are served, 405 with Allow for another method of a known path (RFC
  /// 9110, 15.5.5 and 15.5.6), else what the handler says.
  [[nodiscard]] HttpResponse answer(HttpRequest request) const;
  /// Whether answering this request may take long.
  [[nodiscard]] bool may_wait(const HttpRequest& request) const;

 private:
  [[nodiscard]] HttpResponse not_found() const;

  std::vector<HttpRoute> routes_;
};

}  // namespace tocsin::app
