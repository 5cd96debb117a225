// `tocsin template render`: a message as a receiver would get it, without sending it (docs/templates.md).
#pragma once

#include <string>

namespace tocsin::app {

struct TemplateRenderOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string receiver;     // a receiver, or the id of one integration
  std::string issue;        // a recorded one; empty: an example
  bool resolved = false;    // the message that closes the incident
  bool json = false;
};

/// 0: every message was made; 1: one could not be made, or no such issue; 2: there is no such
/// receiver; 3: the configuration has errors; 4: unreachable.
int template_render(const TemplateRenderOptions& options);

}  // namespace tocsin::app
