#include "actions/contract/receivers.h"

#include <algorithm>
#include <map>

#include "core/text.h"

namespace tocsin::actions {
namespace {

// "oncall/email"; the second one of a type in a receiver is "oncall/email/2".
std::string default_id(const std::string& receiver, const std::string& type, std::size_t nth) {
  const std::string id = receiver + "/" + type;
  return nth == 1 ? id : id + "/" + std::to_string(nth);
}

void read_integration(config::Reader& in, const std::string& receiver,
                      const ActionDescriptor& descriptor, ReceiversConfig& out) {
  ConfiguredIntegration integration;
  integration.receiver = receiver;
  integration.type = descriptor.name;
  integration.traits = descriptor.traits;
  integration.common = descriptor.defaults;
  integration.place = in.location();
  std::size_t nth = 1;
  for (const auto& other : out.integrations) {
    if (other.receiver != receiver) continue;
    ++integration.index;
    if (other.type == integration.type) ++nth;
  }
  read(in, integration.common);
  read(in, integration.respect);
  integration.config = descriptor.read(in);
  if (integration.common.id.empty()) {
    integration.common.id = default_id(receiver, integration.type, nth);
  }
  for (const auto& other : out.integrations) {
    if (other.common.id != integration.common.id) continue;
    in.error("id", "integration id \"" + integration.common.id +
                       "\" is used twice, first at line " + std::to_string(other.place.line) +
                       "; give one of them another id");
  }
  const std::string claim = integration.config->claim();
  for (const auto& other : out.integrations) {
    if (claim.empty() || other.config->claim() != claim) continue;
    in.error("", claim + " is used twice, first at line " + std::to_string(other.place.line) +
                     "; each would end the other's connection");
  }
  if (!in.describing()) out.integrations.push_back(std::move(integration));
}

}  // namespace

void read_receivers(config::Reader& root, ReceiversConfig& out,
                    std::span<const ActionDescriptor> known) {
  root.map("receivers", "who is told, and how: name → {action: settings}",
           [&](const std::string& name, config::Reader& receiver) {
             if (!receiver.describing() &&
                 std::find(out.names.begin(), out.names.end(), name) == out.names.end()) {
               out.names.push_back(name);
             }
             for (const ActionDescriptor& descriptor : known) {
               receiver.section(descriptor.name, descriptor.summary, [&](config::Reader& in) {
                 read_integration(in, name, descriptor, out);
               });
             }
           });
}

}  // namespace tocsin::actions
