#include "app/serve/problem.h"

#include <algorithm>

#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

struct KindOfError {
  int status;
  std::string_view kind;
};

KindOfError kind_of(core::Code code) {
  switch (code) {
    case core::Code::invalid_argument:
      return {400, "invalid-request"};
    case core::Code::not_found:
      return {404, "not-found"};
    case core::Code::failed_precondition:
      return {409, "not-possible-now"};
    case core::Code::unavailable:
    case core::Code::deadline_exceeded:
      return {503, "not-available"};
    default:
      return {500, "internal"};
  }
}

}  // namespace

HttpAnswer problem(int status, std::string_view kind, std::string_view detail,
                   std::string_view field) {
  std::string title(kind);
  std::replace(title.begin(), title.end(), '-', ' ');
  core::ValueMap body{{"type", "urn:tocsin:problem:" + std::string(kind)},
                      {"title", title},
                      {"status", std::int64_t{status}},
                      {"detail", core::visible(detail)}};
  if (!field.empty()) body.emplace_back("field", core::visible(field, 100));
  HttpAnswer out{status, core::to_json(body) + "\n", "application/problem+json", {}};
  if (status == 503) out.headers.emplace_back("Retry-After", "2");
  return out;
}

HttpAnswer problem(const core::Error& error) {
  const KindOfError of = kind_of(error.code);
  return problem(of.status, of.kind, error.message);
}

}  // namespace tocsin::app
