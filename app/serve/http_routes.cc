#include "app/serve/http_routes.h"

#include <algorithm>

namespace tocsin::app {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";

bool serves(const HttpRoute& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// Appends `word` to a list, once.
void list_once(std::string& list, std::string_view word, std::string_view between) {
  const std::string padded = std::string(between) + list + std::string(between);
  if (padded.find(std::string(between) + std::string(word) + std::string(between)) !=
      std::string::npos) {
    return;
  }
  if (!list.empty()) list += between;
  list += word;
}

}  // namespace

HttpResponse HttpRoutes::answer(const HttpRequest& request) const {
  std::string allow;
  for (const HttpRoute& route : routes_) {
    if (route.path != request.path) continue;
    if (serves(route, request.method)) {
      HttpAnswer made = route.handler(request);
      return {made.status, route.content_type, std::move(made.body), ""};
    }
    list_once(allow, route.method, ", ");
    if (route.method == "GET") list_once(allow, "HEAD", ", ");
  }
  if (allow.empty()) return not_found();
  return {405, std::string(kPlainText), "allowed here: " + allow + "\n", allow};
}

HttpResponse HttpRoutes::not_found() const {
  std::string paths;
  for (const HttpRoute& route : routes_) {
    if (route.named) list_once(paths, route.path, " ");
  }
  return {404, std::string(kPlainText), "not found; served here: " + paths + "\n", ""};
}

}  // namespace tocsin::app
