#include "app/api/page_routes.h"

#include <string>

#include "app/serve/gzip.h"
#include "app/serve/problem.h"
#include "core/identity.h"
#include "insights/insights.h"

namespace tocsin::app {
namespace {

// Nothing but our own files, no styles or scripts in the text, no other server.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpAnswer send_file(const Access& access, const HttpRequest& request, std::string_view name) {
  auto verdict = access.check(request, ApiRole::anybody);
  if (verdict.refusal && verdict.refusal->status == 421) return std::move(*verdict.refusal);
  const insights::PageFile* file = insights::page_file(name);
  if (file == nullptr) return problem(404, "not-found", "the page has no such file");
  const std::string tag = "\"" + core::params_hash(file->bytes) + "\"";
  HttpAnswer out{200, std::string(file->bytes)};
  if (request.header("if-none-match") == tag) out = {304, ""};
  out.content_type = file->content_type;
  out.headers = {{"ETag", tag},
                 {"Cache-Control", "no-cache"},
                 {"Content-Security-Policy", kPolicy},
                 {"X-Content-Type-Options", "nosniff"},
                 {"Referrer-Policy", "no-referrer"},
                 {"Cross-Origin-Opener-Policy", "same-origin"}};
  compress(request, out);
  return out;
}

}  // namespace

std::vector<HttpRoute> page_routes(const Access& access) {
  std::vector<HttpRoute> out;
  const auto add = [&](std::string path, auto name_of) {
    HttpRoute route{"GET", std::move(path), "text/html; charset=utf-8", {}, false, false};
    route.handler = [&access, name_of](const HttpRequest& request) {
      return send_file(access, request, name_of(request));
    };
    out.push_back(std::move(route));
  };
  for (const char* path :
       {"/", "/runs/{run}", "/runs/{run}/tensors", "/runs/{run}/nodes", "/runs/{run}/timeline",
        "/runs/{run}/ranks", "/runs/{run}/rules", "/runs/{run}/history", "/issues",
        "/issues/{key}/{episode}", "/compare", "/fleet", "/fleet/{node}", "/system"}) {
    add(path, [](const HttpRequest&) { return std::string("index.html"); });
  }
  add("/assets/{file}",
      [](const HttpRequest& request) { return request.in_path.find("file")->second; });
  return out;
}

}  // namespace tocsin::app
