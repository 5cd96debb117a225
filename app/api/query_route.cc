#include "app/api/query_route.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/serve/problem.h"
#include "core/json.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostQueries = 32;
constexpr std::size_t kMostOfAQueryBody = 256 * 1024;
constexpr std::size_t kMostAnswered = 64 * 1024 * 1024;  // of all answers together
constexpr std::string_view kOfARun = "/api/v1/runs/{run}";
constexpr std::string_view kJsonType = "application/json";

/// By kind: what stands behind the run in the path; "run": the run itself.
using QueryKinds = std::map<std::string, ApiRoute>;

QueryKinds kinds_among(std::span<const ApiRoute> declared) {
  QueryKinds out;
  for (const ApiRoute& route : declared) {
    const bool of_a_run = route.method == "GET" && route.path.starts_with(kOfARun);
    if (!of_a_run || route.role != ApiRole::viewer || route.replies.empty() ||
        route.replies.front().content_type != kJsonType)
      continue;
    const std::string rest = route.path.substr(kOfARun.size());
    out.emplace(rest.empty() ? "run" : rest.substr(1), route);
  }
  return out;
}

std::vector<std::string> names_of(const QueryKinds& kinds) {
  std::vector<std::string> out;
  for (const auto& entry : kinds) out.push_back(entry.first);
  return out;
}

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

// A parameter as a URL has it. False: a URL cannot say that.
bool append_parameter(std::string& url, const std::string& name, const Value& value) {
  std::string text;
  if (const auto* words = core::as<std::string>(value)) {
    text = *words;
  } else if (core::as<bool>(value) != nullptr || core::as<std::int64_t>(value) != nullptr) {
    text = core::to_json(value);
  } else {
    return false;
  }
  if (!url.empty()) url += '&';
  append_escaped(url, name);
  url += '=';
  append_escaped(url, text);
  return true;
}

core::Status append_parameters(std::string& url, const std::string& name, const Value& given) {
  const auto* several = core::as<ValueList>(given);
  bool good = several != nullptr || given.is_null() || append_parameter(url, name, given);
  if (several != nullptr) {
    good = std::all_of(several->begin(), several->end(),
                       [&](const Value& one) { return append_parameter(url, name, one); });
  }
  if (good) return core::ok();
  return core::invalid_argument(core::visible(name, 100) +
                                ": expected a text, a whole number, true or false");
}

struct OneQuery {
  std::string kind, run;
  std::string url;  // its parameters
};

// What is neither kind nor run is a parameter. One that is called so too stands in `parameters`.
core::Status read_member(const std::string& name, const Value& given, OneQuery& out) {
  if (name == "kind" || name == "run") {
    const auto* text = core::as<std::string>(given);
    if (text == nullptr) return core::invalid_argument(name + ": expected a text");
    (name == "kind" ? out.kind : out.run) = *text;
    return core::ok();
  }
  if (name != "parameters") return append_parameters(out.url, name, given);
  const auto* members = core::as<ValueMap>(given);
  if (members == nullptr) return core::invalid_argument("parameters: expected an object");
  for (const auto& [inner, value] : *members) {
    if (auto good = append_parameters(out.url, inner, value); !good) return good;
  }
  return core::ok();
}

core::Result<OneQuery> read_query(const Value& value, const QueryKinds& kinds) {
  const auto* members = core::as<ValueMap>(value);
  if (members == nullptr) return core::invalid_argument("expected an object with kind and run");
  OneQuery out;
  for (const auto& [name, given] : *members) {
    if (const auto good = read_member(name, given, out); !good) return good.error();
  }
  if (kinds.find(out.kind) == kinds.end()) {
    const std::string near = core::nearest(out.kind, names_of(kinds));
    return core::invalid_argument("kind: there is no \"" + core::visible(out.kind, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  if (out.run.empty())
    return core::invalid_argument("run: expected its uid, or the beginning of it");
  return out;
}

// As the route answers somebody who asks it alone, and keeps nothing.
HttpAnswer answer_query(const OneQuery& query, const ApiRoute& route, const ApiCall& call) {
  HttpRequest request{"GET", route.path, query.url, {}, call.request.client};
  request.secure = call.request.secure;
  request.in_path.emplace("run", query.run);
  const auto parameters = UrlQuery::parse(query.url);
  if (!parameters) return problem(parameters.error());
  if (const auto format = parameters->value("format"); format && *format != "json")
    return problem(400, "invalid-parameter", "format: these answers are JSON", "format");
  std::string field;
  if (const auto good = check_parameters(route, *parameters, field); !good)
    return problem(400, "invalid-parameter", good.error().message, field);
  return route.handler({request, call.who, *parameters});
}

HttpAnswer answer_of(const Value& value, const QueryKinds& kinds, const ApiCall& call) {
  const auto query = read_query(value, kinds);
  if (!query) {
    const std::string& text = query.error().message;
    const bool named = text.starts_with("kind:") || text.starts_with("run:");
    return problem(400, "invalid-query", text, named ? text.substr(0, text.find(':')) : "");
  }
  return answer_query(*query, kinds.find(query->kind)->second, call);
}

std::string_view without_line_end(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

HttpAnswer answer_queries(const QueryKinds& kinds, const ApiCall& call) {
  const auto body = core::parse_json(call.request.body, kMostOfAQueryBody);
  if (!body) return problem(400, "invalid-body", core::visible(body.error().message, 300));
  const auto* members = core::as<ValueMap>(*body);
  const auto* queries = core::as<ValueList>(core::find(*body, "queries"));
  if (members == nullptr || members->size() != 1 || queries == nullptr)
    return problem(400, "invalid-body", "expected {\"queries\": […]} and nothing else", "queries");
  if (queries->empty() || queries->size() > kMostQueries)
    return problem(400, "invalid-body",
                   "queries: expected 1 to " + std::to_string(kMostQueries) + ", found " +
                       std::to_string(queries->size()),
                   "queries");
  std::string out = "{\"answers\":[";
  for (const Value& one : *queries) {
    HttpAnswer made = out.size() < kMostAnswered
                          ? answer_of(one, kinds, call)
                          : problem(413, "too-much",
                                    "the answers before have 64 MiB together; ask for this later");
    if (out.back() != '[') out += ',';
    out += "{\"status\":" + std::to_string(made.status) + ",\"body\":";
    out += without_line_end(made.body);
    out += '}';
  }
  return {200, out + "]}\n"};
}

}  // namespace

ApiRoute query_route(std::span<const ApiRoute> declared) {
  ApiRoute out{
      "POST",
      "/api/v1/query",
      ApiRole::viewer,
      "Ask up to 32 of the GET routes of a run at once",
      [kinds = kinds_among(declared)](const ApiCall& call) { return answer_queries(kinds, call); },
      {},
      {{"Queries"}},
      {{200, "the answers, in the order of the queries", "QueryAnswers"}}};
  out.only_reads = true;
  return out;
}

}  // namespace tocsin::app
