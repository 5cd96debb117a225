// One route of the API, declared once: what may be asked, by whom, and what is answered. Checks of
// requests, OpenAPI and the page's table follow it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/serve/access.h"
#include "app/serve/http_routes.h"
#include "app/serve/url_query.h"
#include "core/result.h"

namespace tocsin::app {

enum class ParameterType : std::uint8_t { text, flag, integer, time, choice, matcher, regex };

struct ApiParameter {
  std::string name;
  ParameterType type = ParameterType::text;
  std::string meaning;
  std::vector<std::string> choices = {};  // of a choice
  std::int64_t least = 0;                 // of an integer
  std::int64_t most = 0;
  bool repeated = false;  // may stand several times
  bool in_path = false;   // a name in braces of the path
};

struct ApiBody {
  std::string schema;  // name of a schema (api_schemas.h)
  std::vector<std::string> content_types{"application/json"};
  bool needed = true;
};

struct ApiReply {
  int status = 200;
  std::string meaning;
  std::string schema = {};  // empty: no body
  std::string content_type = "application/json";
};

/// What a handler is given. The parameters are declared ones, and have values of their types.
struct ApiCall {
  const HttpRequest& request;
  const Principal& who;
  const UrlQuery& query;
};

struct ApiRoute {
  std::string method;
  std::string path;  // "/api/v2/silence/{id}"
  ApiRole role = ApiRole::viewer;
  std::string summary;  // begins with a verb
  std::function<HttpAnswer(const ApiCall&)> handler;
  std::vector<ApiParameter> parameters = {};
  std::vector<ApiBody> body = {};      // at most one
  std::vector<ApiReply> replies = {};  // beside the errors, which all routes share
  bool only_reads = false;             // although it is no GET: it changes nothing
};

/// invalid_argument: a parameter that is none, with the nearest one, or a value of another type.
/// `field`: which one.
core::Status check_parameters(const ApiRoute& route, const UrlQuery& query, std::string& field);

}  // namespace tocsin::app
