#include "actions/integration/opened.h"

#include "actions/transport/redact.h"

namespace tocsin::actions {

core::Result<std::string> Opened::reveal(const config::Secret& secret, std::string_view key) {
  auto text = secret.reveal();
  if (!text) return text.error().in(std::string(key));
  secrets_.push_back(*text);
  return text;
}

std::string Opened::masked(std::string text) const { return redact(std::move(text), secrets_); }

}  // namespace tocsin::actions
