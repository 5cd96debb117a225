#include "app/serve/entity_tag.h"

#include <algorithm>

#include "core/identity.h"

namespace tocsin::app {
namespace {

constexpr const char* kTenMinutes = "private, max-age=600";

std::string_view without_weakness(std::string_view tag) {
  while (tag.starts_with(' ') || tag.starts_with('\t')) tag.remove_prefix(1);
  while (tag.ends_with(' ') || tag.ends_with('\t')) tag.remove_suffix(1);
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  return tag;
}

}  // namespace

std::string weak_tag(std::string_view meaning) {
  return "W/\"" + core::params_hash(meaning) + "\"";
}

bool names_tag(std::string_view if_none_match, std::string_view tag) {
  // No tag of ours has a comma.
  while (!if_none_match.empty()) {
    const std::size_t comma = std::min(if_none_match.find(','), if_none_match.size());
    const std::string_view one = without_weakness(if_none_match.substr(0, comma));
    if (one == "*" || one == without_weakness(tag)) return true;
    if_none_match.remove_prefix(std::min(comma + 1, if_none_match.size()));
  }
  return false;
}

void let_keep(const HttpRequest& request, std::string_view meaning, HttpAnswer& answer) {
  const std::string tag = weak_tag(meaning);
  if (names_tag(request.header("if-none-match"), tag)) {
    answer.status = 304;
    answer.body.clear();
  }
  answer.headers.emplace_back("ETag", tag);
  answer.headers.emplace_back("Cache-Control", kTenMinutes);
}

}  // namespace tocsin::app
