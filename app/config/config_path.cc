#include "app/config/config_path.h"

#include <cstdlib>

namespace tocsin::app {

std::string config_path(const std::string& named) {
  if (!named.empty()) return named;
  if (const char* path = std::getenv("TOCSIN_CONFIG"); path != nullptr && *path != '\0')
    return path;
  return "tocsin.yaml";
}

}  // namespace tocsin::app
