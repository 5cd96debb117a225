#include "actions/contract/receivers.h"

#include <map>
#include <set>
#include <string>

#include "core/text.h"

namespace tocsin::actions {
namespace {

// "oncall/email"; the second one of a type in a receiver is "oncall/email/2".
std::string default_id(const std::string& receiver, const std::string& type, std::size_t nth) {
  const std::string id = receiver + "/" + type;
  return nth == 1 ? id : id + "/" + std::to_string(nth);
}

/// What is taken already, and at which line.
struct Taken {
  std::map<std::string, int> ids;
  std::map<std::string, int> claims;
};

void read_integration(config::Reader& in, const std::string& receiver,
                      const ActionDescriptor& descriptor, ReceiversConfig& out, Taken& taken) {
  ConfiguredIntegration integration;
  integration.receiver = receiver;
  integration.type = descriptor.name;
  integration.traits = descriptor.traits;
  integration.common = descriptor.defaults;
  integration.place = in.location();
  std::size_t nth = 1;
  // Those of one receiver stand together.
  for (auto other = out.integrations.rbegin();
       other != out.integrations.rend() && other->receiver == receiver; ++other) {
    ++integration.index;
    if (other->type == integration.type) ++nth;
  }
  read(in, integration.common);
  read(in, integration.respect);
  integration.config = descriptor.read(in);
  if (integration.common.id.empty()) {
    integration.common.id = default_id(receiver, integration.type, nth);
  }
  const std::string claim = integration.config->claim();
  if (const auto other = taken.ids.find(integration.common.id); other != taken.ids.end()) {
    in.error("id", "integration id \"" + integration.common.id +
                       "\" is used twice, first at line " + std::to_string(other->second) +
                       "; give one of them another id");
  }
  if (const auto other = taken.claims.find(claim); other != taken.claims.end()) {
    in.error("", claim + " is used twice, first at line " + std::to_string(other->second) +
                     "; each would end the other's connection");
  }
  if (in.describing()) return;
  taken.ids.try_emplace(integration.common.id, integration.place.line);
  if (!claim.empty()) taken.claims.try_emplace(claim, integration.place.line);
  out.integrations.push_back(std::move(integration));
}

}  // namespace

void read_receivers(config::Reader& root, ReceiversConfig& out,
                    std::span<const ActionDescriptor> known) {
  Taken taken;
  std::set<std::string> names;
  root.map("receivers", "who is told, and how: name → {action: settings}",
           [&](const std::string& name, config::Reader& receiver) {
             if (!receiver.describing() && names.insert(name).second) out.names.push_back(name);
             for (const ActionDescriptor& descriptor : known) {
               receiver.section(descriptor.name, descriptor.summary, [&](config::Reader& in) {
                 read_integration(in, name, descriptor, out, taken);
               });
             }
           });
}

}  // namespace tocsin::actions
