#include "app/config/transport_settings.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "app/config/app_config.h"
#include "app/config/config_path.h"
#include "app/config/transport_sections.h"
#include "collectors/hook/hook.h"

namespace tocsin::app {
namespace {

// A place that was named needs no file: one that is broken must not keep a person from it.
hook::ProcessFacts without_file() {
  hook::ProcessFacts facts = hook::this_process();
  facts.environment = [inner = facts.environment](const std::string& name) {
    return name == "TOCSIN_CONFIG" ? std::nullopt : inner(name);
  };
  return facts;
}

std::string in_words(const ingest::TransportConfig& transport) {
  return (transport.kafka.is_null() ? "journal " : "") + out_of(transport);
}

void say_broken(const std::string& file, const TransportSections& sections) {
  std::cerr << "tocsin: using " << in_words(sections.settings.transport) << " of " << file
            << "; the rest of that file is broken (" << sections.errors
            << (sections.errors == 1 ? " error" : " errors") << "; see: tocsin check " << file
            << ")\n";
}

}  // namespace

core::Result<TransportSettings> transport_settings(const std::string& config_file,
                                                   const std::string& place) {
  std::error_code error;
  const std::string file = config_path(config_file);
  const bool named = !config_file.empty() || std::getenv("TOCSIN_CONFIG") != nullptr;
  TransportSettings out{{}, {}, AppConfig().cluster, AppConfig().evidence.dir};
  if (named || (place.empty() && std::filesystem::exists(file, error))) {
    auto sections = read_transport_sections(file, config::process_environment());
    if (place.empty()) {
      if (!sections) return sections.error();
      if (sections->errors > 0) say_broken(file, *sections);
      return sections->settings;
    }
    if (sections) {
      out = sections->settings;
    } else {
      std::cerr << "tocsin: using --from alone: " << sections.error().message << "\n";
    }
  }
  const auto settings = hook::load_settings({place, "", "", ""}, without_file());
  if (!settings) return settings.error();
  out.transport = settings->transport;
  if (place.empty()) {
    std::cerr << "tocsin: using " << in_words(out.transport) << "; there is no " << file
              << ", name another place with --from\n";
  }
  return out;
}

std::string out_of(const ingest::TransportConfig& transport) {
  std::error_code ignored;
  if (transport.kafka.is_null()) {
    return std::filesystem::absolute(transport.journal, ignored).lexically_normal().string();
  }
  return "kafka://" + core::text_at(transport.kafka, "bootstrap.servers");
}

}  // namespace tocsin::app
