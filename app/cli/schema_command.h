// `tocsin schema`: what machines read about configuration, events, topics and words.
#pragma once

#include <string>

namespace tocsin::app {

struct SchemaOptions {
  std::string what;       // config (also empty), events, topics, collectors, vocabulary
  bool markdown = false;  // config, events: tables of their keys
};
/// Always 0.
int schema_command(const SchemaOptions& options);

}  // namespace tocsin::app
