// `tocsin config show`: the configuration as it holds, each value with its origin, credentials masked.
#pragma once

#include <string>

namespace tocsin::app {

struct ConfigShowOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  bool effective = false;   // what is not written too, by its default
  bool json = false;
};

/// 0: printed; 3: the file has errors.
int config_show(const ConfigShowOptions& options);

}  // namespace tocsin::app
