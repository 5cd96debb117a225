#include "app/cli/schema_command.h"

#include <iostream>

#include "app/app.h"
#include "app/cli/vocabulary.h"
#include "app/process/exit_code.h"
#include "collectors/collectors.h"
#include "ingest/ingest.h"

namespace tocsin::app {

int schema_command(const SchemaOptions& options) {
  if (options.what == "topics" || options.what == "collectors") {
    std::cout << (options.what == "topics" ? ingest::topic_table() : collectors::series_tables());
    return kOk;
  }
  if (options.what == "vocabulary") {
    std::cout << core::to_json(vocabulary()) << "\n";
    return kOk;
  }
  if (options.what == "events") {
    std::cout << (options.markdown ? ingest::event_tables() : ingest::event_schemas());
    return kOk;
  }
  const auto declare = [](config::Reader& in) {
    AppConfig defaults;
    read(in, defaults);
  };
  std::cout << (options.markdown ? config::to_markdown(config::describe(declare))
                                 : config::schema("tocsin.yaml", declare));
  return kOk;
}

}  // namespace tocsin::app
