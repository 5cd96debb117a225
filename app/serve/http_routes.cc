#include "app/serve/http_routes.h"

#include <algorithm>
#include <optional>

#include "app/serve/problem.h"
#include "app/serve/url_query.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";

constexpr std::string_view kApi = "/api/";

bool serves(const HttpRoute& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// Takes one part off the front of a path.
std::string_view next_part(std::string_view& path) {
  const std::size_t slash = std::min(path.find('/'), path.size());
  const std::string_view part = path.substr(0, slash);
  path.remove_prefix(std::min(slash + 1, path.size()));
  return part;
}

// What stands where the pattern has {name}; nullopt: another path.
std::optional<std::map<std::string, std::string, std::less<>>> matched(std::string_view pattern,
                                                                       std::string_view path) {
  std::map<std::string, std::string, std::less<>> out;
  if (pattern == path) return out;
  if (pattern.find('{') == std::string_view::npos) return std::nullopt;
  if (std::count(pattern.begin(), pattern.end(), '/') != std::count(path.begin(), path.end(), '/'))
    return std::nullopt;
  while (!pattern.empty() || !path.empty()) {
    const std::string_view wanted = next_part(pattern);
    const std::string_view found = next_part(path);
    if (!wanted.starts_with('{')) {
      if (wanted != found) return std::nullopt;
      continue;
    }
    auto value = decoded_part(found);
    if (!value || value->empty()) return std::nullopt;
    out.emplace(wanted.substr(1, wanted.size() - 2), std::move(*value));
  }
  return out;
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

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           const auto small = [](char c) {
             return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
           };
           return small(x) == small(y);
         });
}

// `allow`: the methods of that path; empty: there is no such path.
HttpResponse refused_of_api(const HttpRequest& request, const std::string& allow) {
  HttpAnswer out = allow.empty()
                       ? problem(404, "not-found",
                                 core::visible(request.path, 100) +
                                     " is no resource; GET /api/v1/openapi.json lists them")
                       : problem(405, "method-not-allowed", "allowed here: " + allow);
  if (!allow.empty()) out.headers.emplace_back("Allow", allow);
  return {out.status, out.content_type, std::move(out.body), std::move(out.headers), nullptr};
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& one) { return same_name(one.first, name); });
  return found == headers.end() ? std::string_view{} : found->second;
}

std::size_t HttpRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(
      headers.begin(), headers.end(), [&](const auto& one) { return same_name(one.first, name); }));
}

HttpResponse HttpRoutes::answer(HttpRequest request) const {
  std::string allow;
  for (const HttpRoute& route : routes_) {
    auto in_path = matched(route.path, request.path);
    if (!in_path) continue;
    if (serves(route, request.method)) {
      request.in_path = std::move(*in_path);
      HttpAnswer made = route.handler(request);
      return {made.status, made.content_type.empty() ? route.content_type : made.content_type,
              std::move(made.body), std::move(made.headers), std::move(made.stream)};
    }
    list_once(allow, route.method, ", ");
    if (route.method == "GET") list_once(allow, "HEAD", ", ");
  }
  if (request.path.starts_with(kApi)) return refused_of_api(request, allow);
  if (allow.empty()) return not_found();
  return {405, std::string(kPlainText), "allowed here: " + allow + "\n", {{"Allow", allow}}};
}

bool HttpRoutes::may_wait(const HttpRequest& request) const {
  return std::any_of(routes_.begin(), routes_.end(), [&](const HttpRoute& route) {
    return route.may_wait && serves(route, request.method) && matched(route.path, request.path);
  });
}

HttpResponse HttpRoutes::not_found() const {
  std::string paths;
  for (const HttpRoute& route : routes_) {
    if (route.named) list_once(paths, route.path, " ");
  }
  return {404, std::string(kPlainText), "not found; served here: " + paths + "\n", {}};
}

}  // namespace tocsin::app
