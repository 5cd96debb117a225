#include "app/api/session_routes.h"

#include "app/process/version.h"
#include "app/serve/problem.h"
#include "core/identity.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueMap;

constexpr std::size_t kMostOfASession = 4096;

// Paths of this machine and errors are told to those who may read here.
Value stores_value(const ApiDesk& desk, const Principal& who) {
  core::ValueList out;
  if (who.by == KnownBy::nothing) return {};
  for (Value one : {desk.insights.condition(), desk.curves.condition()}) {
    if (!one.is_null()) out.push_back(std::move(one));
  }
  return out;
}

HttpAnswer show_status(ApiDesk& desk, const ApiCall& call) {
  const Principal& who = call.who;
  // Where a person at this machine finds the token: told to those who may read here.
  const std::string file = who.by == KnownBy::nothing ? std::string() : desk.local_token_file;
  return {200, core::to_json(ValueMap{{"version", version_text()},
                                      {"cluster", desk.cluster},
                                      {"since", core::to_rfc3339(desk.started)},
                                      {"time", core::to_rfc3339(desk.clock.now())},
                                      {"auth", std::string(desk.access.mode())},
                                      {"tls", call.request.secure},
                                      {"who", ValueMap{{"name", who.name},
                                                       {"role", std::string(to_string(who.role))},
                                                       {"by", std::string(to_string(who.by))}}},
                                      {"csrf", who.csrf.empty() ? Value() : Value(who.csrf)},
                                      {"token_file", file.empty() ? Value() : Value(file)},
                                      {"stores", stores_value(desk, who)}}) +
                   "\n"};
}

HttpAnswer too_many_tries(core::Duration wait) {
  HttpAnswer out = problem(429, "too-many-tries", "too many wrong tokens; wait, and try again");
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  out.headers.emplace_back("Retry-After", std::to_string(seconds));
  return out;
}

HttpAnswer begin_session(ApiDesk& desk, const ApiCall& call) {
  if (const auto wait = desk.brake.wait_of(call.request.client); wait > core::Duration{})
    return too_many_tries(wait);
  const auto body = core::parse_json(call.request.body, kMostOfASession);
  if (!body) return problem(body.error());
  const std::string given = core::text_at(*body, "token");
  if (given.empty())
    return problem(400, "invalid-request", "token: expected one of http.auth.tokens", "token");
  const ApiToken* token = desk.access.token_of(given);
  if (token == nullptr) {
    desk.brake.failed(call.request.client);
    desk.log.warn("api_login_refused", {{"client", std::string(call.request.client)}});
    return problem(401, "no-token", "this token is none of http.auth.tokens");
  }
  const std::string cookie = desk.sessions.open(core::sha256(given));
  desk.log.info("api_session_begun",
                {{"name", token->name}, {"client", std::string(call.request.client)}});
  HttpAnswer out{200,
                 core::to_json(ValueMap{{"name", token->name},
                                        {"role", std::string(to_string(token->role))},
                                        {"csrf", desk.sessions.csrf_token("session:" + cookie)}}) +
                     "\n"};
  out.headers.emplace_back("Set-Cookie", Access::cookie_header(cookie, call.request.secure));
  return out;
}

HttpAnswer close_session(ApiDesk& desk, const ApiCall& call) {
  desk.sessions.close(Access::cookie_of(call.request));
  HttpAnswer out{204, ""};
  out.headers.emplace_back("Set-Cookie", Access::cookie_header("", call.request.secure));
  return out;
}

}  // namespace

std::vector<ApiRoute> session_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  constexpr auto kAnybody = ApiRole::anybody;
  return {
      {"GET",
       "/api/v1/status",
       kAnybody,
       "Show the version, who you are, and the CSRF token",
       of_desk(show_status),
       {},
       {},
       {{200, "this process and you", "Status"}}},
      {"POST",
       "/api/v1/session",
       kAnybody,
       "Begin a session: a token for a cookie of 12 h",
       of_desk(begin_session),
       {},
       {{"SessionRequest"}},
       {{200, "the cookie is in Set-Cookie", "Session"}}},
      {"DELETE",
       "/api/v1/session",
       kAnybody,
       "End your session",
       of_desk(close_session),
       {},
       {},
       {{204, "it is over"}}},
  };
}

}  // namespace tocsin::app
