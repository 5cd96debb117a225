#include "app/transport_settings.h"

#include <cstdlib>
#include <filesystem>

#include "app/client/settings.h"
#include "app/commands.h"

namespace tocsin::app {

core::Result<TransportSettings> transport_settings(const std::string& config_file,
                                                   const std::string& out) {
  std::error_code error;
  const std::string file = config_path(config_file);
  const bool named = !config_file.empty() || std::getenv("TOCSIN_CONFIG") != nullptr;
  if (!out.empty() || (!named && !std::filesystem::exists(file, error))) {
    const auto settings = client::load_settings({out, "", "", ""}, client::this_process());
    if (!settings) return settings.error();
    return TransportSettings{settings->transport, settings->topics, AppConfig().cluster,
                             AppConfig().evidence.dir};
  }
  config::Diagnostics diagnostics;
  const AppConfig config = load_config(file, config::process_environment(), diagnostics);
  if (diagnostics.has_errors()) {
    return core::invalid_argument(file + " has errors; see: tocsin check " + file);
  }
  return TransportSettings{config.transport, config.topics, config.cluster, config.evidence.dir};
}

std::string out_of(const ingest::TransportConfig& transport) {
  std::error_code ignored;
  if (transport.kafka.is_null()) {
    return std::filesystem::absolute(transport.journal, ignored).lexically_normal().string();
  }
  return "kafka://" + core::text_at(transport.kafka, "bootstrap.servers");
}

}  // namespace tocsin::app
