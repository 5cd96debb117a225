#include "app/config/insights_place.h"

#include <cstdlib>
#include <filesystem>

namespace tocsin::app {

std::string insights_path(const AppConfig& config, const std::string& file) {
  namespace fs = std::filesystem;
  if (!config.insights.path.empty()) {
    const fs::path events(config.insights.path);
    return file.empty() ? events.string() : (events.parent_path() / file).string();
  }
  const std::string name = file.empty() ? "insights.db" : file;
  if (config.transport.kafka.is_null()) return config.transport.journal + "/" + name;
  const char* state = std::getenv("STATE_DIRECTORY");
  return std::string(state == nullptr ? "./tocsin-insights" : state) + "/" + name;
}

}  // namespace tocsin::app
