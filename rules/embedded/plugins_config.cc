#include "rules/embedded/plugins_config.h"

namespace tocsin::embedded {

void read(config::Reader& in, PluginsConfig& out) {
  in.optional("python", out.python, config::not_empty(),
              "interpreter of rules in Python; the package tocsin must be installed for it");
  in.optional("native", out.native, "rules may be shared objects (`library`), which run in here");
}

}  // namespace tocsin::embedded
