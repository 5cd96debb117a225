#include "app/config/command_place.h"

#include <algorithm>
#include <filesystem>

#include "app/config/transport_settings.h"
#include "core/value.h"

namespace tocsin::app {
namespace {

/// Whether a connection needs more than an address: a login, certificates, another family of
/// addresses; also where only readers or only writers do.
bool asks_for_more(const core::ValueMap& kafka) {
  return std::any_of(kafka.begin(), kafka.end(), [](const auto& entry) {
    const auto& [key, value] = entry;
    if (const auto* part = core::as<core::ValueMap>(value)) return asks_for_more(*part);
    return key.starts_with("security.") || key.starts_with("sasl.") || key.starts_with("ssl.") ||
           key.starts_with("broker.address");
  });
}

bool address_is_enough(const AppConfig& config) {
  if (config.topics.prefix != ingest::TopicsConfig().prefix) return false;
  const auto* kafka = core::as<core::ValueMap>(config.transport.kafka);
  return kafka == nullptr || !asks_for_more(*kafka);
}

}  // namespace

std::vector<std::string> command_place(const AppConfig& config) {
  if (!address_is_enough(config) && !config.files.empty()) {
    std::error_code ignored;
    const auto file = std::filesystem::absolute(config.files.front(), ignored);
    return {"-c", file.lexically_normal().string()};
  }
  return {"--from", out_of(config.transport)};
}

}  // namespace tocsin::app
