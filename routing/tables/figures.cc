#include "routing/tables/figures.h"

namespace tocsin::routing {

std::string_view source_type(std::string_view source) {
  if (source.find("/rules/") != std::string_view::npos) return "rules";
  if (source.ends_with("/router")) return "router";
  if (source.starts_with("/alerts/")) return "alerts";
  return "other";
}

}  // namespace tocsin::routing
